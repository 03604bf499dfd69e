// Sums with few terms, which filters and equations of motion compute at every step. The operands of
// such sums are not worth a family, let alone a call. But a product of three matrices that is summed
// as written takes n⁴ multiplications where n³ are enough. So
// - a sum of products is split binder by binder, and each binder is summed around those factors only
//   that have it: `sum[j, k](A[i, j] * B[j, k] * c[k])` becomes
//   `sum[j](A[i, j] * sum[k](B[j, k] * c[k]))`. If the loops are written out, inner sums that occur
//   twice are computed once.
// - a sum over few indices some of which contribute nothing (`if i == 2 { x } else { 0 }`) is reduced
//   to the terms that do.
#pragma once

#include "base/tuning.h"
#include "core/core.h"

namespace ein::optimise {

// Whether the sum is small: at most one extent, of the clause's coordinates and of the binders, is
// not a small constant; or the binders are short, and one factor has all long coordinates of the
// other, so that a cell of either is used only a few times.
bool is_small(const core::Module& m, const core::Clause& clause, const core::Reduce& r,
              const Tuning& tuning);

void split_small_sums(core::Module& m, const Tuning& tuning);

}  // namespace ein::optimise
