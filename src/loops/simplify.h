// Simplifies blocks after a condition became known: decides conditions, keeps the branch that is
// taken, and drops variables that nothing reads any more and reductions into which nothing is
// folded any more.
#pragma once

#include <functional>
#include <optional>

#include "loops/loops.h"

namespace ein::loops {

// What is known about a condition: true, false, or nothing.
using Answer = std::function<std::optional<bool>(ExprId)>;

void simplify(Program& p, Block& block, const Answer& answer = nullptr);

}  // namespace ein::loops
