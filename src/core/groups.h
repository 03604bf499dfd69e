// The order in which families are computed. Recurrence groups are an analysis, not a node: strongly
// connected components of the family graph; inside one, choose a coordinate along which every read
// goes backward (or every read forward), run it in sequence, delete the edges it carries, recurse
// (Allen–Kennedy). The result is a tree of steps that lowering turns into loops. The reference
// evaluator has an order of its own (eval_order.h).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/core.h"

namespace ein::core {

// Compute every cell of `family` (inside a Sequence: every cell of the current slice).
struct Compute {
  FamilyId family;
};

// Run one coordinate of several families in step: for t = 0, 1, … (or downward) run `body` with
// coordinate `position` of each member fixed at t. A member whose extent is ≤ t skips the step.
struct Sequence {
  using Member = Lockstep::Member;
  std::vector<Member> members;
  bool downward = false;
  std::vector<std::variant<Compute, Sequence>> body;
};

using Step = std::variant<Compute, Sequence>;

// Reads that no loop order satisfies, for the error message.
struct Cycle {
  std::vector<FamilyId> families;
  std::vector<ExprId> reads;  // Access nodes on the cycle
};

struct Schedule {
  std::vector<Step> steps;
  std::optional<Cycle> cycle;  // set when some group has no legal order; then `steps` is incomplete
};

// Schedules `wanted` and everything they read (all defined families when empty). Inputs and tables
// are included as Compute steps too (a table's cells may read scalars).
Schedule schedule(Module& m, const std::vector<FamilyId>& wanted);

// The families that these steps compute, in order.
std::vector<FamilyId> families_of(const std::vector<Step>& steps);

}  // namespace ein::core
