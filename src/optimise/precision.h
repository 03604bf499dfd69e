// Mixed precision: rounds the factors of a sum of products to a short float; the products and the
// sum stay f32. `sum[k](x[i, k] * W[k, j])` becomes `sum[k]((x[i, k] as bf16 as f32) * (W[k, j] as
// bf16 as f32))`. This only applies to sums with at least two different factors that depend on the
// summed index: a square, or a product with a constant, is not rounded.
//
// Derivatives are taken before, so they are those of the program as written. Their own sums of
// products are rounded like any other.
#pragma once

#include "core/core.h"

namespace ein::optimise {

// `to` is F16 or BF16; F32 leaves the module as it is.
void round_operands(core::Module& m, DType to);
// Whether `e` is a factor that was rounded this way.
bool is_rounded(const core::Module& m, core::ExprId e, DType to);

}  // namespace ein::optimise
