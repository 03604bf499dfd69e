#include "base/components.h"

#include <algorithm>

namespace ein {

// Tarjan's algorithm, with a stack of its own: a chain of nodes may be as long as a program.
std::vector<std::vector<uint32_t>> components(const std::vector<std::vector<uint32_t>>& edges) {
  constexpr uint32_t kNew = ~0u;
  std::vector<uint32_t> number(edges.size(), kNew), low(edges.size()), open;
  std::vector<bool> is_open(edges.size());
  struct Visit {
    uint32_t node;
    size_t edge;
  };
  std::vector<Visit> visits;
  uint32_t count = 0;
  auto visit = [&](uint32_t node) {
    number[node] = low[node] = count++;
    open.push_back(node);
    is_open[node] = true;
    visits.push_back({node, 0});
  };
  std::vector<std::vector<uint32_t>> out;
  auto close = [&](uint32_t node) {
    auto first = std::find(open.rbegin(), open.rend(), node).base() - 1;
    std::vector<uint32_t> component(first, open.end());
    open.erase(first, open.end());
    for (uint32_t member : component) is_open[member] = false;
    std::sort(component.begin(), component.end());
    out.push_back(std::move(component));
  };
  for (uint32_t root = 0; root < edges.size(); ++root) {
    if (number[root] != kNew) continue;
    visit(root);
    while (!visits.empty()) {
      uint32_t node = visits.back().node;
      if (visits.back().edge < edges[node].size()) {
        uint32_t to = edges[node][visits.back().edge++];
        if (number[to] == kNew) {
          visit(to);
        } else if (is_open[to]) {
          low[node] = std::min(low[node], number[to]);
        }
        continue;
      }
      if (low[node] == number[node]) close(node);
      visits.pop_back();
      if (!visits.empty()) {
        uint32_t parent = visits.back().node;
        low[parent] = std::min(low[parent], low[node]);
      }
    }
  }
  return out;
}

}  // namespace ein
