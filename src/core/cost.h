// What evaluating an expression costs.
#pragma once

#include "core/core.h"

namespace ein::core {

// Roughly how many additions the operation costs.
uint64_t cost(core::Op op);
// Roughly how many additions one evaluation costs; a reduction counts as very many.
uint64_t cost(const core::Module& m, core::ExprId e);

}  // namespace ein::core
