// Kernels that differ in nothing but the buffers they work on and the places in the source they
// come from, as the layers of a network do: they are compiled once, and told at every call which
// buffers are meant.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "loops/loops.h"

namespace ein::codegen {

// What one kernel uses, in order of appearance.
struct KernelNames {
  std::vector<loops::BufferId> buffers;
  std::vector<loops::SiteId> sites;
  std::unordered_map<loops::BufferId, uint32_t> buffer_numbers;
  std::unordered_map<loops::SiteId, uint32_t> site_numbers;

  uint32_t number(loops::BufferId id);
  uint32_t number(loops::SiteId id);
};

// Equal for two kernels exactly when one function serves both. Fills `names`.
std::string shape_of(const loops::Program& p, const loops::Kernel& k, KernelNames& names);

}  // namespace ein::codegen
