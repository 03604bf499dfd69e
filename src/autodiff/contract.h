// Contractions of a Jacobian that need no Jacobian. A derivative is linear in its direction and in
// its seed, so a sum that is linear in one request is pushed into it:
//
//   sum[j]((@Y[i] / @X[j]) * v[j])            one forward sweep along the direction v
//   sum[i](u[i] * (@Y[i] / @X[j]))            one reverse sweep with the seed u
//   sum[q]((@(@loss / @x[p]) / @x[q]) * v[q])  forward over reverse: a Hessian times a vector
//
// The sum may run over other indices too, have a gate, and hold other factors and divisors. What is
// required: the request is a factor of the body, the sum runs over every coordinate of the
// denominator (the numerator) from end to end, and the other side of the request does not mention
// those indices. `let J = @Y / @X` may stand between, unless J itself is printed or saved. When v
// depends on further indices there is one direction for each of them; that is done only where they
// certainly are fewer than the cells of the denominator. A scalar numerator (denominator) is left
// alone: its gradient is one sweep anyway.
//
// A request about one cell, `@h[9] / @W` or `@y / @x[0]`, is the same with a unit vector: the cell
// becomes the numerator, or the direction.
//
// The direction becomes a denominator of its own, described by an Along (forward.h); the seeded
// numerator is a family with a rule (custom.h), S = Rule(…, sum(u · Tangent(Y))), in which u is
// held now and differentiated by derivatives of the derivative.
#pragma once

#include <map>

#include "autodiff/forward.h"
#include "core/core.h"

namespace ein::autodiff {

struct Contractions {
  std::map<core::FamilyId, Along> along;  // by the family that stands for the direction in requests
  bool seeded = false;                    // some request has a seeded numerator
};

// `directions`, `seeds`: which of the two to look for.
Contractions push_contractions(core::Module& m, bool directions, bool seeds);

// Whether a value with these extents certainly has fewer cells than another. A symbolic extent
// counts as more than any number.
bool is_smaller(const core::Module& m, const std::vector<core::ExprId>& a,
                std::vector<core::ExprId> b);

}  // namespace ein::autodiff
