// Private: the picture of a derivation.
#pragma once

#include <string>

#include "driver/explain.h"

namespace ein {

// The values from the numerator down to the denominator, and arrows along which the sensitivity
// comes back, each with what is summed on it. It is narrow, so that it fits any window. `id`: of
// the drawing within its page.
std::string drawing(const Explanation& e, const std::string& id);

}  // namespace ein
