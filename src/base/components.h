// Strongly connected components of a graph: the groups of nodes that lead to each other.
#pragma once

#include <cstdint>
#include <vector>

namespace ein {

// `edges[n]`: where node n leads. Each component comes after those that it leads to; its nodes are
// sorted.
std::vector<std::vector<uint32_t>> components(const std::vector<std::vector<uint32_t>>& edges);

}  // namespace ein
