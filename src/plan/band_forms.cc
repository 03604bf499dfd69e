#include "plan/band_forms.h"

#include "core/build.h"

namespace ein::plan {

using namespace core;

const Contraction* product_of(const Plan& plan, FamilyId id) {
  const FamilyPlan& p = plan.families.at(id);
  return p.clauses.size() == 1 && p.clauses[0].contraction ? &*p.clauses[0].contraction : nullptr;
}

std::optional<Repaired> repaired(const Module& m, FamilyId id) {
  const Family& f = m[id];
  if (f.kind != Family::Kind::Defined || f.clauses.size() != 1) return std::nullopt;
  const auto* choice = get_if<core::Apply>(m, f.clauses[0].body);
  if (!choice || choice->op != Op::Select) return std::nullopt;
  Repaired out{get_if<Access>(m, choice->args[1]), get_if<Reduce>(m, choice->args[2])};
  if (!out.product || !out.sum || out.sum->op != ReduceOp::Sum) return std::nullopt;
  const auto* cond = get_if<core::Apply>(m, choice->args[0]);
  if (!cond || cond->op != Op::Eq) return std::nullopt;
  const auto* difference = get_if<core::Apply>(m, cond->args[0]);
  bool finite = difference && difference->op == Op::Sub &&
                difference->args == std::vector<ExprId>(2, choice->args[1]);
  if (!finite) return std::nullopt;
  for (uint32_t k = 0; k < out.product->at.size(); ++k) {
    if (slot_of(m, out.product->at[k]) != k) return std::nullopt;
  }
  return out.product->at.size() == f.rank() ? std::optional(out) : std::nullopt;
}

}  // namespace ein::plan
