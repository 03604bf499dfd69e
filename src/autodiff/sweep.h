// What the two directions of differentiation share: which families lie on the path of a sweep, and
// their definitions as linear terms (linearise.h). A reverse sweep (transpose.h) has one numerator
// and any number of denominators, a forward sweep (forward.h) one denominator and any number of
// numerators.
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
  std::set<core::FamilyId> nums, dens;
  Positions local;                    // empty: nothing is shared
  std::set<core::FamilyId> tangents;  // tangent_families: read as parts of a rule
  // Denominators of all requests, shared by all sweeps. The derivative of such a y must not read
  // the binding y: of `y = exp(x)` it is `exp(x)`. Elsewhere it may be written as `y`.
  const std::set<core::FamilyId>* asked = nullptr;

  bool is_asked(core::FamilyId family) const { return asked && asked->contains(family); }
  Mode mode(core::FamilyId family) const {
    return tangents.contains(family) ? Mode::Rule : Mode::Value;
  }
  core::FamilyId num() const { return *nums.begin(); }
  core::FamilyId den() const { return *dens.begin(); }
};

// The coordinates of a numerator or denominator that are not local.
std::vector<uint32_t> free_coordinates(const Module& m, const Sweep& sweep, core::FamilyId family);

struct Problem {
  core::FamilyId family;  // whose definition cannot be differentiated
  NotDifferentiable what;
};

// Whether `reader` reads `family` at its own step of the recurrence that the sweep stays in.
bool at_same_step(const Module& m, const Sweep& sweep, core::FamilyId reader, core::FamilyId family,
                  const std::vector<ExprId>& at);
// A read that can carry a tangent in this sweep: of a float family, at the same step. Inside a rule
// only tangents do.
bool follows(const Module& m, const Sweep& sweep, core::FamilyId reader, ExprId read, Mode mode);

// Families on a path from some of `dens` to some of `nums`, along the value reads that
// `accepts` names.
std::set<core::FamilyId> between(
    const Module& m, const Sweep& sweep,
    const std::function<bool(core::FamilyId reader, ExprId read, Mode mode)>& accepts);
// The same along the reads that carry a tangent in this sweep.
std::set<core::FamilyId> cone(const Module& m, const Sweep& sweep);

// Whether a read in the definition of `reader` carries the tangent of a family in `members`.
bool carries(const Module& m, const Sweep& sweep, const std::set<core::FamilyId>& members,
             core::FamilyId reader, ExprId read, Mode mode);

// The tangent of a family by clause, or by cell of a table. The family is in normal form.
struct LinearClause {
  std::vector<core::Range> box;
  std::vector<Term> terms;
};
std::vector<LinearClause> linear_clauses(Module& m, const Sweep& sweep,
                                         const std::set<core::FamilyId>& members,
                                         core::FamilyId family, std::optional<Problem>& problem);

// One summand of an adjoint or tangent.
struct Contribution {
  bool negative;
  bool first;  // stands before the others
  ExprId value;
};
// |coef| · by, the sign in `negative`; an invalid `by` is one. `by` has the given type, like
// the coefficient.
ExprId weighted(Module& m, const Coef& coef, ExprId by, core::DType type, bool& negative);
ExprId sum(Module& m, std::vector<Contribution> parts, core::DType type);

// Solves the gates of an adjoint or tangent, and drops the summands that are zero then.
void solve_sum(Module& m, core::FamilyId family);

// Where a solved adjoint or tangent is not zero by structure: its own gate, or that of the family
// it is a copy of. Invalid: not known. `made` are the sweep's families and `supports` what is known
// of them, both by the family they belong to.
ExprId support(Module& m, core::FamilyId family, const std::map<core::FamilyId, ExprId>& supports,
               const std::map<core::FamilyId, core::FamilyId>& made);

}  // namespace ein::autodiff
