// Sums whose cells are added one after the other are computed in f64. A running sum becomes a
// recurrence (scan.h), and a routed sum adds to memory, so neither can be added up in blocks like
// other sums; in f32, a million cells would lose half of their digits. So they become sums of f64
// that are rounded when they are read: `sum[k in 0..=i](x[k])` is `(sum[k in 0..=i](x[k] as f64))
// as f32`. Sums of f64 stay as they are.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// Gives routed sums families of their own, in f64. True if anything changed.
bool widen_routed_sums(core::Module& m);

// For a clause that is a sum of floats shorter than f64: the sum becomes an f64 family of its own.
void widen_clause(core::Module& m, core::FamilyId id, size_t number);

// The sum in f64, rounded, as a replacement for `sum`. Invalid if `sum` is not a sum of floats
// shorter than f64.
core::ExprId widened_sum(core::Module& m, core::ExprId sum);

}  // namespace ein::optimise
