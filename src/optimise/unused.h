// Drops coordinates that nothing depends on. Locals of a clause become families with the coordinates
// of the clause in front, so they have cells for every cell of the clause. A recurrence there that
// does not use those coordinates,
//
//   let A[n in 1..10, x] = { let p[0, y] = A[n - 1, y]; let p[q in 1..5, y] = 0.5 * p[q - 1, y];
//   p[4, x] };
//
// would be computed again for every x. A coordinate is dropped if the family's own clauses only pass
// its index on, to the same coordinate or to another one that is dropped.
#pragma once

#include <vector>

#include "core/core.h"

namespace ein::optimise {

// Considers generated families that are not wanted, provided that evaluating a cell cannot stop the
// program, or that some cell is certainly evaluated anyway.
void drop_unused_coordinates(core::Module& m, const std::vector<core::FamilyId>& wanted);

}  // namespace ein::optimise
