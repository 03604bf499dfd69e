// The same program in f64: every float family, input, literal, cast and function parameter that is
// narrower becomes f64, a literal with the digits it was written with; integers and booleans are
// untouched. Finite differences are taken of the widened program, so that they measure its
// derivative and not the rounding of f32.
#pragma once

#include "core/core.h"
#include "core/eval.h"

namespace ein::core {

Module widen(Module m);
Inputs widen(const Inputs& inputs);

}  // namespace ein::core
