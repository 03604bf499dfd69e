// Private to src/plan: reorders a schedule so that steps that belong together are adjacent.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/groups.h"

namespace ein::plan {

// Makes the steps of each node adjacent, keeps everything after what it reads, and otherwise keeps
// the order. `before`: for each step, the steps that it reads; `node`: for each step, a number
// smaller than the number of steps. Returns nothing if two nodes need results of each other.
std::optional<std::vector<core::Step>> arrange(const std::vector<core::Step>& steps,
                                               const std::vector<std::set<uint32_t>>& before,
                                               const std::vector<uint32_t>& node);

}  // namespace ein::plan
