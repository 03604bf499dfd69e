// Effects as source: `print`, `save` and `assert`.
#pragma once

#include <string>

#include "core/core.h"

namespace ein::core {

std::string effect_text(const Module& m, const Effect& e);
std::string quoted(const std::string& s);  // as a string literal

}  // namespace ein::core
