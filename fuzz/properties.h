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

// Compiles; on errors the rendered diagnostics.
std::string compile_source(const std::string& source, Subject& out);

// `gradient` is the derivative of the scalar `of` by the input `wrt`: against central differences
// along random directions. Those across a kink are skipped; `skipped` counts them.
std::string check_gradient(core::Module& m, const core::Inputs& inputs, const std::string& of,
                           const std::string& wrt, const std::string& gradient, int directions,
                           int& skipped);

// nodes(value + gradient) ≤ 6 × nodes(value); `plain` is the program without its requests.
std::string check_size(const core::Module& plain, const core::Module& whole);

}  // namespace ein::fuzz
