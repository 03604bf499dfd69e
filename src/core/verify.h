// Checks the invariants that core.h states (types, slots in scope, binder numbering, box shapes,
// affine normal form, routes only where legal). Returns one line per violation; empty is fine.
// The driver runs it after every pass (driver/pipeline.h).
#pragma once

#include <string>
#include <vector>

#include "core/core.h"

namespace ein::core {

std::vector<std::string> verify(const Module& m);

}  // namespace ein::core
