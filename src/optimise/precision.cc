#include "optimise/precision.h"

#include <algorithm>
#include <set>

#include "core/build.h"
#include "core/product.h"
#include "core/rewrite.h"

namespace ein::optimise {

using namespace core;

namespace {

uint64_t binders_of(const Reduce& r) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < r.over.size(); ++i) out |= uint64_t{1} << (r.first + i);
  return out;
}

// The reduction with its factors rounded; unchanged if it is not a sum of products.
ExprId rounded(Module& m, ExprId e, DType to) {
  const auto* found = get_if<Reduce>(m, e);
  if (!found || found->op != ReduceOp::Sum || m[e].type != DType::F32) return e;
  Reduce r = *found;
  Product p = as_product(m, r.body);
  uint64_t binders = binders_of(r);
  std::set<ExprId> factors;
  for (ExprId f : p.num) {
    if (m[f].free & binders) factors.insert(f);
  }
  if (factors.size() < 2) return e;
  for (ExprId& f : p.num) {
    if (!factors.count(f)) continue;
    const auto* wide = get_if<Apply>(m, f);
    bool is_short = wide && wide->op == Op::Cast && m[wide->args[0]].type == to;
    if (!is_short) f = cast(m, cast(m, f, to), DType::F32);
  }
  r.body = from_product(m, p, DType::F32);
  if (p.negative) r.body = apply(m, Op::Neg, {r.body});
  return reduce(m, std::move(r), m[e].span);
}

}  // namespace

void round_operands(Module& m, DType to) {
  if (to == DType::F32) return;
  auto round = [&](ExprId e) { return rounded(m, e, to); };
  rewrite_all(m, [&](ExprId e) { return rewrite(m, e, round); });
}

bool is_rounded(const Module& m, ExprId e, DType to) {
  const auto* wide = get_if<Apply>(m, e);
  if (!wide || wide->op != Op::Cast || m[e].type != DType::F32) return false;
  const auto* narrow = get_if<Apply>(m, wide->args[0]);
  return narrow && narrow->op == Op::Cast && m[wide->args[0]].type == to &&
         m[narrow->args[0]].type == DType::F32;
}

}  // namespace ein::optimise
