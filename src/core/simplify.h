// The legal algebra on derived families, written once. Each rule keeps every finite result up to
// the rounding of one reassociated sum, and never lets a gated-out value out of its gate:
//
//   sum[k](c * x[k])                     →  c * sum[k](x[k])
//                                            (no gate; also / c and unary -. Either k has values or
//                                            c is certainly finite: the sum of nothing is 0, and
//                                            0 * c need not be.)
//   sum[j, k](x[j])                      →  sum[j](x[j]) * n          (n values of k)
//   sum[k](if g { v } else { 0 })        →  sum[k](v where g)
//   sum[k](v where g, h), g free of k    →  if g { sum[k](v where h) } else { 0 }
//   if g { if h { v } else { 0 } } else { 0 }  →  if g && h { v } else { 0 }
//   (if g { v } else { 0 }) + (if g { w } else { 0 })  →  if g { v + w } else { 0 }
//   (if g { v } else { 0 }) * w          →  if g { v * w } else { 0 }
//                                            (tangents only; also / w and unary -)
//
// The last rule turns 0 · inf and 0 / 0 into 0, so it is only for zeros by structure: those of an
// adjoint or tangent whose gate fails. A zero that the program computes is a number. Which is which
// follows from the place. The definition of an adjoint or tangent is a tangent, and so is what
// `tidy` inlined from one; `tidy` marks that with Op::Tangent, which is free again once rules are
// gone. The operands of a sum, selection or reduction that is a tangent are tangents. Of a product
// one factor is a tangent, the marked one, and the others are values. `drop_marks` removes the
// marks at the end.
//
// Only families made by the compiler, or whose body came from a request, are simplified: what the
// user wrote is computed as written.
#pragma once

#include "core/core.h"

namespace ein::core {

void simplify(Module& m, FamilyId family);

// An expression from inside the reduction that mentions none of its binders, as it reads outside:
// reductions in it are renumbered.
ExprId lift(Module& m, const Reduce& r, ExprId e);

ExprId mark_tangent(Module& m, ExprId e);    // reads and numbers need none
ExprId unmarked(const Module& m, ExprId e);  // without a mark around all of it
void drop_marks(Module& m);

}  // namespace ein::core
