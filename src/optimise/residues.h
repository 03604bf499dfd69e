// Sums of products that depend on a coordinate through its quotient and remainder, like the
// derivative of a strided convolution: `dx[h]` adds up `dy[(h + 1) / 2 - k] * w[2 * k + (h + 1) %
// 2]`. For each remainder, every second `h`, the sum needs no division: it becomes an array of its
// own, which may be a contraction. The original array then reads the one for its remainder.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// Rewrites in place. True if anything changed.
bool split_residues(core::Module& m);

}  // namespace ein::optimise
