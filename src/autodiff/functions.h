// Derivatives of scalar functions: ∂f/∂x is a scalar function of the same parameters, recursive
// where f is. Its body is the derivative of f's body, in which a call g(a, b) contributes
// ∂g/∂first(a, b) · a' + ∂g/∂second(a, b) · b'.
#pragma once

#include <optional>

#include "autodiff/linearise.h"

namespace ein::autodiff {

// With respect to parameter k, which is a float like the result; made on the first request.
core::FunctionId partial_function(Module& m, core::FunctionId f, size_t k,
                                  std::optional<NotDifferentiable>& problem);

// An operand that carries a tangent into a call and is no float.
NotDifferentiable integer_argument(const Module& m, core::FunctionId f, size_t k, Span span);

}  // namespace ein::autodiff
