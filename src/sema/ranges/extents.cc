// Symbolic extents while they are being found: placeholders, comparisons, entry constraints.
#include <fmt/format.h>

#include "sema/ranges/ranges.h"
#include "sema/state/range_state.h"
#include "sema/state/values.h"

namespace ein::sema {

CoreId placeholder(Sema& s) {
  return core::param(s.m, ParamId(kFirstPlaceholder + s.ranges.placeholders++));
}

core::Range unknown_range(Sema& s, ast::Name name, bool left) {
  CoreId lo = placeholder(s), hi = placeholder(s);
  auto id = [&](CoreId e) { return core::get_if<core::ParamRef>(s.m, e)->param; };
  s.ranges.unknowns.push_back({id(lo), id(hi), name.symbol, name.span, left});
  return {lo, hi};
}

bool has_unsolved(const Sema& s, CoreId e) {
  if (!e) return false;
  if (s.ranges.unsolved.size() <= e.v)
    s.ranges.unsolved.resize(s.m.arena->size(), Ranges::Unsolved::NotLooked);
  Ranges::Unsolved& known = s.ranges.unsolved[e.v];
  if (known != Ranges::Unsolved::NotLooked) return known == Ranges::Unsolved::Yes;
  bool found = false;
  if (const auto* p = core::get_if<core::ParamRef>(s.m, e)) found = is_placeholder(p->param);
  core::for_each_child(s.m, e, [&](CoreId child) { found = found || has_unsolved(s, child); });
  s.ranges.unsolved[e.v] = found ? Ranges::Unsolved::Yes : Ranges::Unsolved::No;
  return found;
}

CoreId resolve(Sema& s, CoreId e) {
  if (!has_unsolved(s, e)) return e;
  // The end of a range is most often one placeholder.
  while (const auto* p = core::get_if<core::ParamRef>(s.m, e)) {
    auto it = s.ranges.solved.find(p->param);
    if (it == s.ranges.solved.end() || it->second == e) return e;
    e = it->second;
    if (!has_unsolved(s, e)) return e;
  }
  std::unordered_map<CoreId, CoreId> memo;
  std::function<CoreId(CoreId)> visit = [&](CoreId x) {
    if (!has_unsolved(s, x)) return x;
    if (auto it = memo.find(x); it != memo.end()) return it->second;
    CoreId out;
    if (const auto* p = core::get_if<core::ParamRef>(s.m, x)) {
      auto it = s.ranges.solved.find(p->param);
      out = it == s.ranges.solved.end() || it->second == x ? x : visit(it->second);
    } else {
      out = core::map_children(s.m, x, visit);
    }
    memo.emplace(x, out);
    return out;
  };
  return visit(e);
}

core::Range resolve(Sema& s, core::Range r) { return {resolve(s, r.lo), resolve(s, r.hi)}; }

core::Facts facts_at_entry(const core::Module& m) {
  core::Facts facts;
  facts.entry = core::entry_facts(m);
  return facts;
}

Truth equal(Sema& s, CoreId a, CoreId b) {
  a = resolve(s, a);
  b = resolve(s, b);
  if (a == b) return Truth::Yes;
  if (has_unsolved(s, a) || has_unsolved(s, b)) return Truth::Open;
  core::Facts facts = facts_at_entry(s.m);
  bool le = core::proves_le(s.m, a, b, facts), ge = core::proves_le(s.m, b, a, facts);
  if (le && ge) return Truth::Yes;
  if (le && core::proves_lt(s.m, a, b, facts)) return Truth::No;
  if (ge && core::proves_lt(s.m, b, a, facts)) return Truth::No;
  return Truth::Open;
}

void constrain(Sema& s, CoreId cond, std::string message, Span first, Span second) {
  cond = resolve(s, cond);
  if (const auto* b = core::get_if<core::BoolLit>(s.m, cond); b && b->value) return;
  if (auto known = core::entry_facts(s.m); known && known->holds.contains(cond)) return;
  s.m.constraints.push_back({cond, std::move(message), first, second});
}

CoreId least(core::Module& m, CoreId a, CoreId b) {
  if (!a || a == b) return b;
  if (!b) return a;
  core::Facts facts = facts_at_entry(m);
  if (core::proves_le(m, a, b, facts)) return a;
  if (core::proves_le(m, b, a, facts)) return b;
  return core::apply(m, core::Op::Min, {a, b});
}

CoreId greatest(core::Module& m, CoreId a, CoreId b) {
  if (!a || a == b) return b;
  if (!b) return a;
  core::Facts facts = facts_at_entry(m);
  if (core::proves_le(m, b, a, facts)) return a;
  if (core::proves_le(m, a, b, facts)) return b;
  return core::apply(m, core::Op::Max, {a, b});
}

}  // namespace ein::sema
