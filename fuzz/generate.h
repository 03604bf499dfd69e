// Random well-formed programs with inputs, for property tests: printing round-trips, back ends
// agree, gradients equal finite differences. A program is source text; the same seed gives the same
// program on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/eval.h"

namespace ein::fuzz {

struct Generated {
  std::string source;
  core::Inputs inputs;
  std::vector<std::string> values;          // every value the program defines, in order
  std::vector<std::string> differentiable;  // float inputs; `d_NAME` is the derivative of `loss`
};

// All numbers are f64, so that finite differences mean something.
Generated generate(uint64_t seed);

}  // namespace ein::fuzz
