// Private to src/plan: steps that belong together, next to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/groups.h"

namespace ein::plan {

// Puts steps of the same node next to each other, everything after what it reads, and otherwise
// leaves the order as it is. `before`: by step, the steps that it reads; `node`: by step, a number
// below the number of steps. Nothing where nodes need each other.
std::optional<std::vector<core::Step>> arrange(const std::vector<core::Step>& steps,
                                               const std::vector<std::set<uint32_t>>& before,
                                               const std::vector<uint32_t>& node);

}  // namespace ein::plan
