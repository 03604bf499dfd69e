// The small square that operands are transposed by.
#pragma once

#include <cstdint>

namespace ein {

// to[k][r] = rows[r][k] for a square of as many rows as a vector of 16 bytes has cells.
template <class T>
[[gnu::always_inline]] inline void transpose(T* to, int64_t step, const T* from,
                                             const int64_t* rows) {
  using V [[gnu::vector_size(16), gnu::aligned(alignof(T))]] = T;
  auto load = [&](int64_t r) { return *reinterpret_cast<const V*>(from + rows[r]); };
  auto store = [&](int64_t k, V v) { *reinterpret_cast<V*>(to + k * step) = v; };
  if constexpr (sizeof(T) == 8) {
    V a = load(0), b = load(1);
    store(0, __builtin_shufflevector(a, b, 0, 2));
    store(1, __builtin_shufflevector(a, b, 1, 3));
  } else {
    V a = load(0), b = load(1), c = load(2), d = load(3);
    V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
      cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    store(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    store(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    ab = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(2, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    store(3, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  }
}

}  // namespace ein
