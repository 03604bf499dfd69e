// Removes generated families that nothing needs, and inlines generated families whose definition is
// trivial, or that are read in one place where inlining repeats no work. Derived gradients come out
// as one line per parameter this way. Names the user wrote, and values that effects print, stay.
#pragma once

#include "core/core.h"

namespace ein::core {

void tidy(Module& m);

}  // namespace ein::core
