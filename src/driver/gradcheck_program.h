// A program prepared for comparing its derivatives with differences. Core → Core; no numbers here.
//
// A derivative is the response of the numerator to a small number added to one cell of the binding
// `den` after it is computed, everything computed from it following (decisions.md, 23). The moved
// program does just that: every denominator gets an input of its own shape, its *shift*, that is
// added to its cells.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/core.h"
#include "driver/compile.h"

namespace ein {

// One derivative to check: the values that `holder` has after autodiff, and which cells of
// numerator and denominator each of them belongs to. Families are given by name, to be looked up in
// the modules that come out of autodiff.
struct Derivative {
  std::string name;     // for people: `dA`, or the request where it stands inside something larger
  std::string request;  // `@loss / @A`
  std::string of, wrt;  // families of the asked program
  Span span;
  std::string holder;
  std::vector<std::string> num_at, den_at;  // i64 families over the holder's coordinates; negative
                                            // where no request is evaluated
  std::string why_not;                      // not to be compared, and why
};

// Every request of `asked` (the program before autodiff), each in a family of its own; `asked`
// gains the families that say which cell is which. `only`: the holders to keep; empty: all.
std::vector<Derivative> derivatives_of(core::Module& asked, const std::vector<std::string>& only);

// `value`, as the program computes it, taken for the derivative of `of` by `wrt`: its coordinates
// are those of `of`, then those of `wrt`. Empty name: the coordinates do not fit, `why_not` says
// so.
Derivative claimed_derivative(core::Module& asked, const std::string& value, const std::string& of,
                              const std::string& wrt);

// The program before autodiff with both sides of <J v, w> = <v, Jᵀ w> for the Jacobian J of `of` by
// `wrt`: `left` is one forward sweep along the input `v`, `right` one reverse sweep from the seed
// `w`.
struct Paired {
  core::Module module;
  std::string v, w, left, right;
};
Paired paired(core::Module asked, const std::string& of, const std::string& wrt);

// `stop(x)` is held constant. Returns the families of `asked` that consist of one; each `stop` gets
// a family. `all`: whether each did.
std::vector<std::string> hold_stopped(core::Module& asked, bool& all);

// The program before autodiff with a shift added to each of these families. A shift is an input,
// and so is the value of each `held` family.
struct Shifted {
  core::Module module;
  std::map<std::string, std::string> moved;  // the family that has the shifted value of another one
};
Shifted shifted(core::Module asked, const std::vector<std::string>& families,
                const std::vector<std::string>& held);
std::string shift_of(const std::string& family);

}  // namespace ein
