// Recurrences along the last coordinate, `s[i, k] = x[i, k] + 0.5 * s[i, k - 1]`. Run step by step,
// each step would touch one cell of every row, far apart in memory. If rows do not read each other,
// the loops are exchanged: some rows at a time, in lanes, each from its first step to its last.
//
// Between two polls of the caller about `unwatched_work` operations run (some milliseconds), but at
// least `unwatched_parts` parts, so that threads have work. A row runs from its first step to its
// last without a poll, however long it is.
#pragma once

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// Whether the rows of a Sequence may run this way: every family in it is a member and steps along
// its last coordinate, and all other coordinates are the same, are covered completely, and are read
// unchanged.
bool runs_by_rows(core::Module& m, const core::Sequence& q);
// How many simple operations one step of one row takes, roughly.
int64_t work_of_step(const core::Module& m, const core::Sequence& q);

}  // namespace ein::plan
