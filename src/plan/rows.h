// Recurrences along the last coordinate, `s[i, k] = x[i, k] + 0.5 * s[i, k - 1]`. Run step by
// step, each step would touch one cell of every row, far apart in memory. Where rows do not
// read each other the loops change places: some rows at a time, in lanes, each from its first
// step to its last.
//
// Between two polls about `unwatched_work` operations run (some milliseconds), but at least
// `unwatched_parts` parts, so that threads have work. A row runs from its first step to its last
// without a poll, however long it is.
#pragma once

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// May the rows of a Sequence run this way? Everything in it is a member and runs along its last
// coordinate; all other coordinates are the same ones, run whole, and are read where they stand.
bool runs_by_rows(core::Module& m, const core::Sequence& q);
// Simple operations in one step of one row, roughly.
int64_t work_of_step(const core::Module& m, const core::Sequence& q);

}  // namespace ein::plan
