// The tangent of a clause as a sum of linear terms. For a family F[i…] with a clause body, the
// tangent at an address is
//
//   Σ over terms   Σ over `over` where `gate`   coef · dX[at]
//
// with one term per read of an active family X (and per gate around it). This is all that forward
// mode needs (read the sum) and all that reverse mode needs (transpose.h turns each term around),
// so a rule of differentiation exists once.
//
// The clause is in normal form (normal.h): its body is a reduction-free scalar expression or one
// reduction of such. Control is constant: conditions, gates, index expressions and ranges carry no
// tangent, and an arm of a Select becomes a gate on its terms, never a factor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/rules.h"
#include "core/core.h"

namespace ein::autodiff {

struct Term {
  std::vector<core::Range> over;  // binders beyond the clause's coordinates
  std::vector<Symbol> names;
  ExprId gate;  // invalid: always
  Coef coef;    // of the family's type
  core::FamilyId family;
  std::vector<ExprId> at;
  Span span;  // of the read
};

// Something on the path has no derivative.
struct NotDifferentiable {
  std::string what;  // "`argmax`", "a cast to an integer" …
  Span span;
  bool limitation = false;  // not supported yet, rather than undefined
};

// How an expression is read. Inside a rule (custom.h) only tangents vary, everything else is a
// constant: Mode::Rule until a Tangent node, whose operand is an ordinary value again.
enum class Mode : uint8_t { Value, Rule };

// Which reads carry a tangent: (node of the Access, how it is read) → bool.
using Active = std::function<bool(ExprId, Mode)>;

struct Linear {
  std::vector<Term> terms;
  std::optional<NotDifferentiable> problem;
};

// May add a generated argmax family to the module (for max and min).
// `reuse`: a coefficient may read the family's own value instead of computing it again.
Linear linearise(Module& m, core::FamilyId family, size_t clause, Mode mode, const Active& active,
                 bool reuse);
// The same for one cell of a table.
Linear linearise_cell(Module& m, core::FamilyId family, size_t cell, Mode mode,
                      const Active& active);

// The same for the body of a function and parameter k: its coefficient by gate (invalid: always).
struct Slopes {
  std::map<ExprId, Coef> by_gate;
  std::optional<NotDifferentiable> problem;
};
Slopes linearise_function(Module& m, core::FunctionId function, uint32_t k);

// The reads of `body` in value positions: those whose tangent can reach the result.
void for_each_value_read(const Module& m, ExprId body, Mode mode,
                         const std::function<void(ExprId, Mode)>& f);

}  // namespace ein::autodiff
