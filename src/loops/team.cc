#include "loops/team.h"

#include <algorithm>

#include "loops/effects.h"
#include "loops/walk.h"

namespace ein::loops {
namespace {

bool together(const Stmt& s) {
  const auto* n = std::get_if<Loop>(&s.node);
  return std::holds_alternative<Contract>(s.node) || (n && n->grain.valid());
}

bool holds_such(const Stmt& s) {
  bool out = false;
  for_each_block(s, [&](const Block& b) {
    for_each_stmt(b, [&](const Stmt& inner) { out |= together(inner); });
  });
  return out;
}

// Row buffers: every thread has its own, so one thread does not see what another writes there.
bool touches_rows(const Program& p, const Effects& e) {
  auto row = [&](BufferId b) { return p.buffers[b].space == Buffer::Space::Row; };
  return std::any_of(e.loads.begin(), e.loads.end(), row) ||
         std::any_of(e.stores.begin(), e.stores.end(), row);
}

bool fits(const Program& p, const Block& body);

bool fits(const Program& p, const Stmt& s) {
  if (std::holds_alternative<Fetch>(s.node) || std::holds_alternative<Launch>(s.node) ||
      std::holds_alternative<Touch>(s.node)) {
    return false;
  }
  Effects e = effects(p, s);
  const auto* loop = std::get_if<Loop>(&s.node);
  switch (role_of(p, s)) {
    case Role::All: return !touches_rows(p, e) && !e.polls;
    case Role::First: return !touches_rows(p, e) && !e.polls && e.changes.empty();
    case Role::Together:
      if (!loop) return !touches_rows(p, e);
      // Everything around it is executed by every member, and all of them must see its results.
      return loop->folds.empty() ? e.changes.empty() : e.stores.empty();
    case Role::Inside: break;
  }
  if (loop && (loop->axis.kind != Axis::Kind::Seq || loop->poll || loop->leave)) return false;
  if (loop && !loop->state.empty()) return false;  // its state must be stored only once
  // Sums over steps keep track of their rounding errors.
  if (loop && !e.changes.empty()) return false;
  bool ok = true;
  for_each_block(s, [&](const Block& b) { ok &= fits(p, b); });
  return ok;
}

bool fits(const Program& p, const Block& body) {
  return body.size() <= static_cast<size_t>(p.tuning.kernel_statements) &&
         std::all_of(body.begin(), body.end(), [&](const Stmt& s) { return fits(p, s); });
}

}  // namespace

Role role_of(const Program& p, const Stmt& s) {
  if (together(s)) return Role::Together;
  if (holds_such(s)) return Role::Inside;
  return effects(p, s).stores.empty() ? Role::All : Role::First;
}

bool fits_a_team(const Program& p, const Loop& loop) {
  if (loop.axis.kind != Axis::Kind::Seq || loop.leave || !loop.state.empty()) return false;
  if (loop.poll && p.sites[loop.poll].kind == Site::Kind::Rows) return false;
  if (!fits(p, loop.body)) return false;
  std::set<VarId> bound, changed;
  for_each_stmt(loop.body, [&](const Stmt& s) {
    Effects one = effects(p, s);
    bound.merge(one.binds);
    changed.merge(one.changes);
  });
  return std::all_of(changed.begin(), changed.end(), [&](VarId v) { return bound.contains(v); });
}

}  // namespace ein::loops
