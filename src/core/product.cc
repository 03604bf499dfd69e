#include "core/product.h"

#include "core/build.h"

namespace ein::core {
namespace {

void flatten(const Module& m, ExprId e, bool inverse, Product& out) {
  const auto* a = get_if<Apply>(m, e);
  if (a && a->op == Op::Neg) {
    out.negative = !out.negative;
    return flatten(m, a->args[0], inverse, out);
  }
  // The mark of a product stands for one of its factors, which is marked itself or is a number.
  if (a && a->op == Op::Tangent) {
    const auto* inner = get_if<Apply>(m, a->args[0]);
    if (inner && (inner->op == Op::Mul || inner->op == Op::Div || inner->op == Op::Neg))
      return flatten(m, a->args[0], inverse, out);
  }
  if (a && (a->op == Op::Mul || (a->op == Op::Div && !inverse))) {
    flatten(m, a->args[0], inverse, out);
    return flatten(m, a->args[1], inverse != (a->op == Op::Div), out);
  }
  (inverse ? out.den : out.num).push_back(e);
}

}  // namespace

Product as_product(const Module& m, ExprId e) {
  Product out;
  flatten(m, e, false, out);
  return out;
}

ExprId from_product(Module& m, const Product& p, DType type) {
  ExprId v;
  for (ExprId e : p.num) v = v ? mul(m, v, e) : e;
  if (!v) v = float_lit(m, 1, type);
  for (ExprId e : p.den) v = apply(m, Op::Div, {v, e});
  return v;
}

}  // namespace ein::core
