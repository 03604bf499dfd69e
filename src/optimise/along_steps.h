// Sums over the steps and the members of a small recurrence (members.h), such as the likelihood of a
// batch of filters or its gradient by a matrix that all of them share. A few sums of this kind are
// taken along with the steps: `sum[t, b](x[t, b] * x[t, b])` is the sum over `b` of what
//
//   total[t, b] = (total[t - 1, b] where t > 0) + x[t, b] * x[t, b];
//
// ends with. The steps need not be kept for the sum then (plan/follow.h), and its terms are computed
// in lanes from what is in registers. Only sums of f64: shorter floats would have to be added up in
// f64 (wide_sums.h), in half as many lanes.
#pragma once

#include "base/tuning.h"
#include "core/core.h"
#include "core/total.h"

namespace ein::optimise {

// Rewrites in place what `wanted` needs; true when anything changed.
bool sum_along_steps(core::Module& m, const std::vector<core::FamilyId>& wanted,
                     const Tuning& tuning, core::Overflow overflow);

}  // namespace ein::optimise
