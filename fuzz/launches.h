// Runs a program with launches one statement after the other, and watches its threads: two of them
// may not meet in a cell, unless both only read it or a barrier lies between. It shares nothing with
// code generation and the emulator: values come from core/scalar.h, cell by cell.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/eval.h"
#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::fuzz {

struct Watched {
  std::string refused;  // the program has something that is not run here; then nothing else is said
  std::string race;     // the first meeting of two threads
  bool stopped = false;  // by a check
  std::map<std::string, Tensor> outputs;
};

// `params`: the symbolic extents.
Watched watch_launches(const plan::Plan& plan, const loops::Program& p, const core::Inputs& inputs,
                       const std::vector<int64_t>& params);

}  // namespace ein::fuzz
