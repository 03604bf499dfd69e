// Which expressions cannot stop a program. An expression is total where every access in it is
// proven in bounds and every integer divisor proven different from zero, under the facts that hold
// where it stands (the arms of a Select count under its condition). A total expression may be
// evaluated early, late, more often or not at all without anyone noticing, which is what inlining,
// hoisting and turning a branch into a selection rest on. Where integer overflow stops the program,
// arithmetic of integers is total only when it is seen to stay small.
#pragma once

#include "core/core.h"
#include "core/prove.h"

namespace ein::plan {

enum class Overflow : uint8_t { Wraps, Stops };

bool total(core::Module& m, core::ExprId e, const core::Facts& facts, Overflow overflow);

// Integer arithmetic whose result is not seen to fit: it is checked when overflow stops.
bool may_overflow(const core::Module& m, const core::Apply& apply);
bool may_overflow(const core::Module& m, const core::Affine& affine);

// One access: every index within the extent of its coordinate.
bool in_bounds(core::Module& m, const core::Access& access, const core::Facts& facts);

// Division and % of integers: the divisor is proven not to be zero (true for every other
// operation).
bool divides(core::Module& m, const core::Apply& apply, const core::Facts& facts);

// Roughly how many simple operations one evaluation takes; a reduction counts as very many.
uint64_t cost(const core::Module& m, core::ExprId e);

}  // namespace ein::plan
