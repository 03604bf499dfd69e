// Private: the shapes of families that bands are made of.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace ein::plan {

// The product that a family is, if its only clause is one.
const Contraction* product_of(const Plan& plan, core::FamilyId id);

// A clause of the form: `x` if x is finite, otherwise the sum that x stands for, computed as
// written.
struct Repaired {
  const core::Access* product;
  const core::Reduce* sum;
};
std::optional<Repaired> repaired(const core::Module& m, core::FamilyId id);

}  // namespace ein::plan
