// Coordinates that nothing depends on. What a block inside a clause defines has a cell for every
// cell of the clause (design: locals become families that carry the coordinates around them); a
// recurrence there that does not read them,
//
//   let A[n in 1..10, x] = { let p[0, y] = A[n - 1, y]; let p[q in 1..5, y] = 0.5 * p[q - 1, y];
//   p[4, x] };
//
// would be computed again for every x. A coordinate whose index stands in the family's own clauses
// only where it is handed on, to itself or to another such coordinate, is dropped.
#pragma once

#include <vector>

#include "core/core.h"

namespace ein::optimise {

// Of generated families that are not wanted, where evaluating a cell cannot stop the program, or
// there surely is one.
void drop_unused_coordinates(core::Module& m, const std::vector<core::FamilyId>& wanted);

}  // namespace ein::optimise
