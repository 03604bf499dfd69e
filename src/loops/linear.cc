#include "loops/linear.h"

#include <algorithm>

namespace ein::loops {

using core::Op;

namespace {

bool same(const Node& a, const Node& b) {
  if (const auto* x = std::get_if<Get>(&a)) {
    const auto* y = std::get_if<Get>(&b);
    return y && x->var == y->var;
  }
  const auto *x = std::get_if<Param>(&a), *y = std::get_if<Param>(&b);
  return x && y && x->index == y->index;
}

void add_term(const Node& n, int64_t factor, Linear& out) {
  auto it = std::find_if(out.terms.begin(), out.terms.end(),
                         [&](const auto& term) { return same(term.first, n); });
  if (it != out.terms.end()) {
    it->second += factor;
  } else {
    out.terms.emplace_back(n, factor);
  }
}

}  // namespace

bool Sums::add(ExprId e, int64_t factor, Linear& out) const {
  const Node& n = p.exprs[e].node;
  if (p.exprs[e].type != DType::I64) return false;
  if (const auto* c = std::get_if<IntConst>(&n)) {
    out.constant += factor * c->value;
    return true;
  }
  if (const auto* g = std::get_if<Get>(&n)) {
    if (auto it = lets.find(g->var); it != lets.end()) return add(it->second, factor, out);
    add_term(n, factor, out);
    return true;
  }
  if (std::holds_alternative<Param>(n)) {
    add_term(n, factor, out);
    return true;
  }
  const auto* a = std::get_if<Apply>(&n);
  if (a && a->op == Op::Mul) {
    for (size_t i : {0, 1}) {
      int64_t by = 0;
      auto times = constant(p, a->args[i]);
      if (times && !__builtin_mul_overflow(factor, *times, &by))
        return add(a->args[1 - i], by, out);
    }
    return false;
  }
  if (!a || (a->op != Op::Add && a->op != Op::Sub)) return false;
  return add(a->args[0], factor, out) && add(a->args[1], a->op == Op::Add ? factor : -factor, out);
}

std::optional<Linear> Sums::of(ExprId e) const {
  Linear out;
  if (!add(e, 1, out)) return {};
  std::erase_if(out.terms, [](const auto& term) { return term.second == 0; });
  return out;
}

std::optional<int64_t> Sums::distance(ExprId from, ExprId to) const {
  Linear d;
  if (!add(to, 1, d) || !add(from, -1, d)) return {};
  bool none = std::all_of(d.terms.begin(), d.terms.end(),
                          [](const auto& term) { return term.second == 0; });
  return none ? std::optional(d.constant) : std::nullopt;
}

std::optional<int64_t> Sums::offset(ExprId e, VarId v) const {
  auto x = of(e);
  bool fits =
      x && x->terms.size() == 1 && x->terms[0].second == 1 && same(x->terms[0].first, Get{v});
  return fits ? std::optional(x->constant) : std::nullopt;
}

ExprId Sums::bare(ExprId e) const {
  if (const auto* g = std::get_if<Get>(&p.exprs[e].node)) {
    auto it = lets.find(g->var);
    return it == lets.end() ? e : bare(it->second);
  }
  const auto* a = std::get_if<Apply>(&p.exprs[e].node);
  if (!a || a->op != Op::Max) return e;
  for (size_t i : {0, 1}) {
    if (constant(p, a->args[i]) == 0) return a->args[1 - i];
  }
  return e;
}

bool Sums::equal(ExprId a, ExprId b) const {
  auto value = [&](ExprId e) {
    for (;;) {
      const auto* g = std::get_if<Get>(&p.exprs[e].node);
      auto it = g ? lets.find(g->var) : lets.end();
      if (it == lets.end()) return e;
      e = it->second;
    }
  };
  a = value(a), b = value(b);
  if (a == b) return true;
  const Expr &x = p.exprs[a], &y = p.exprs[b];
  if (x.type != y.type || x.node.index() != y.node.index()) return false;
  auto all = [&](const std::vector<ExprId>& s, const std::vector<ExprId>& t) {
    return std::equal(s.begin(), s.end(), t.begin(), t.end(),
                      [&](ExprId c, ExprId d) { return equal(c, d); });
  };
  return match(
      x.node, [](const FloatConst&) { return false; },
      [&](const IntConst& n) { return n.value == std::get<IntConst>(y.node).value; },
      [&](const Param& n) { return n.index == std::get<Param>(y.node).index; },
      [&](const Get& n) { return n.var == std::get<Get>(y.node).var; },
      [&](const Apply& n) {
        const auto& o = std::get<Apply>(y.node);
        return n.op == o.op && all(n.args, o.args);
      },
      [](const Overflows&) { return false; }, [](const Load&) { return false; });
}

}  // namespace ein::loops
