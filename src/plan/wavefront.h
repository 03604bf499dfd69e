// Recurrences along two coordinates, as tables of dynamic programming are: every cell reads cells
// with smaller indices, a fixed distance away. Cells on one diagonal do not read each other, so the
// table may be run diagonal by diagonal, each in lanes.
#pragma once

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// May the outer of two nested Sequences run this way? Both count in the same direction, nothing
// else stands in the outer one, and all members have these two coordinates only, neither of them
// known to be shorter than `fewest`.
bool runs_by_diagonals(core::Module& m, const core::Sequence& outer, int64_t fewest);

}  // namespace ein::plan
