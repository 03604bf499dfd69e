// One reverse sweep: from the linear terms of every family on the path, one adjoint family each.
//
// A term  coef · dX[at]  of G[i…] (with binders k…, gate g) contributes to the adjoint of X
//
//   X̄[a…]  +=  Σ over i…, k… where g and at == a…   Ḡ[i…] · coef
//
// which is coordinate accounting: what X does not have is summed, what it has survives. The
// equalities are solved by core::solve_gates, so a bare index is substituted, `oh + kh` becomes
// `ih - kh`, and a gathered address becomes a route. Adjoints are ordinary families, so time needs
// no rule of its own: the adjoint of a recurrence is the recurrence that reads t + 1.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "autodiff/linearise.h"
#include "core/core.h"

namespace ein::autodiff {

// Coordinates along which numerator and denominator are taken at the same step of a recurrence.
// Reads at another step are held: by causality no path from den[s] to num[s] uses them.
using Positions = std::map<core::FamilyId, std::vector<uint32_t>>;  // one position per shared level

struct Sweep {
  core::FamilyId num;
  std::set<core::FamilyId> dens;
  Positions local;                    // empty: nothing is shared
  std::set<core::FamilyId> tangents;  // tangent_families: read as parts of a rule

  Mode mode(core::FamilyId family) const {
    return tangents.contains(family) ? Mode::Rule : Mode::Value;
  }
};

struct Problem {
  core::FamilyId family;  // whose definition cannot be differentiated
  NotDifferentiable what;
};

struct Adjoints {
  // Adjoint families. Their coordinates: those of the numerator that are not local, then the
  // family's own. A family without an entry has a zero adjoint (the numerator's seed apart).
  std::map<core::FamilyId, core::FamilyId> family;
  std::optional<Problem> problem;
};

// Families on a path from some of `dens` to `num`, along the value reads that `follows` accepts.
std::set<core::FamilyId> between(
    const Module& m, const Sweep& sweep,
    const std::function<bool(core::FamilyId reader, ExprId read, Mode mode)>& follows);
// The same along the reads that carry a tangent in this sweep.
std::set<core::FamilyId> cone(const Module& m, const Sweep& sweep);
// The numerator and everything it reads along such reads, whether or not a denominator is there.
std::set<core::FamilyId> below(const Module& m, const Sweep& sweep);

// Whether a read in the definition of `reader` carries a tangent from one family of `members` on.
bool carries(const Module& m, const Sweep& sweep, const std::set<core::FamilyId>& members,
             core::FamilyId reader, ExprId read, Mode mode);

// The cone's families must be in normal form.
Adjoints transpose(Module& m, const Sweep& sweep);

// d num[num_at] / d den[den_at] as an expression; invalid when it is structurally zero.
ExprId derivative(Module& m, const Sweep& sweep, const Adjoints& adjoints, core::FamilyId den,
                  const std::vector<ExprId>& num_at, const std::vector<ExprId>& den_at);

}  // namespace ein::autodiff
