// Simplifies blocks after something became known: decides conditions, keeps the side of a
// branch that is taken, drops variables that nothing reads any more and reductions that fold
// nothing any more.
#pragma once

#include <functional>
#include <optional>

#include "loops/loops.h"

namespace ein::loops {

// What else is known about a condition: true, false, or nothing.
using Answer = std::function<std::optional<bool>(ExprId)>;

void simplify(Program& p, Block& block, const Answer& answer = nullptr);

}  // namespace ein::loops
