// Sums over the steps and the members of a small recurrence (members.h), such as the likelihood of a
// batch of filters, or its gradient with respect to a matrix that all of them share. Sums with few
// cells are added up while the steps run: `sum[t, b](x[t, b] * x[t, b])` is the sum over `b` of the
// last step of
//
//   total[t, b] = (total[t - 1, b] where t > 0) + x[t, b] * x[t, b];
//
// Then the steps need not be kept for the sum (plan/follow.h), and its terms are computed in lanes
// from values that are still in registers. This applies to sums of f64 only: shorter floats would
// have to be added up in f64 (wide_sums.h), in half as many lanes.
#pragma once

#include "base/tuning.h"
#include "core/core.h"
#include "core/total.h"

namespace ein::optimise {

// Rewrites, in place, what `wanted` needs. True if anything changed.
bool sum_along_steps(core::Module& m, const std::vector<core::FamilyId>& wanted,
                     const Tuning& tuning, core::Overflow overflow);

}  // namespace ein::optimise
