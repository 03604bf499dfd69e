// The derivative of every scalar operation: one line per op, linear in the tangents.
#pragma once

#include <vector>

#include "core/core.h"

namespace ein::autodiff {

using core::ExprId;
using core::Module;

// How the tangent of one operand enters: scale · num / den, all of one float type. An invalid num
// or den is a structural one, `zero` a structural zero: neither is ever written as a literal, so
// terms vanish by structure and never because a number happens to be 0.0 or 1.0. Literal factors
// collect in `scale`, so that y·y·y gives 3·y·y.
struct Coef {
  bool zero = false;
  double scale = 1;
  ExprId num, den;
};

struct Partial {
  Coef coef;
  ExprId when;  // the operand passes its tangent only where this holds (min, max); invalid: always
};

// ∂ op(args) / ∂ args[k]; `result` is the node op(args) itself. Not for Select (a gate, handled
// where gates are), nor for comparisons and logic (control: constant), nor for casts (handled
// where types are).
Partial partial(Module& m, core::Op op, const std::vector<ExprId>& args, ExprId result, size_t k);

Coef times(Module& m, const Coef& a, const Coef& b);
Coef plus(Module& m, const Coef& a, const Coef& b, core::DType type);
// The coefficient as a value.
ExprId value(Module& m, const Coef& c, core::DType type);

}  // namespace ein::autodiff
