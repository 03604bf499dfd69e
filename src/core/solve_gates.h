// Solves gates in Core, after sema and for what autodiff and `simplify` make, so that no gated reduction costs more than
// the cells that pass its gate:
//
//   sum[oh, kh](g[oh] * w[kh] where oh + kh == ih)
//     →  sum[kh](g[ih - kh] * w[kh] where 0 <= ih - kh < OH)
//   sum[oh, kh](… where 2*oh + kh == ih)
//     →  by residue class: kh := 2*q + ih % 2, oh := ih / 2 - q
//   sum[h, e in 0..64](… where 64*h + e == i)
//     →  by digits: h := i / 64, e := i % 64
//   sum[k](g[k] where idx[k] == r), r a coordinate
//     →  a route: one pass over k, adding to address idx[k]
//
// An equality eliminates the first binder (in binder order) it can: that is the one the transpose
// of an access adds for the output coordinate, so a convolution's gradient reads `ih - kh`.
// Conditions that the ranges in scope imply are dropped; conditions they contradict make the
// reduction its identity; a binder with one value is replaced by it. The result is a fixpoint:
// solving twice changes nothing.
#pragma once

#include "core/core.h"

namespace ein::core {

// All families, after reductions in the ends of ranges became families (normal.h).
void solve_gates(Module& m);
void solve_gates(Module& m, FamilyId family);

}  // namespace ein::core
