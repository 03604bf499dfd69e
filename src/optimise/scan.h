// Running reductions in linear time. A reduction whose range grows with a coordinate by one cell at
// a time, `sum[k in 0..i + 1](x[k])`, is the cell before it and one more: a recurrence along that
// coordinate. Likewise from the other end, and with the range written as a condition, `where k <=
// i`. Floating-point sums keep their order on the way up; on the way down they are added from the
// far end. Those of f32, f16 and bf16 run in f64 (wide_sums.h).
//
// The reduction need not be the whole of a clause; where it is not, it becomes a family of its own,
// if it may be evaluated everywhere.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// Rewrites in place; true when anything changed. Not where integer overflow stops the program: the
// sums on the way are others.
bool make_scans(core::Module& m);

}  // namespace ein::optimise
