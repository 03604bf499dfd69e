#include "plan/arrange.h"

#include <functional>
#include <queue>

namespace ein::plan {

std::optional<std::vector<core::Step>> arrange(const std::vector<core::Step>& steps,
                                               const std::vector<std::set<uint32_t>>& before,
                                               const std::vector<uint32_t>& node) {
  std::vector<uint32_t> waits(steps.size(), 0);
  std::vector<std::set<uint32_t>> after(steps.size());
  std::vector<std::vector<uint32_t>> inside(steps.size());
  for (uint32_t s = 0; s < steps.size(); ++s) {
    inside[node[s]].push_back(s);
    for (uint32_t b : before[s]) {
      if (node[b] != node[s] && after[node[b]].insert(node[s]).second) ++waits[node[s]];
    }
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t n = 0; n < steps.size(); ++n) {
    if (!inside[n].empty() && waits[n] == 0) ready.push(n);
  }
  std::vector<core::Step> out;
  while (!ready.empty()) {
    uint32_t n = ready.top();
    ready.pop();
    for (uint32_t s : inside[n]) out.push_back(steps[s]);
    for (uint32_t next : after[n]) {
      if (--waits[next] == 0) ready.push(next);
    }
  }
  return out.size() == steps.size() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace ein::plan
