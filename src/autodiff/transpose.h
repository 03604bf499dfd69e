// One reverse sweep: from the linear terms of every family on the path, one adjoint family each.
//
// A term  coef · dX[at]  of G[i…] (with binders k…, gate g) contributes to the adjoint of X
//
//   X̄[a…]  +=  Σ over i…, k… where g and at == a…   Ḡ[i…] · coef
//
// which is coordinate accounting: coordinates that X does not have are summed, those it has
// survive. The equalities are solved by core::solve_gates, so a bare index is substituted,
// `oh + kh` becomes `ih - kh`, and a gathered address becomes a route. Adjoints are ordinary
// families, so time needs no rule of its own: the adjoint of a recurrence is the recurrence
// that reads t + 1.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "autodiff/record.h"
#include "autodiff/sweep.h"
#include "core/core.h"

namespace ein::autodiff {

struct Adjoints {
  // Adjoint families. Their coordinates: those of the numerator that are not local, then the
  // family's own. A family without an entry has a zero adjoint (except for the numerator's
  // seed).
  std::map<core::FamilyId, core::FamilyId> family;
  std::optional<Problem> problem;
};

// The cone's families must be in normal form.
Adjoints transpose(Module& m, const Sweep& sweep, Record* record = nullptr);

// d num[num_at] / d den[den_at] as an expression; invalid when it is structurally zero.
ExprId derivative(Module& m, const Sweep& sweep, const Adjoints& adjoints, core::FamilyId den,
                  const std::vector<ExprId>& num_at, const std::vector<ExprId>& den_at);

}  // namespace ein::autodiff
