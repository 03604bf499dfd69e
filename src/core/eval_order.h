// The order in which the reference evaluator computes families. It shares nothing with the analyses
// that native code is planned by (groups, steps, bound): a mistake there shows as a difference
// between the two. No value depends on this order, only the time it takes: a cell that is read
// before it was computed is computed then.
#pragma once

#include <vector>

#include "core/core.h"

namespace ein::core {

// Families that read each other, or one alone.
struct EvalGroup {
  std::vector<FamilyId> members;
  bool cyclic = false;  // a member reads itself or another

  // A guess: members whose cells are best computed step by step, and along which coordinate.
  struct Walk {
    FamilyId family;
    uint32_t position;
  };
  std::vector<Walk> walks;
  bool downward = false;
};

// `wanted` and everything they read (all families when empty); what a group reads stands before it.
std::vector<EvalGroup> eval_order(const Module& m, const std::vector<FamilyId>& wanted);

}  // namespace ein::core
