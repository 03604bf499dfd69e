// Decides where the temporary buffers of a run lie. A buffer lives from the first kernel that
// mentions it to the last one; buffers that never live at the same time may share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ein {

struct Lifetime {  // kernels, both included; first > last: never mentioned
  uint32_t first = ~uint32_t{0}, last = 0;
  bool meets(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

struct Layout {
  std::vector<size_t> at;  // where each item begins
  size_t bytes = 0;
};
// Items of `bytes` each, the largest placed first, each at the lowest place that is free during its
// life. Throws std::bad_alloc if the sum exceeds the address space.
Layout lay_out(const std::vector<size_t>& bytes, const std::vector<Lifetime>& lives);

}  // namespace ein
