// Brings sums of products into the form in which contractions are recognised: a whole clause, a
// product of two plain reads. In `relu(sum[k](x[i, k] * W[k, j]) + b[j])` the sum gets a family of
// its own. Factors and conditions that concern one operand only become part of it, and that operand
// gets a family, too. A product of more than two operands is contracted in pairs, the cheapest pair
// first; an unknown extent counts as 256. A read under the condition that it is in bounds, as in a
// convolution with padding, becomes a read of a copy with a rim of zeros. An operand that does not
// change between the steps of a recurrence is copied into the order in which the product reads it.
//
// A condition that became zeros in an operand must not act as a multiplication: if the result is
// not finite, the sum is computed again as it was written.
#pragma once

#include <set>

#include "base/tuning.h"
#include "core/core.h"
#include "core/groups.h"

namespace ein::optimise {

// `order` is the schedule of the module as it is. An operand must not carry a sequential
// coordinate. The families in `except` stay as they are. Returns the copies that were made only to
// change the order of coordinates.
std::set<core::FamilyId> isolate_contractions(core::Module& m, const core::Schedule& order,
                                              const std::set<core::FamilyId>& except,
                                              const Tuning& tuning);

}  // namespace ein::optimise
