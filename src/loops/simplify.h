// Blocks after something became known: conditions that are decided, the sides of branches that are
// taken, variables that nobody reads any more, reductions that fold nothing any more.
#pragma once

#include <functional>
#include <optional>

#include "loops/loops.h"

namespace ein::loops {

// What is known of a condition besides what it says itself; none: nothing.
using Answer = std::function<std::optional<bool>(ExprId)>;

void simplify(Program& p, Block& block, const Answer& answer = nullptr);

}  // namespace ein::loops
