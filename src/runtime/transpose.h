// Transposes small squares of cells.
#pragma once

#include <cstdint>
#include <cstring>

namespace ein {

// to[k][r] = row r at k, for a square with as many rows as a vector of 16 bytes has cells. load(v,
// r) loads a row into a vector.
template <class T, class Load>
[[gnu::always_inline]] inline void transpose(T* to, int64_t step, const Load& load) {
  using V [[gnu::vector_size(16)]] = T;
  auto store = [&](int64_t k, V v) { std::memcpy(to + k * step, &v, sizeof v); };
  if constexpr (sizeof(T) == 8) {
    V a, b;
    load(a, 0), load(b, 1);
    store(0, __builtin_shufflevector(a, b, 0, 2));
    store(1, __builtin_shufflevector(a, b, 1, 3));
  } else if constexpr (sizeof(T) == 4) {
    V a, b, c, d;
    load(a, 0), load(b, 1), load(c, 2), load(d, 3);
    V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
      cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    store(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    store(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    ab = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(2, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    store(3, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  } else {
    // Three rounds. Each merges rows that are 4 apart; after it, the cell from (r, k) is at the
    // place whose bits are those of r and k rotated by one.
    V v[8], w[8];
    for (int64_t r = 0; r < 8; ++r) load(v[r], r);
    for (int round = 0; round < 3; ++round) {
      for (int r = 0; r < 4; ++r) {
        w[2 * r] = __builtin_shufflevector(v[r], v[r + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        w[2 * r + 1] = __builtin_shufflevector(v[r], v[r + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
      for (int r = 0; r < 8; ++r) v[r] = w[r];
    }
    for (int64_t k = 0; k < 8; ++k) store(k, v[k]);
  }
}

// The same for rows of cells that need no conversion.
template <class T>
[[gnu::always_inline]] inline void transpose(T* to, int64_t step, const T* from,
                                             const int64_t* rows) {
  using V [[gnu::vector_size(16)]] = T;
  transpose(to, step, [&](V& v, int64_t r) { std::memcpy(&v, from + rows[r], sizeof v); });
}

}  // namespace ein
