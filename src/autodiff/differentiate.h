// Differentiation: replaces every Request, a derivative `@y / @x` in the source, by ordinary Core.
// It happens at compile time, on checked Core; what comes out can be printed, read and compiled
// again.
//
// All requests of one numerator (and, inside a recurrence, of one step) share one reverse sweep, or
// all requests with one denominator share one forward sweep. A scalar numerator goes in reverse;
// otherwise the side with fewer cells is taken, and reverse when that is not known. Sums that
// contract a Jacobian are pushed into their request first (contract.h). Requests are expanded in
// dependency order, so a request may stand on the path of another one: that is how higher
// derivatives work. A request inside the body of a recurrence whose numerator and denominator
// belong to the same step is taken along same-step paths (by causality there are no others).
// Afterwards generated families that are read once are inlined again (core::tidy).
//
// Errors: E0601 something on the path has no derivative, E0604 a request that depends on itself,
// E0701 a construct whose derivative is not supported yet. Warning: W0601 no path.
#pragma once

#include "autodiff/record.h"
#include "base/diag.h"
#include "core/core.h"

namespace ein::autodiff {

// From which side derivatives are taken. Auto: from the cheaper one; the others are for tests and
// tools that compare the two, and give the same values.
enum class Direction : uint8_t { Auto, Forward, Reverse };

// `record` gets what the reverse sweeps did (record.h).
core::Module differentiate(core::Module m, Diagnostics& diags,
                           Direction direction = Direction::Auto, Record* record = nullptr);

// The places where a Request is left: empty after `differentiate` (the leak check).
std::vector<Span> requests_left(const core::Module& m);

}  // namespace ein::autodiff
