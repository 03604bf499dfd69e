#include <algorithm>

#include "base/match.h"
#include "ide/features.h"

namespace ein::ide {
namespace {

struct Hints {
  const Analysis& a;
  uint32_t begin, end;
  std::vector<Hint> out = {};

  void add(uint32_t offset, std::string text, bool type) {
    if (offset >= begin && offset <= end) out.push_back({offset, std::move(text), type});
  }

  void range(const ast::Name& name) {
    auto it = a.meanings.ranges.find(sema::Meanings::place(name.span));
    // Its range differs from call to call.
    if (it == a.meanings.ranges.end() || it->second.size() != 1) return;
    const sema::ShownRange& r = it->second[0];
    if (r.inferred) add(name.span.end, " in " + r.lo + ".." + r.hi, false);
  }

  void let(const ast::Let& l) {
    for (const ast::Slot& s : l.slots) {
      if (s.kind == ast::Slot::Kind::Index && !s.range) range(s.name);
    }
    if (l.type || !l.value) return;
    for (const ast::Name& n : l.names) {
      auto it = a.meanings.values.find(sema::Meanings::place(n.span));
      if (it == a.meanings.values.end() || it->second.size() != 1) continue;
      const sema::Shown& v = it->second[0];
      // After a left side with indices the coordinates need not be shown again.
      sema::Shown shown = v;
      uint32_t at = n.span.end;
      if (l.has_slots) {
        if (l.names.size() > 1 || l.slots.empty()) continue;
        size_t own = std::min(l.slots.size(), shown.coords.size());
        shown.coords.erase(shown.coords.begin(),
                           shown.coords.begin() + static_cast<ptrdiff_t>(own));
        at = closing(l.slots.back().span.end);
      }
      if (shown.type != "function") add(at, ": " + describe(shown), true);
    }
  }

  // The coordinates of an operand that is written without indices.
  void whole(ast::ExprId id) {
    const auto* path = id ? std::get_if<ast::Path>(&a.ast()[id].node) : nullptr;
    if (!path || path->parts.size() != 1 || a.ast()[id].span.file != a.root) return;
    const Occurrence* o = occurrence_at(a.bindings, a.root, path->parts[0].span.begin);
    if (!o || o->span != path->parts[0].span) return;
    auto it = a.meanings.values.find(sema::Meanings::place(o->span));
    // It differs from call to call.
    if (it == a.meanings.values.end() || it->second.size() != 1) return;
    std::string names;
    for (const auto& c : it->second[0].coords) {
      if (c.name.empty()) return;
      names += (names.empty() ? "" : ", ") + c.name;
    }
    if (!names.empty()) add(o->span.end, "[" + names + "]", false);
  }

  void operands(const ast::Expr& e) {
    if (const auto* b = std::get_if<ast::Binary>(&e.node)) whole(b->lhs), whole(b->rhs);
    if (const auto* u = std::get_if<ast::Unary>(&e.node)) whole(u->arg);
    const auto* call = std::get_if<ast::Call>(&e.node);
    for (size_t i = 0; call && !call->brackets.empty() && i < call->args.size(); ++i) {
      whole(call->args[i]);
    }
  }

  // The position after the bracket that closes the left side.
  uint32_t closing(uint32_t from) const {
    size_t at = a.text().find(']', from);
    return at == std::string::npos ? from : static_cast<uint32_t>(at + 1);
  }
};

}  // namespace

std::vector<Hint> inlay_hints(const Analysis& a, uint32_t begin, uint32_t end) {
  Hints h{a, begin, end};
  for (const ast::Stmt& s : a.ast().stmts) {
    if (s.span.file != a.root || s.span.end < begin || s.span.begin > end) continue;
    if (const auto* l = std::get_if<ast::Let>(&s.node)) h.let(*l);
  }
  for (const ast::Expr& e : a.ast().exprs) {
    if (e.span.file != a.root || e.span.end < begin || e.span.begin > end) continue;
    h.operands(e);
    const auto* call = std::get_if<ast::Call>(&e.node);
    for (size_t i = 0; call && i < call->brackets.size(); ++i) {
      if (call->brackets[i].name.symbol && !call->brackets[i].range)
        h.range(call->brackets[i].name);
    }
  }
  auto place = [](const Hint& x, const Hint& y) { return x.offset < y.offset; };
  auto same = [](const Hint& x, const Hint& y) { return x.offset == y.offset && x.text == y.text; };
  std::stable_sort(h.out.begin(), h.out.end(), place);
  h.out.erase(std::unique(h.out.begin(), h.out.end(), same), h.out.end());
  return std::move(h.out);
}

}  // namespace ein::ide
