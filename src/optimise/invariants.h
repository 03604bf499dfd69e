// Computes once what loops would repeat. If the loops around an expression that it does not depend
// on are all inside of those that it depends on, nothing needs to be done: lowering computes it
// before the inner loops. But in `sum[r](exp(q[k, r]) * x[n, k, r])` for every `n` and `k`, the
// exponential is inside a loop over `n`, on which it does not depend, and that loop contains the
// loops over `k` and `r`, on which it does. It becomes an array over `k` and `r`. The same is done
// with other expressions that contain an elementary function or a division, provided that they may
// be evaluated everywhere.
#pragma once

#include "base/tuning.h"
#include "core/core.h"

namespace ein::optimise {

// Rewrites, in place, what `wanted` needs. True if anything changed.
bool isolate_invariants(core::Module& m, const std::vector<core::FamilyId>& wanted,
                        const Tuning& tuning);

}  // namespace ein::optimise
