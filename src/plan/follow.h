// Values computed from the steps of a recurrence, such as `loss[s] = mean[n](… w[s, n] …)`, run along
// with it where that saves memory: once the recurrence need not keep its steps for them, it keeps
// the last few. A follower reads, of the recurrence and of other followers, its own step or ones
// that are done by then, and otherwise only what is there before the first step.
#pragma once

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// Adds the locksteps that are worth it to the module, and gives the schedule with them. A recurrence
// that can be left early still can.
core::Schedule follow_steps(core::Module& m, const std::vector<core::FamilyId>& wanted,
                            core::Schedule order);

}  // namespace ein::plan
