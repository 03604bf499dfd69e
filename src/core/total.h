// Which expressions cannot stop a program. An expression is total where every access in it is
// proven in bounds and every integer divisor proven different from zero, under the facts that hold
// where it stands (the arms of a Select count under its condition). A total expression may be
// evaluated early, late, more often or not at all without anyone noticing, which is what inlining,
// hoisting and turning a branch into a selection rest on. Where integer overflow stops the program,
// arithmetic of integers is total only when it is seen to stay small.
#pragma once

#include <optional>

#include "core/core.h"
#include "core/prove.h"

namespace ein::core {

enum class Overflow : uint8_t { Wraps, Stops };

bool total(Module& m, ExprId e, const Facts& facts, Overflow overflow);

// Integer arithmetic whose result is not known to fit; it is checked when overflow
// stops the program.
bool may_overflow(const Module& m, const Apply& apply);
bool may_overflow(const Module& m, const Affine& affine);

// One access: every index within the extent of its coordinate.
bool in_bounds(Module& m, const Access& access, const Facts& facts);

// By how much a shift moves, where that is a literal, of any integer type.
std::optional<int64_t> shift_amount(const Module& m, const Apply& shift);

// The operation cannot fail: the divisor of integers is proven not to be zero, a shift to be within
// the width of its type (true for every other operation).
bool succeeds(Module& m, const Apply& apply, const Facts& facts);

}  // namespace ein::core
