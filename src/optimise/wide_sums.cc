#include "optimise/wide_sums.h"

#include "core/build.h"

namespace ein::optimise {

using namespace core;

namespace {

bool is_short_sum(const Module& m, const Reduce& r) {
  DType type = m[r.body].type;
  return r.op == ReduceOp::Sum && is_float(type) && type != DType::F64;
}

// A new family that has this clause of `id`, in f64, and zeros elsewhere.
FamilyId wide_family(Module& m, FamilyId id, size_t number) {
  Family out = m[id];
  out.name = fresh_name(m, text(out.name) + "_wide");
  out.dtype = DType::F64;
  out.generated = true;
  out.checkpoint = 0;
  out.with.clear();
  for (size_t c = 0; c < out.clauses.size(); ++c) {
    ExprId& body = out.clauses[c].body;
    if (c != number) {
      body = float_lit(m, 0, DType::F64);
      continue;
    }
    Reduce r = std::get<Reduce>(m[body].node);
    r.body = cast(m, r.body, DType::F64);
    body = reduce(m, r, m[body].span);
  }
  return m.families.add(std::move(out));
}

}  // namespace

void widen_clause(Module& m, FamilyId id, size_t number) {
  Span span = m[m[id].clauses[number].body].span;
  FamilyId wide = wide_family(m, id, number);
  std::vector<ExprId> at;
  for (uint32_t k = 0; k < m[id].rank(); ++k) at.push_back(slot(m, k));
  m.families[id].clauses[number].body = cast(m, access(m, wide, at, span), m[id].dtype);
}

bool widen_routed_sums(Module& m) {
  bool any = false;
  const auto families = static_cast<uint32_t>(m.families.size());
  for (uint32_t i = 0; i < families; ++i) {
    FamilyId id(i);
    for (size_t c = 0; c < m[id].clauses.size(); ++c) {
      ExprId body = m[id].clauses[c].body;
      const auto* r = get_if<Reduce>(m, body);
      if (!r || r->routes.empty() || !is_short_sum(m, *r)) continue;
      widen_clause(m, id, c);
      any = true;
    }
  }
  return any;
}

ExprId widened_sum(Module& m, ExprId sum) {
  const auto* found = get_if<Reduce>(m, sum);
  if (!found || !is_short_sum(m, *found)) return {};
  Reduce r = *found;
  DType type = m[r.body].type;
  r.body = cast(m, r.body, DType::F64);
  return cast(m, reduce(m, r, m[sum].span), type);
}

}  // namespace ein::optimise
