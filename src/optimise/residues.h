// Sums of products that depend on a coordinate by its quotient and remainder, as the derivative of a
// convolution with a stride does: `dx[h]` adds up `dy[(h + 1) / 2 - k] * w[2 * k + (h + 1) % 2]`.
// For each remainder it is a sum without either, along every second `h`: an array of its own, which
// may be a contraction. What is left is to read from the right one of them.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// Rewrites in place; true when anything changed.
bool split_residues(core::Module& m);

}  // namespace ein::optimise
