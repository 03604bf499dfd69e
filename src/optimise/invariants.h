// What does not change in the loops around it is computed once. A loop around everything that an
// expression depends on needs nothing for that: lowering computes it before the loops inside. But in
// `sum[r](exp(q[k, r]) * x[n, k, r])` for every `n` and `k` the exponential stands inside of a loop
// over `n` that it does not depend on, and depends on loops inside of that: it becomes an array over
// `k` and `r`. So do other expressions with an elementary function or a division, where they may be
// evaluated everywhere.
#pragma once

#include "base/tuning.h"
#include "core/core.h"

namespace ein::optimise {

// Rewrites in place what `wanted` needs; true when anything changed.
bool isolate_invariants(core::Module& m, const std::vector<core::FamilyId>& wanted,
                        const Tuning& tuning);

}  // namespace ein::optimise
