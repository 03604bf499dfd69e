// Sums of products in the form that contractions are found in: the whole of a clause, a product of
// two plain reads. `relu(sum[k](x[i, k] * W[k, j]) + b[j])` gets the sum a family of its own;
// factors and conditions that belong to one operand become part of that operand, which gets a
// family too; of several operands, two at a time are contracted, the cheapest pair first, with 256
// for an extent that is not known. A read under the condition that it is in bounds, as a
// convolution with padding has it, becomes a read of a copy with a rim of zeros. What all steps of
// a recurrence multiply by is copied into the order in which a product reads it.
//
// A condition that became a zero in an operand is still no multiplication: where the result is not
// finite, the sum is taken again as it was written.
#pragma once

#include <set>

#include "core/core.h"
#include "core/groups.h"

namespace ein::optimise {

// `order` is that of the module as it is; a coordinate that runs in sequence is none of an operand.
// The families in `except` stay as they are. Returns the copies that are there for their order
// alone.
std::set<core::FamilyId> isolate_contractions(core::Module& m, const core::Schedule& order,
                                              const std::set<core::FamilyId>& except = {});

}  // namespace ein::optimise
