#include "optimise/classify.h"

#include <algorithm>
#include <bit>

#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "optimise/operands.h"
#include "optimise/small_sums.h"

namespace ein::optimise {
namespace {

using namespace core;

// Whether the index is a sum of constant multiples of slots and terms without slots.
bool linear(const Module& m, ExprId e) {
  for (const auto& t : affine_form(m, e).terms) {
    if (m[t.atom].free != 0 && slot_of(m, t.atom) == ~0u) return false;
  }
  return true;
}

uint64_t slots_of(const Module& m, const Access& a) {
  uint64_t out = 0;
  for (ExprId e : a.at) out |= m[e].free;
  return out;
}

// A sum over a rectangle, of products of two linear accesses that are in bounds everywhere.
struct TwoFactors {
  ExprId reduce, a, b;
  uint64_t binders, of_a, of_b;
};

std::optional<TwoFactors> two_factors(Module& m, const Clause& clause, const Tuning& tuning) {
  const auto* found = get_if<Reduce>(m, clause.body);
  if (!found || found->op != ReduceOp::Sum || found->gate || !found->routes.empty()) return {};
  const Reduce r = *found;
  if (is_small(m, clause, r, tuning)) return {};
  DType type = m[r.body].type;
  if (type != DType::F32 && type != DType::F64) return {};
  const auto* product = get_if<Apply>(m, r.body);
  if (!product || product->op != Op::Mul) return {};
  TwoFactors out{
      clause.body, operand_read(m, product->args[0]), operand_read(m, product->args[1]), 0, 0, 0};
  if (!out.a || !out.b || m[out.a].type != m[out.b].type) return {};
  for (size_t i = 0; i < r.over.size(); ++i) {
    if (m[r.over[i].lo].free != 0 || m[r.over[i].hi].free != 0) return {};
    out.binders |= uint64_t{1} << (r.first + i);
  }
  Facts facts = clause_facts(m, clause);
  enter(m, r, facts);
  for (ExprId operand : {out.a, out.b}) {
    const auto copy = std::get<Access>(m[operand].node);  // a copy, because proofs add nodes
    for (ExprId e : copy.at) {
      if (!linear(m, e)) return {};
    }
    if (!in_bounds(m, copy, facts)) return {};
    (operand == out.a ? out.of_a : out.of_b) = slots_of(m, copy);
  }
  if (out.a == out.b) out.of_b = out.of_a;
  return out;
}

}  // namespace

std::optional<Contraction> classify(Module& m, const Clause& clause, uint64_t free,
                                    const Tuning& tuning) {
  auto p = two_factors(m, clause, tuning);
  if (!p) return std::nullopt;
  Contraction c{p->reduce, p->a, p->b, {}, {}, {}, {}, -1};
  for (uint32_t s = 0; s < kMaxSlots; ++s) {
    uint64_t bit = uint64_t{1} << s;
    bool in_a = p->of_a & bit, in_b = p->of_b & bit;
    if (p->binders & bit) {
      // If only one operand has the index, that operand should be summed first.
      if (!in_a || !in_b) return std::nullopt;
      c.k.push_back(s);
    } else if (free & bit) {
      if (in_a && in_b) c.batch.push_back(s);
      if (in_a && !in_b) c.m.push_back(s);
      if (!in_a && in_b) c.n.push_back(s);
      if (!in_a && !in_b) return std::nullopt;  // constant along it: compute it once, then copy
    }
  }
  // Products with vectors are limited by memory bandwidth, so a contraction would not be faster.
  if (c.m.empty() || c.n.empty()) return std::nullopt;
  // The last coordinate of the result must be a column, so that rows are written in order.
  auto last = static_cast<uint32_t>(clause.box.size()) - 1;
  if (std::count(c.m.begin(), c.m.end(), last) > 0) {
    std::swap(c.m, c.n);
    std::swap(c.a, c.b);
  }
  return c;
}

Stride step_along(const Module& m, const Access& access, uint32_t slot) {
  Stride out = Stride::None;
  for (size_t k = 0; k < access.at.size(); ++k) {
    if (!mentions_slot(m, access.at[k], slot)) continue;
    AffineForm form = affine_form(m, access.at[k]);
    bool unit = k + 1 == access.at.size();
    for (const auto& t : form.terms) {
      if (!mentions_slot(m, t.atom, slot)) continue;
      unit = unit && slot_of(m, t.atom) == slot && t.coef == 1;
    }
    out = unit && out == Stride::None ? Stride::Unit : Stride::Other;
  }
  return out;
}

bool lanes_legal(const Module& m, ExprId reduce) {
  const auto& r = std::get<Reduce>(m[reduce].node);
  switch (r.op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
    case ReduceOp::All:
    case ReduceOp::Any:
    case ReduceOp::Max:
    case ReduceOp::Min: return true;
    case ReduceOp::ArgMax:
    case ReduceOp::ArgMin:
    case ReduceOp::Collect: return false;
  }
  return false;
}

}  // namespace ein::optimise
