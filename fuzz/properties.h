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
std::string compile_source(const std::string& source, Subject& out);

// print → parse → check gives the same Core hash.
std::string check_round_trip(core::Module& m);

// Native code and the reference evaluator give the same values (floats within a tolerance).
std::string check_native(core::Module& m, const core::Inputs& inputs,
                         const std::vector<std::string>& values, const NativeOptions& options = {});

// `gradient` is the derivative of the scalar `of` by the input `wrt`: against central differences
// along random directions. Directions across a kink are recognised by two step sizes that disagree,
// and skipped; `skipped` counts them.
std::string check_gradient(core::Module& m, const core::Inputs& inputs, const std::string& of,
                           const std::string& wrt, const std::string& gradient, int directions,
                           int& skipped);

// Computing the steps of recurrences again instead of keeping them (plan/checkpoint.h) changes no
// value; `cut` counts the recurrences for which that was done.
std::string check_checkpoints(core::Module& m, const core::Inputs& inputs,
                              const std::vector<std::string>& values, int& cut);

// nodes(value + gradient) ≤ 6 × nodes(value); `plain` is the program without its requests.
std::string check_size(const core::Module& plain, const core::Module& whole);

bool close(const Tensor& a, const Tensor& b, double tolerance, std::string& where);

}  // namespace ein::fuzz
