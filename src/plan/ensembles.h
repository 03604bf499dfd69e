// Ensembles: a recurrence of a few numbers that runs for many members side by side, such as a batch
// of filters, or trajectories with different starts. No member reads another one. So instead of
// computing one step for all members and then the next, each member runs from its first step to its
// last. Its state stays in registers, and a vector register holds one member in each lane.
#pragma once

#include "plan/plan.h"

namespace ein::plan {

// Finds the recurrences that run this way, and changes their plans: no lanes along other
// coordinates, and no products that are calls.
void find_ensembles(Plan& plan);

}  // namespace ein::plan
