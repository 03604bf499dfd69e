// Recurrences along two coordinates, such as the tables of dynamic programming: every cell reads
// cells with smaller indices, a fixed distance away. Cells on one diagonal do not read each other,
// so the table can be computed diagonal by diagonal, each diagonal in lanes.
#pragma once

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// Whether the outer of two nested Sequences may run this way: both run in the same direction, the
// outer one contains nothing else, and all members have only these two coordinates, neither of
// which is known to be shorter than `fewest`.
bool runs_by_diagonals(core::Module& m, const core::Sequence& outer, int64_t fewest);

}  // namespace ein::plan
