// Values computed from the steps of a recurrence, such as `loss[s] = mean[n](… w[s, n] …)`, run along
// with it where that saves memory: once the recurrence need not keep its steps for them, it keeps
// the last few. A follower reads, of the recurrence and of other followers, its own step or ones
// that are done by then, and otherwise only what is there before the first step.
//
// The other way round, a value that is there before the first step and is read one step at a time,
// such as the data that a training step draws, is computed in that step: then it keeps the last few
// steps too. Only a large one is: computed ahead, all its steps are shared among the threads.
#pragma once

#include "base/tuning.h"
#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// Adds the locksteps that are worth it to the module, and gives the schedule with them. A recurrence
// that can be left early still can.
core::Schedule follow_steps(core::Module& m, const std::vector<core::FamilyId>& wanted,
                            const Tuning& tuning, core::Schedule order);

}  // namespace ein::plan
