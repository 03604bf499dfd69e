// One forward sweep: from the linear terms of every family on the path, one tangent family each.
//
// A term  coef · dX[at]  of G[i…] (with binders k…, gate g) contributes to the tangent of G
//
//   Ġ[i…, p…]  +=  Σ over k… where g   coef · Ẋ[at, p…]
//
// where p… are the addresses of the denominator, or of the directions when the sweep goes along
// given ones. The denominator's own tangent is the seed: one where the addresses agree, or the
// direction. The seed is never an array: `at == p` becomes a gate of each term that reads the
// denominator, which core::solve_gates solves, so the Jacobian of an element-wise map is gated to
// its diagonal and that of a sum over k reads its coefficient at k = p. A gate on a tangent is a
// gate on all that reads it. Tangents are ordinary families: that of a recurrence is the recurrence
// that reads the same earlier steps.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "autodiff/sweep.h"
#include "core/core.h"

namespace ein::autodiff {

// Directions in the space of a denominator, one per address of `coords` (none: one direction). Both
// expressions are over the denominator's coordinates (slots 0, 1, …), then over `coords`.
struct Along {
  core::FamilyId den;
  std::vector<core::Coord> coords;
  ExprId value;  // of the denominator's type
  ExprId gate;   // zero where it does not hold; invalid: holds everywhere
  std::string name;
};

struct Tangents {
  // Tangent families. Their coordinates: the family's own, then those of the denominator that are
  // not local, or the direction's. A family without an entry has a zero tangent (except for the
  // denominator's seed).
  std::map<core::FamilyId, core::FamilyId> family;
  bool along = false;  // a direction, not every cell
  std::optional<Problem> problem;
};

// The cone's families must be in normal form. Without `along`: every cell of the denominator.
Tangents push_forward(Module& m, const Sweep& sweep, const std::optional<Along>& along);

// d num[num_at] / d den[den_at], or along the direction at den_at, as an expression; invalid when
// it is structurally zero.
ExprId derivative(Module& m, const Sweep& sweep, const Tangents& tangents, core::FamilyId num,
                  const std::vector<ExprId>& num_at, const std::vector<ExprId>& den_at);

}  // namespace ein::autodiff
