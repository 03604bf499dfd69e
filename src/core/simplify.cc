#include "core/simplify.h"

#include <cmath>
#include <vector>

#include "core/build.h"
#include "core/product.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/solve_gates.h"

namespace ein::core {
namespace {

// e = gate ? value : 0, with the zero written as a literal.
struct Gated {
  ExprId gate, value;
};

bool as_gated(const Module& m, ExprId e, Gated& out) {
  const auto* a = get_if<Apply>(m, e);
  if (!a || a->op != Op::Select || !is_float(m[e].type)) return false;
  const auto* zero = get_if<FloatLit>(m, a->args[2]);
  if (!zero || zero->value != 0) return false;
  out = {a->args[0], a->args[1]};
  return true;
}

uint64_t binders_of(const Reduce& r) {
  uint64_t out = 0;
  for (size_t k = 0; k < r.over.size(); ++k) out |= uint64_t{1} << (r.first + k);
  return out;
}

// An expression that stood inside the reduction and mentions none of its binders, as it reads
// outside: reductions in it are renumbered.
ExprId lift(Module& m, const Reduce& r, ExprId e) {
  std::vector<ExprId> with(r.first + r.over.size());
  return substitute(m, e, with, r.first);
}

// sum[k](v where g, h) with g free of k: if g { sum[k](v where h) } else { 0 }. Only conditions in
// front are lifted: each may rely on those before it.
ExprId lift_gate(Module& m, ExprId e) {
  const auto* in = get_if<Reduce>(m, e);
  if (!in || in->op != ReduceOp::Sum || !in->gate || !is_float(m[e].type)) return e;
  Reduce r = *in;
  std::vector<ExprId> parts, outside;
  conjuncts(m, r.gate, parts);
  size_t k = 0;
  while (k < parts.size() && (m[parts[k]].free & binders_of(r)) == 0)
    outside.push_back(lift(m, r, parts[k++]));
  if (outside.empty()) return e;
  r.gate = all_of(m, {parts.begin() + static_cast<ptrdiff_t>(k), parts.end()});
  return gated(m, all_of(m, outside), reduce(m, r, m[e].span));
}

// sum[j, k](x[j]) = n · sum[j](x[j]) when nothing depends on k, which takes n values.
ExprId count_unused(Module& m, ExprId e) {
  const auto* in = get_if<Reduce>(m, e);
  if (!in || in->op != ReduceOp::Sum || !is_float(m[e].type)) return e;
  Reduce r = *in;
  for (uint32_t k = 0; k < r.over.size(); ++k) {
    uint32_t binder = r.first + k;
    bool used = mentions_slot(m, r.body, binder) || mentions_slot(m, r.gate, binder);
    for (const Range& o : r.over)
      used |= mentions_slot(m, o.lo, binder) || mentions_slot(m, o.hi, binder);
    for (const Route& o : r.routes) used |= mentions_slot(m, o.to, binder);
    // A range that depends on other binders of this sum would leave their scope.
    bool dependent = ((m[r.over[k].lo].free | m[r.over[k].hi].free) & binders_of(r)) != 0;
    if (used || dependent) continue;
    ExprId count = sub(m, r.over[k].hi, r.over[k].lo);
    if (!proves_nonnegative(m, affine_form(m, count), {}))
      count = apply(m, Op::Max, {count, int_lit(m, 0)});
    std::vector<ExprId> with(r.first + r.over.size());
    for (uint32_t j = k + 1; j < r.over.size(); ++j) with[r.first + j] = slot(m, r.first + j - 1);
    auto put = [&](ExprId x) {
      return x ? substitute(m, x, with, r.first + static_cast<uint32_t>(r.over.size()) - 1) : x;
    };
    r.over.erase(r.over.begin() + k);
    r.names.erase(r.names.begin() + k);
    for (Range& o : r.over) o = {put(o.lo), put(o.hi)};
    for (Route& o : r.routes) o.to = put(o.to);
    r.gate = put(r.gate);
    r.body = put(r.body);
    ExprId times = cast(m, count, m[e].type);
    if (r.routes.empty()) return mul(m, reduce(m, r, m[e].span), times);
    r.body = mul(m, r.body, times);  // a routed sum stays the whole body of its clause
    return reduce(m, r, m[e].span);
  }
  return e;
}

// A factor that leaves 0 as it is, whatever it reads.
bool keeps_zero(Module& m, ExprId e, bool divides, const Facts& facts) {
  if (const auto* lit = get_if<FloatLit>(m, e))
    return std::isfinite(lit->value) && !(divides && lit->value == 0);
  const auto* a = get_if<Apply>(m, e);
  bool counts = a && a->op == Op::Cast && m[a->args[0]].type == DType::I64 &&
                (m[e].type == DType::F32 || m[e].type == DType::F64);
  return counts && (!divides || proves_lt(m, int_lit(m, 0), a->args[0], facts));
}

ExprId pull_factors(Module& m, ExprId e, const Facts& facts) {
  const auto* in = get_if<Reduce>(m, e);
  if (!in || in->op != ReduceOp::Sum || in->gate || !in->routes.empty() || !is_float(m[e].type))
    return e;
  Reduce r = *in;
  const Product p = as_product(m, r.body);
  uint64_t binders = binders_of(r);
  Product outer, inner;
  bool visited = !has_cells(m, r.over, facts).valid();
  auto stays = [&](ExprId x, bool divides) {
    return (m[x].free & binders) || !(visited || keeps_zero(m, x, divides, facts));
  };
  for (ExprId x : p.num) (stays(x, false) ? inner : outer).num.push_back(x);
  for (ExprId x : p.den) (stays(x, true) ? inner : outer).den.push_back(x);
  if (inner.num.empty() && !outer.num.empty()) {  // something has to stay above the divisors
    inner.num.push_back(outer.num.front());
    outer.num.erase(outer.num.begin());
  }
  if (outer.num.empty() && outer.den.empty() && !p.negative) return e;
  for (ExprId& x : outer.num) x = lift(m, r, x);
  for (ExprId& x : outer.den) x = lift(m, r, x);
  DType type = m[e].type;
  r.body = from_product(m, inner, type);
  ExprId sum = reduce(m, r, m[e].span);
  outer.num.push_back(sum);
  ExprId v = from_product(m, outer, type);
  return p.negative ? neg(m, v) : v;
}

ExprId step(Module& m, ExprId e, const Facts& facts) {
  const Expr expr = m[e];
  Gated g;
  if (const auto* a = std::get_if<Apply>(&expr.node)) {
    if (a->op == Op::Mul || a->op == Op::Div) {
      for (size_t k = 0; k < (a->op == Op::Mul ? 2u : 1u); ++k) {
        if (!as_gated(m, a->args[k], g)) continue;
        std::vector<ExprId> args = a->args;
        args[k] = g.value;
        return gated(m, g.gate, step(m, apply(m, a->op, args, expr.span), facts));
      }
    }
    if (a->op == Op::Neg && as_gated(m, a->args[0], g)) return gated(m, g.gate, neg(m, g.value));
    Gated other;
    if ((a->op == Op::Add || a->op == Op::Sub) && as_gated(m, a->args[0], g) &&
        as_gated(m, a->args[1], other) && g.gate == other.gate) {
      return gated(m, g.gate, apply(m, a->op, {g.value, other.value}, expr.span));
    }
    if (a->op == Op::Add && as_gated(m, a->args[1], g)) {  // (x + gated) + gated
      const auto* left = get_if<Apply>(m, a->args[0]);
      if (left && left->op == Op::Add && as_gated(m, left->args[1], other) &&
          g.gate == other.gate) {
        return add(m, left->args[0], gated(m, g.gate, add(m, other.value, g.value)), expr.span);
      }
    }
    Gated outer;
    if (as_gated(m, e, outer) && as_gated(m, outer.value, g)) {
      return gated(m, both(m, outer.gate, g.gate), g.value);
    }
  }
  if (const auto* r = std::get_if<Reduce>(&expr.node);
      r && r->op == ReduceOp::Sum && as_gated(m, r->body, g)) {
    Reduce out = *r;
    out.gate = both(m, r->gate, g.gate);
    out.body = g.value;
    return reduce(m, std::move(out), expr.span);
  }
  if (ExprId lifted = lift_gate(m, e); lifted != e) return lifted;
  if (ExprId counted = count_unused(m, e); counted != e) return counted;
  return pull_factors(m, e, facts);
}

}  // namespace

void simplify(Module& m, FamilyId id) {
  for (Clause& c : m.families[id].clauses) {
    const Facts facts = clause_facts(m, c);
    for (ExprId before; before != c.body;) {
      before = c.body;
      c.body = rewrite(m, c.body, [&](ExprId e) { return step(m, e, facts); });
    }
  }
  solve_gates(m, id);
}

}  // namespace ein::core
