// The derivative of a program in one of the forms that other languages ask for, as a program: new inputs
// and requests are added to its Core, and autodiff does the rest. Part of the pass `add-requests`.
//
//   Gradient   of one number                                  grads.W
//   Vjp        of s = sum(y_bar * y) + … by each W: one        W_bar, from the input y_bar
//              reverse sweep
//   Jvp        @y / @t at t = 0, every W moved to              y_dot, from the input W_dot
//              W + t * W_dot: one forward sweep
//   Hvp        Jvp of the gradient                             W_hv, from the input W_dot
//   Jacobian   @y / @W in full                                 jacobian.W, or jacobian.y.W of several y
//   Hessian    @(@loss / @V) / @W in full                      hessian.V.W
//
// The right column is Family::path: what callers know the new values by. A program with a derivative added may
// get another one: requests may read requests. What is called so already gets a number, `grads_1.W`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "core/core.h"

namespace ein {

struct Derivation {
  enum class Form : uint8_t { Gradient = 1, Vjp, Jvp, Hvp, Jacobian, Hessian };
  Form form = Form::Gradient;
  std::vector<std::string> of, wrt;  // values or records of the program
};

// What a derived program gives: the last numerators and their derivatives, families by name.
struct Derived {
  std::vector<Symbol> values, derivatives;
  std::vector<Symbol> shifts;                    // Jvp, Hvp: `t`
  std::vector<std::pair<Symbol, Symbol>> moved;  // `W + t * W_dot` of an input, and the input
  std::string wrong;  // why these values have no such derivative; empty after diagnostics
};

Derived add_derivations(core::Module& m, const std::vector<Derivation>& all, Diagnostics& diags);

// After autodiff `t` is not needed any more: `W + t * W_dot` becomes `W` itself, so that a tangent
// that is not finite leaves the values alone.
void settle_shift(core::Module& m, const Derived& derived);

}  // namespace ein
