// Values computed from the steps of a recurrence, such as `loss[s] = mean[n](… w[s, n] …)`, run
// along with it if that saves memory: once nothing needs the steps afterwards, the recurrence keeps
// only the last few. A follower may read the recurrence and other followers at its own step or
// earlier ones; everything else that it reads must be known before the first step.
//
// In the other direction, a value that is computed before the recurrence and read one step at a
// time, such as the data that a training step draws, can be computed in that step; then only its
// last few steps are kept, too. This is done for large values only, because computed in advance all
// their steps are shared among the threads.
#pragma once

#include "base/tuning.h"
#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// Adds the worthwhile locksteps to the module and returns the schedule with them. Recurrences that
// may stop early still may.
core::Schedule follow_steps(core::Module& m, const std::vector<core::FamilyId>& wanted,
                            const Tuning& tuning, core::Schedule order);

}  // namespace ein::plan
