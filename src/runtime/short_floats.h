// How kernels read f16 and bf16: widened to f32 in registers, which is exact. For vectors of any
// length, on every processor.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/dtype.h"

namespace ein {

template <class T, int64_t Lanes>
struct VectorOf {
  using Type [[gnu::vector_size(Lanes * sizeof(T))]] = T;
};

// The numbers whose cells are the high halves of `bits`.
template <DType type, class V, class W>
[[gnu::always_inline]] inline void widen(V& to, const W& bits) {
  static_assert(type == DType::F16 || type == DType::BF16);
  if constexpr (type == DType::BF16) {
    to = reinterpret_cast<V>(bits);
  } else {
    W sign = bits & 0x80000000, shifted = (bits ^ sign) >> 3;
    // The multiplication corrects the exponent. It is exact, for subnormals too.
    W number = reinterpret_cast<W>(reinterpret_cast<V>(shifted) * 0x1p112f);
    W beyond = reinterpret_cast<W>(shifted >= 0x7c00 << 13);  // for infinity and NaN
    to = reinterpret_cast<V>((beyond & (shifted | 0x7f800000)) | (~beyond & number) | sign);
  }
}

// Reads as many numbers as V, a vector of f32, has lanes.
template <DType type, class V>
[[gnu::always_inline]] inline void load_widened(V& to, const uint16_t* from) {
  constexpr int64_t lanes = sizeof(V) / sizeof(float);
  using W = typename VectorOf<uint32_t, lanes>::Type;
  if constexpr (lanes == 4) {
    using S = VectorOf<uint16_t, 8>::Type;
    uint64_t four;
    std::memcpy(&four, from, sizeof four);
    S cells = reinterpret_cast<S>(VectorOf<uint64_t, 2>::Type{four, 0});
    S bits = __builtin_shufflevector(S{}, cells, 0, 8, 1, 9, 2, 10, 3, 11);
    widen<type>(to, reinterpret_cast<W>(bits));
  } else {
    typename VectorOf<uint16_t, lanes>::Type cells;
    std::memcpy(&cells, from, sizeof cells);
    widen<type>(to, __builtin_convertvector(cells, W) << 16);
  }
}

template <DType type>
[[gnu::always_inline]] inline float widened(uint16_t cell) {
  uint32_t bits = static_cast<uint32_t>(cell) << 16;
  if constexpr (type == DType::BF16) return std::bit_cast<float>(bits);
  uint32_t sign = bits & 0x80000000, shifted = (bits ^ sign) >> 3;
  if (shifted >= 0x7c00u << 13) return std::bit_cast<float>(shifted | 0x7f800000 | sign);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f) |
                              sign);
}

}  // namespace ein
