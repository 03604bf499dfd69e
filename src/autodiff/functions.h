// Derivatives of scalar functions: ∂f/∂x is a scalar function of the same parameters, recursive
// where f is. Its body is the derivative of f's body. There a call g(a, b) becomes
// ∂g/∂first(a, b) · a' + ∂g/∂second(a, b) · b'. Where g calls itself, that would follow every path
// from parameter to parameter, so the call becomes g'(a, b, a', b') instead: the derivative along
// (a', b'), which takes the tangents as further parameters. The derivative of a recursion makes as
// many calls as the recursion (plus those whose value is needed as a factor).
#pragma once

#include <optional>
#include <vector>

#include "autodiff/linearise.h"

namespace ein::autodiff {

// With respect to parameter k, which is a float like the result; made when it is first asked for.
core::FunctionId partial_function(Module& m, core::FunctionId f, size_t k,
                                  std::optional<NotDifferentiable>& problem);

// Along the tangents of several parameters, which are further parameters at the end.
core::FunctionId directional_function(Module& m, core::FunctionId f,
                                      const std::vector<size_t>& moving,
                                      std::optional<NotDifferentiable>& problem);

// How the tangent of argument k enters the value of a call: through a call of the partial function,
// or through what that computes if it is short.
Partial slope(Module& m, const core::Call& call, size_t k,
              std::optional<NotDifferentiable>& problem);

// The error for an argument that carries a tangent into a call but is not a float.
NotDifferentiable integer_argument(const Module& m, core::FunctionId f, size_t k, Span span);

}  // namespace ein::autodiff
