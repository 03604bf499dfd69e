// Ensembles: a recurrence of a few numbers that runs for many members side by side, such as a batch
// of filters or of trajectories with different starts. No member reads another one, so instead of
// all members of a step, then all of the next, each member goes from its first step to its last:
// its state stays in registers, and as many members as a vector has lanes run at once.
#pragma once

#include "plan/plan.h"

namespace ein::plan {

// Finds the recurrences that run this way, and gives their clauses the form for it: no lanes and no
// products of their own.
void find_ensembles(Plan& plan);

}  // namespace ein::plan
