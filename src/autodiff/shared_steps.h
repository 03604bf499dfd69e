// Requests inside recurrences. In
//
//   let W[s in 1..S] = { let w = W[s - 1]; let x = 0.3; let loss = f(w, x); w - lr * @loss / @w };
//
// numerator and denominator are taken at one step of the recurrence that the request stands in:
// another step is another binding (decisions.md, 23). Their derivative runs along reads of that
// step alone. By causality there are no other paths between them: reads go to earlier steps, never
// back. A denominator may also be a local that does not depend on the recurrence, such as `x`; then
// it is proven that no value between the two reads a later step.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "autodiff/requests.h"
#include "autodiff/sweep.h"
#include "core/groups.h"

namespace ein::autodiff {

// The sequences around a family, outermost first.
using Chain = std::vector<const core::Sequence*>;

// A schedule, and where each family stands in it.
struct Order {
  core::Schedule schedule;
  std::map<core::FamilyId, Chain> around;
};

// For the families that hold these requests and all they read; nothing else matters to them.
std::unique_ptr<Order> find_order(Module& m, const std::vector<Asked>& asked);

// The coordinates that the request's numerator and denominator share as steps of the recurrence the
// request stands in, for every family that has them. Empty: none. `stuck`: the request stands in
// their recurrence but asks across steps. `outside`: a denominator outside the recurrence also
// counts as a local of its step.
Positions shared_steps(Module& m, Order& order, const Asked& asked, bool outside, bool& stuck);

}  // namespace ein::autodiff
