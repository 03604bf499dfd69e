// Recurrences along the last coordinate, `s[i, k] = x[i, k] + 0.5 * s[i, k - 1]`. Run step by
// step, each step would touch one cell of every row, far apart in memory. Where rows do not
// read each other the loops change places: some rows at a time, in lanes, each from its first
// step to its last.
#pragma once

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// How much runs before the caller may stop it: this many simple operations (some milliseconds), but
// at least this many parts, for threads to share. A row runs from its first step to its last
// without a stop, however long it is.
constexpr int64_t kWorkUnwatched = 1 << 24, kFewestParts = 16;

// May the rows of a Sequence run this way? Everything in it is a member and runs along its last
// coordinate; all other coordinates are the same ones, run whole, and are read where they stand.
bool runs_by_rows(core::Module& m, const core::Sequence& q);
// Simple operations in one step of one row, roughly.
int64_t work_of_step(const core::Module& m, const core::Sequence& q);

}  // namespace ein::plan
