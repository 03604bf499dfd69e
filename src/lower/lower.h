// Core + Plan → Loops. Every family of the plan's schedule becomes loops over the boxes of its
// clauses, in the order of the schedule, with the axes and lanes that the plan says.
//
// Where a value is computed: lowering keeps a stack of scopes, one for each open loop or branch, and
// puts every value into the outermost scope that has all it needs, which is the innermost of those
// that bind its slots. So a loop-invariant value leaves its loop, even if it is a reduction. Three
// rules keep that sound:
// - An access that is in bounds only by the facts of some inner scope (a gate, a loop's range) stays
//   in that scope. An access that is not proven gets a Check. A Check leaves a loop only together
//   with the condition that the loop runs at all, and never leaves a branch.
// - A reduction, or a selection that needs branches, leaves loops only when it is total at its
//   destination, and leaves a branch only together with a loop around it (it may be expensive).
// - A read of a family that a surrounding Sequence computes stays inside the clause that reads it.
//
// Select, && and || become strict operations where the lazy side is total and cheap, and branches
// elsewhere. Affine conditions of a reduction's gate on its binders become loop bounds.
#pragma once

#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::lower {

// The plan's module gains nodes (proofs and bounds are built in its arena); its meaning stays.
loops::Program lower(plan::Plan& plan);

}  // namespace ein::lower
