#include "runtime/monitor.h"

namespace ein {

Tensor slice(const void* data, DType dtype, const std::vector<int64_t>& shape, size_t axis,
             int64_t at) {
  std::vector<int64_t> rest = shape;
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(axis));
  Tensor out(dtype, rest);
  size_t outer = 1, inner = size_of(dtype);
  for (size_t k = 0; k < axis; ++k) outer *= static_cast<size_t>(shape[k]);
  for (size_t k = axis + 1; k < shape.size(); ++k) inner *= static_cast<size_t>(shape[k]);
  const auto* from = static_cast<const std::byte*>(data);
  for (size_t o = 0; o < outer; ++o) {
    size_t block = o * static_cast<size_t>(shape[axis]) + static_cast<size_t>(at);
    std::memcpy(out.as<std::byte>() + o * inner, from + block * inner, inner);
  }
  return out;
}

}  // namespace ein
