// The tuned numbers of the runtime's contractions (base/tuning.def).
#pragma once

#include <cstdint>

namespace ein::tuned {

#define EIN_TUNE_RUNTIME(name, value, what) inline constexpr int64_t name = value;
#include "base/tuning.def"

}  // namespace ein::tuned
