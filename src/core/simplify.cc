#include "core/simplify.h"

#include <cmath>
#include <map>
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

// sum[k](v where g, h) with g free of k: if g { sum[k](v where h) } else { 0 }. Only leading
// conditions are lifted: each may rely on those before it.
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

// 0 times this factor (or divided by it) is certainly 0.
bool keeps_zero(Module& m, ExprId e, bool divides, const Facts& facts) {
  if (const auto* lit = get_if<FloatLit>(m, e))
    return std::isfinite(lit->value) && !(divides && lit->value == 0);
  const auto* a = get_if<Apply>(m, e);
  bool counts = a && a->op == Op::Cast && m[a->args[0]].type == DType::I64 &&
                (m[e].type == DType::F32 || m[e].type == DType::F64);
  return counts && (!divides || proves_lt(m, int_lit(m, 0), a->args[0], facts));
}

// sum[j, k](x[j]) = n · sum[j](x[j]) when nothing depends on k, which takes n values.
ExprId count_unused(Module& m, ExprId e, bool tangent, const Facts& facts) {
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
    const Range counted = r.over[k];
    ExprId count = sub(m, counted.hi, counted.lo);
    if (!proves_nonnegative(m, affine_form(m, count), {}))
      count = apply(m, Op::Max, {count, int_lit(m, 0)});
    std::vector<ExprId> with(r.first + r.over.size());
    for (uint32_t j = k + 1; j < r.over.size(); ++j) with[r.first + j] = slot(m, r.first + j - 1);
    r.over.erase(r.over.begin() + k);
    r.names.erase(r.names.begin() + k);
    auto put = [&](ExprId x) {
      return x ? substitute(m, x, with, r.first + static_cast<uint32_t>(r.over.size())) : x;
    };
    for (Range& o : r.over) o = {put(o.lo), put(o.hi)};
    for (Route& o : r.routes) o.to = put(o.to);
    r.gate = put(r.gate);
    r.body = put(r.body);
    ExprId times = cast(m, count, m[e].type);
    if (r.routes.empty()) {
      ExprId sum = reduce(m, r, m[e].span);
      ExprId out = mul(m, tangent ? mark_tangent(m, sum) : sum, times);
      // The sum of no cells is 0, even where each of them would be infinite.
      return keeps_zero(m, sum, false, facts) ? out : gated(m, has_cells(m, {counted}, facts), out);
    }
    r.body = mul(m, r.body, times);  // a routed sum stays the whole body of its clause
    return reduce(m, r, m[e].span);
  }
  return e;
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
  if (inner.num.empty() && !outer.num.empty()) {  // a numerator has to stay above the divisors
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

// Simplifies clauses node by node, knowing whether each node is a tangent where it stands.
class Simplifier {
 public:
  Simplifier(Module& m, const Facts& facts) : m_(m), facts_(facts) {}

  ExprId visit(ExprId e, bool tangent) {
    auto key = std::pair{e, tangent};
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    ExprId out = fresh(e, tangent);
    memo_[key] = out;
    return out;
  }

 private:
  ExprId fresh(ExprId e, bool tangent) {
    const Expr expr = m_[e];
    if (const auto* a = std::get_if<Apply>(&expr.node)) {
      if (a->op == Op::Tangent) {
        ExprId inside = visit(a->args[0], true);
        return tangent ? inside : mark_tangent(m_, inside);
      }
      std::vector<ExprId> args;
      for (size_t k = 0; k < a->args.size(); ++k)
        args.push_back(visit(a->args[k], tangent && passes(*a, k)));
      if (args == a->args) return step(e, tangent);
      ExprId out = a->op == Op::Cast ? cast(m_, args[0], expr.type, expr.span)
                                     : apply(m_, a->op, std::move(args), expr.span);
      return step(out, tangent);
    }
    if (const auto* r = std::get_if<Reduce>(&expr.node)) {
      Reduce out = *r;
      for (Range& o : out.over) o = {visit(o.lo, false), visit(o.hi, false)};
      for (Route& o : out.routes) o.to = visit(o.to, false);
      if (out.gate) out.gate = visit(out.gate, false);
      out.body = visit(out.body, tangent && r->op == ReduceOp::Sum);
      return step(reduce(m_, std::move(out), expr.span), tangent);
    }
    return map_children(m_, e, [&](ExprId child) { return visit(child, false); });
  }

  // Whether operand k of a tangent is a tangent.
  bool passes(const Apply& a, size_t k) const {
    switch (a.op) {
      case Op::Add:
      case Op::Sub:
      case Op::Neg: return true;
      case Op::Cast: return is_float(m_[a.args[0]].type);
      case Op::Select: return k > 0;
      default: return false;
    }
  }

  // Whether an operand of a product is a gated tangent: a marked one, or one that stands
  // where tangents do.
  bool gated_tangent(ExprId e, bool tangent, Gated& out) {
    ExprId inside = unmarked(m_, e);
    return (tangent || inside != e) && as_gated(m_, inside, out);
  }

  ExprId tangent_of(ExprId e, bool inside) { return inside ? e : mark_tangent(m_, e); }

  ExprId step(ExprId e, bool tangent) {
    const Expr expr = m_[e];
    Gated g;
    if (const auto* a = std::get_if<Apply>(&expr.node)) {
      if (a->op == Op::Mul || a->op == Op::Div) {
        for (size_t k = 0; k < (a->op == Op::Mul ? 2u : 1u); ++k) {
          if (!gated_tangent(a->args[k], false, g)) continue;
          std::vector<ExprId> args = a->args;
          args[k] = mark_tangent(m_, g.value);
          ExprId value = step(apply(m_, a->op, args, expr.span), true);
          return tangent_of(gated(m_, g.gate, value), tangent);
        }
      }
      if (a->op == Op::Neg && gated_tangent(a->args[0], tangent, g))
        return tangent_of(gated(m_, g.gate, neg(m_, g.value)), tangent);
      Gated other;
      if ((a->op == Op::Add || a->op == Op::Sub) && as_gated(m_, a->args[0], g) &&
          as_gated(m_, a->args[1], other) && g.gate == other.gate) {
        return gated(m_, g.gate, apply(m_, a->op, {g.value, other.value}, expr.span));
      }
      if (a->op == Op::Add && as_gated(m_, a->args[1], g)) {  // (x + gated) + gated
        const auto* left = get_if<Apply>(m_, a->args[0]);
        if (left && left->op == Op::Add && as_gated(m_, left->args[1], other) &&
            g.gate == other.gate) {
          ExprId first = left->args[0];
          return add(m_, first, gated(m_, g.gate, add(m_, other.value, g.value)), expr.span);
        }
      }
      Gated outer;
      if (as_gated(m_, e, outer) && as_gated(m_, unmarked(m_, outer.value), g)) {
        ExprId value =
            outer.value == unmarked(m_, outer.value) ? g.value : mark_tangent(m_, g.value);
        return gated(m_, both(m_, outer.gate, g.gate), value);
      }
    }
    if (const auto* r = std::get_if<Reduce>(&expr.node);
        r && r->op == ReduceOp::Sum && as_gated(m_, unmarked(m_, r->body), g)) {
      Reduce out = *r;
      out.gate = both(m_, r->gate, g.gate);
      out.body = r->body == unmarked(m_, r->body) ? g.value : mark_tangent(m_, g.value);
      return reduce(m_, std::move(out), expr.span);
    }
    if (ExprId lifted = lift_gate(m_, e); lifted != e) return lifted;
    if (ExprId counted = count_unused(m_, e, tangent, facts_); counted != e) return counted;
    return pull_factors(m_, e, facts_);
  }

  Module& m_;
  const Facts& facts_;  // of the clause
  std::map<std::pair<ExprId, bool>, ExprId> memo_;
};

}  // namespace

ExprId lift(Module& m, const Reduce& r, ExprId e) {
  std::vector<ExprId> with(r.first + r.over.size());
  return substitute(m, e, with, r.first);
}

void simplify(Module& m, FamilyId id) {
  bool tangent = m[id].tangent;
  for (Clause& c : m.families[id].clauses) {
    const Facts facts = clause_facts(m, c);
    for (ExprId before; before != c.body;) {
      before = c.body;
      c.body = Simplifier(m, facts).visit(c.body, tangent);
    }
  }
  solve_gates(m, id);
}

ExprId mark_tangent(Module& m, ExprId e) {
  bool needless = !get_if<Apply>(m, e) && !get_if<Reduce>(m, e);
  return needless || unmarked(m, e) != e ? e : apply(m, Op::Tangent, {e}, m[e].span);
}

ExprId unmarked(const Module& m, ExprId e) {
  const auto* a = get_if<Apply>(m, e);
  return a && a->op == Op::Tangent ? a->args[0] : e;
}

void drop_marks(Module& m) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    rewrite_family(m, FamilyId(i), [&](ExprId root) {
      return rewrite(m, root, [&](ExprId e) { return unmarked(m, e); });
    });
  }
}

}  // namespace ein::core
