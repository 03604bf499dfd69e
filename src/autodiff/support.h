// Where the adjoint of a recurrence is zero because nothing has come back yet. With `loss = h[2]`
// the adjoint g of h is zero for every later step:
//
//   g[t] = (if t == 2 { 1.0 } else { 0.0 }) + g[t + 1] * w * slope(h[t + 1])
//
// but computed as written, 0 times an infinite slope is NaN, and it would come back to the steps
// that matter. So the steps past the last seed get a clause of their own, which is zero, as for a
// person (or a tape) that starts where the sensitivity starts.
#pragma once

#include <set>

#include "core/core.h"

namespace ein::autodiff {

// Cuts the recurrences among `adjoints` (generated families) that run along one coordinate.
void start_at_seeds(core::Module& m, const std::set<core::FamilyId>& adjoints);

}  // namespace ein::autodiff
