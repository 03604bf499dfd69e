// The properties that hold for every program, as functions that return what is wrong (empty: fine).
// The random program driver and the example tests use the same ones.
#pragma once

#include <string>
#include <vector>

#include "base/diag.h"
#include "base/source.h"
#include "core/eval.h"
#include "driver/agree.h"

namespace ein::fuzz {

struct Subject {
  SourceMap sources;
  Diagnostics diags;
  Compiled compiled;
};

// Compiles; returns the rendered diagnostics if there are errors.
std::string compile_source(const std::string& source, Subject& out,
                           autodiff::Direction direction = autodiff::Direction::Auto);

// Whether the values `gradient` are the derivatives of the scalar `of` by the inputs `wrt`:
// compares them with central differences along random directions in the space of all those inputs.
// Directions across a kink are skipped; `skipped` counts them.
struct Derivative {
  std::string wrt, gradient;
};
std::string check_gradient(core::Module& m, const core::Inputs& inputs, const std::string& of,
                           const std::vector<Derivative>& derivatives, int directions,
                           int& skipped);

// Two modules compute the same values: one program differentiated from either side.
std::string check_same_values(core::Module& a, core::Module& b, const core::Inputs& inputs,
                              const std::vector<std::string>& names);

// <J v, w> = <v, Jᵀ w> for the Jacobian of the value `of` by the input `wrt`, with the two values
// themselves as w and v. The left side is one forward sweep, the right one a reverse sweep.
std::string check_pairing(const std::string& source, const core::Module& m,
                          const core::Inputs& inputs, const std::string& of,
                          const std::string& wrt);

// Computing the steps of recurrences again instead of keeping them (optimise/checkpoint.h) changes no
// value; `cut` counts the recurrences for which that was done.
std::string check_checkpoints(core::Module& m, const core::Inputs& inputs,
                              const std::vector<std::string>& values, int& cut);

// nodes(value + gradient) ≤ 6 × nodes(value); `plain` is the program without its requests.
std::string check_size(const core::Module& plain, const core::Module& whole);

// Decisions of the planner drawn at random, most of them unwise, all of them legal.
plan::Choices random_choices(uint64_t seed);

}  // namespace ein::fuzz
