// Runs a program with launches one statement after the other and detects data races: two threads
// must not access the same cell unless both only read it or a barrier lies between. It shares
// nothing with code generation or the emulator; values come from core/scalar.h, cell by cell.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/eval.h"
#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::fuzz {

struct Watched {
  // What the program contains that cannot be run here; then the other fields say nothing.
  std::string refused;
  std::string race;      // the first data race
  bool stopped = false;  // stopped by a check
  std::map<std::string, Tensor> outputs;
};

// `params`: the symbolic extents.
Watched watch_launches(const plan::Plan& plan, const loops::Program& p, const core::Inputs& inputs,
                       const std::vector<int64_t>& params);

}  // namespace ein::fuzz
