// Derivatives of scalar functions: ∂f/∂x is a scalar function of the same parameters, recursive
// where f is. Its body is the derivative of f's body, in which a call g(a, b) contributes
// ∂g/∂first(a, b) · a' + ∂g/∂second(a, b) · b'. Where g calls itself, that would follow every path
// from a parameter to a parameter; there both together are the derivative along (a', b'), a function
// g'(a, b, a', b') of the tangents too. So every call becomes one call, and the derivative of a
// recursion has as many calls as the recursion (and, where a factor needs the value of a call, that
// call besides).
#pragma once

#include <optional>
#include <vector>

#include "autodiff/linearise.h"

namespace ein::autodiff {

// With respect to parameter k, which is a float like the result; made on the first request.
core::FunctionId partial_function(Module& m, core::FunctionId f, size_t k,
                                  std::optional<NotDifferentiable>& problem);

// Along the tangents of several parameters, which are further parameters at the end.
core::FunctionId directional_function(Module& m, core::FunctionId f,
                                      const std::vector<size_t>& moving,
                                      std::optional<NotDifferentiable>& problem);

// How the tangent of argument k enters the value of a call: by a call of the partial function, or by
// what that computes where it is short.
Partial slope(Module& m, const core::Call& call, size_t k, std::optional<NotDifferentiable>& problem);

// An operand that carries a tangent into a call and is no float.
NotDifferentiable integer_argument(const Module& m, core::FunctionId f, size_t k, Span span);

}  // namespace ein::autodiff
