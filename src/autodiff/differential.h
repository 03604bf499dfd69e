// `print(@y)`: how y moves when what it reads moves, as source:
//
//   @y[i] = sum[k](W[i, k] * @x[k]) + sum[k](x[k] * @W[i, k]) + @b[i]
//
// The terms are those that linearise.h gives every derivative. The result is text, which
// the effect prints.
#pragma once

#include "base/diag.h"
#include "core/core.h"

namespace ein::autodiff {

// Replaces every piece of an effect that asks for a differential (`@` as its format) by that text.
// Reports E0601 where there is none.
void print_differentials(core::Module& m, Diagnostics& diags);

}  // namespace ein::autodiff
