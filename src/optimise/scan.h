// Running reductions in linear time. A reduction whose range grows with a coordinate by one cell at
// a time, `sum[k in 0..i + 1](x[k])`, equals the previous cell and one more term: a recurrence
// along that coordinate. The same holds from the other end, and with the range written as a
// condition, `where k <= i`. Floating-point sums keep their order if the range grows upward; if it
// grows downward, they are added from the far end. Sums of f32, f16 and bf16 are computed in f64
// (wide_sums.h).
//
// The reduction need not be a whole clause. Otherwise it becomes a family of its own, provided that
// it may be evaluated everywhere.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// Rewrites in place. True if anything changed. Not for programs that stop at integer overflow: the
// partial sums would differ.
bool make_scans(core::Module& m, int64_t short_extent);

}  // namespace ein::optimise
