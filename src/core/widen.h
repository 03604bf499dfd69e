// The same program in f64: every float family, input, literal, cast and function parameter that is
// narrower becomes f64, a literal as it was written; integers and booleans are untouched. Differences of a program are taken in
// its widened form, so that they measure its derivative and not the rounding of f32.
#pragma once

#include "core/core.h"
#include "core/eval.h"

namespace ein::core {

Module widen(Module m);
Inputs widen(const Inputs& inputs);

}  // namespace ein::core
