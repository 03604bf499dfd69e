// Sums whose cells are added one after the other, in f64. A running sum becomes a recurrence
// (scan.h) and a routed one adds to memory, so neither can be taken in blocks, as all other sums
// are; in f32 a million cells would lose half of their digits. So they become sums of f64, rounded
// when they are read: `sum[k in 0..=i](x[k])` is `(sum[k in 0..=i](x[k] as f64)) as f32`. Sums of
// f64 stay as they are.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// Routed sums become families of their own. True when anything changed.
bool widen_routed_sums(core::Module& m);

// A clause that is a sum of short floats: the sum becomes a family of its own, of f64.
void widen_clause(core::Module& m, core::FamilyId id, size_t number);

// The sum in f64, rounded: what takes its place. Invalid where it is none of short floats.
core::ExprId widened_sum(core::Module& m, core::ExprId sum);

}  // namespace ein::optimise
