#include "runtime/integers.h"

#include <bit>

namespace ein {

int64_t bit_length(int64_t v) {
  auto size = static_cast<uint64_t>(v);
  return static_cast<int64_t>(std::bit_width(v < 0 ? 0 - size : size));
}

int64_t int_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t out = 1, b = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1, b *= b) {
    if (e & 1) out *= b;
  }
  return static_cast<int64_t>(out);
}

}  // namespace ein
