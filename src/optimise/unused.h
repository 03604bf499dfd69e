// Drops coordinates that nothing depends on. What a block inside a clause defines has a cell for
// every cell of the clause (locals become families that carry the coordinates around them). A
// recurrence there that does not read those coordinates,
//
//   let A[n in 1..10, x] = { let p[0, y] = A[n - 1, y]; let p[q in 1..5, y] = 0.5 * p[q - 1, y];
//   p[4, x] };
//
// would be computed again for every x. A coordinate is dropped if the family's own clauses use its
// index only to hand it on, to itself or to another such coordinate.
#pragma once

#include <vector>

#include "core/core.h"

namespace ein::optimise {

// For generated families that are not wanted, if evaluating a cell cannot stop the program or some
// cell is certainly evaluated anyway.
void drop_unused_coordinates(core::Module& m, const std::vector<core::FamilyId>& wanted);

}  // namespace ein::optimise
