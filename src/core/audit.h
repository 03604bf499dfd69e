// The broadcast self-audit. Where a value does not have a coordinate that its reader runs over, it
// is repeated along it: a claim that it does not depend on that coordinate, which its gradient will
// sum. For every operand: along what it is repeated, and whether that looks unintended.
#pragma once

#include <string>
#include <vector>

#include "core/core.h"

namespace ein::core {

struct Repeated {
  FamilyId reader, operand;
  std::string read;                // `bias[out]`
  std::vector<std::string> along;  // what its gradient sums
  std::string suspicion;           // empty: nothing speaks against it
  Span span;                       // of the read
};

// Of every family that the user named, in the order of definition; `m` before autodiff.
std::vector<Repeated> audit(Module& m);

}  // namespace ein::core
