// Are the derivatives of a program right? Every request is compared with central differences. The
// differences are taken in f64 (core/widen.h), one cell of the denominator at a time (a sample of
// them when there are many) and along random directions through all cells; every cell of the
// numerator is looked at. Where the program has a kink a difference means nothing: such cells are
// skipped and counted.
//
// A derivative is judged in two steps. In f64 it has to agree closely: otherwise a term is wrong.
// Then the program's own type has to agree with f64 within that type's precision: otherwise the
// formula is right and loses its digits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/eval.h"
#include "driver/compile.h"

namespace ein {

struct GradcheckOptions {
  ExtraRequest named;                // only this derivative
  std::vector<std::string> holders;  // only the requests that these values hold
  bool agree = true;                 // also compare the other ways to the same numbers
  bool quick = false;                // of those, only forward mode; for small programs
  // Claimed derivatives by each of `named.wrt`, instead of what autodiff derives.
  std::vector<std::string> claimed;
  bool seed_tolerances = false;  // use a table of rtol, atol and step per type
  int samples = 48;              // cells of a denominator
  double seconds = 20;           // no more cells after that
};

struct Comparison {
  enum class Verdict { Agrees, Wrong, Imprecise, NotCompared } verdict = Verdict::Agrees;
  std::string name;     // `dA`
  std::string request;  // `@loss / @A`
  Span span;
  std::string note;   // why it is not compared, or what else there is to say
  int64_t cells = 0;  // of the denominator
  int64_t sampled = 0;
  int64_t compared = 0;              // values
  int64_t kinks = 0, undefined = 0;  // values that were skipped
  int directions = 0;
  std::string kink_at;  // the first
  // The worst disagreement: where, what was derived, what differences give (Imprecise: what f64
  // gives).
  std::string worst_at;
  double derived = 0, expected = 0;
  // The largest error in units of what is allowed (above 1: it is too large): in f64 against
  // differences, in the program's own type against f64 (0 where that is f64), and forward against
  // reverse (0 where GradcheckOptions::agree is off).
  double error = 0, own_error = 0, forward_error = 0;
};

struct GradcheckReport {
  std::vector<Comparison> requests;
  // What disagrees: the printed source, native code, forward and reverse.
  std::string printed, native, directions;
  std::string not_run;                 // a comparison that was left out, and why
  std::vector<std::string> synthetic;  // inputs that nobody gave
  std::optional<RuntimeError> error;   // the program does not run
};

// `compiled` with CompileOptions::keep_asked; `options.named` was compiled into it as its extra
// request unless `options.claimed` is given.
GradcheckReport gradcheck(Compiled& compiled, const core::Inputs& given,
                          const GradcheckOptions& options, const CompileOptions& compile_options,
                          const std::string& name);

// Every `@fn` of the program's own modules against differences of its function, on synthetic
// inputs. `sources` are those of `compiled`.
std::vector<Comparison> gradcheck_rules(const Compiled& compiled, const SourceMap& sources,
                                        const GradcheckOptions& options,
                                        const CompileOptions& compile_options);

}  // namespace ein
