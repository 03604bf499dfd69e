// Sums with few terms, as filters and equations of motion have them at every step. Operands of such
// sums are not worth a family, let alone a call. But a product of three matrices that is summed as
// written takes n⁴ multiplications where n³ are enough. So
// - a sum of products is taken apart binder by binder, each summed where all factors that have it
//   come together: `sum[j, k](A[i, j] * B[j, k] * c[k])` is
//   `sum[j](A[i, j] * sum[k](B[j, k] * c[k]))`. Where the loops are written out, inner sums that
//   occur twice are computed once.
// - a sum over few indices of which some contribute nothing (`if i == 2 { x } else { 0 }`) becomes
//   the terms that do.
#pragma once

#include "base/tuning.h"
#include "core/core.h"

namespace ein::optimise {

// At most one extent, of the clause's coordinates and of the binders, is not a small constant; or
// the binders are short, and one factor of the product has all long coordinates of the other: then a
// cell of either is used a few times only.
bool is_small(const core::Module& m, const core::Clause& clause, const core::Reduce& r,
              const Tuning& tuning);

void split_small_sums(core::Module& m, const Tuning& tuning);

}  // namespace ein::optimise
