// The properties that hold for every program, as functions that return what is wrong (empty: fine).
// The random program driver and the example tests use the same ones.
#pragma once

#include <string>
#include <vector>

#include "base/diag.h"
#include "base/source.h"
#include "codegen/native.h"
#include "core/eval.h"
#include "driver/compile.h"

namespace ein::fuzz {

struct Subject {
  SourceMap sources;
  Diagnostics diags;
  Compiled compiled;
};

// Compiles; on errors the rendered diagnostics.
std::string compile_source(const std::string& source, Subject& out,
                           autodiff::Direction direction = autodiff::Direction::Auto);

// print → parse → check gives the same Core hash.
std::string check_round_trip(core::Module& m);

// Native code and the reference evaluator give the same values (floats within a tolerance).
std::string check_native(core::Module& m, const core::Inputs& inputs,
                         const std::vector<std::string>& values, const NativeOptions& options = {});

// The values `gradient` are the derivatives of the scalar `of` by the inputs `wrt`: against central
// differences along random directions in the space of all those inputs. Directions across a kink
// are recognised by two step sizes that disagree, and skipped; `skipped` counts them.
struct Derivative {
  std::string wrt, gradient;
};
std::string check_gradient(core::Module& m, const core::Inputs& inputs, const std::string& of,
                           const std::vector<Derivative>& derivatives, int directions,
                           int& skipped);

// Two modules compute the same: one program differentiated from either side.
std::string check_same_values(core::Module& a, core::Module& b, const core::Inputs& inputs,
                              const std::vector<std::string>& names);

// <J v, w> = <v, Jᵀ w> for the Jacobian of the value `of` by the input `wrt`, with the two values
// themselves as w and v. The left side is one forward sweep, the right one a reverse sweep.
std::string check_pairing(const std::string& source, const core::Module& m,
                          const core::Inputs& inputs, const std::string& of,
                          const std::string& wrt);

// Computing the steps of recurrences again instead of keeping them (plan/checkpoint.h) changes no
// value; `cut` counts the recurrences for which that was done.
std::string check_checkpoints(core::Module& m, const core::Inputs& inputs,
                              const std::vector<std::string>& values, int& cut);

// nodes(value + gradient) ≤ 6 × nodes(value); `plain` is the program without its requests.
std::string check_size(const core::Module& plain, const core::Module& whole);

bool close(const Tensor& a, const Tensor& b, double tolerance, std::string& where);

}  // namespace ein::fuzz
