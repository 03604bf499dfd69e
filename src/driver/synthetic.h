// Values for the inputs that nobody supplied: small extents that satisfy the program's constraints,
// floats from a seeded random stream, integers small enough to be addresses of anything.
#pragma once

#include <variant>

#include "core/core.h"
#include "core/eval.h"

namespace ein {

// Fills in the inputs among `needed` that `given` lacks. Later attempts choose other extents; odd
// ones draw positive floats instead of normal ones, for programs that take logarithms.
std::variant<core::Inputs, RuntimeError> synthetic_inputs(const core::Module& m,
                                                          const std::vector<core::FamilyId>& needed,
                                                          const core::Inputs& given, int attempt);

constexpr int kSyntheticAttempts = 32;

}  // namespace ein
