// Private to src/codegen: how long the temporary buffers of a program live (runtime/layout.h places
// them).
#pragma once

#include <vector>

#include "loops/loops.h"
#include "runtime/layout.h"

namespace ein::codegen {

std::vector<Lifetime> lifetimes(const loops::Program& p);  // by buffer

}  // namespace ein::codegen
