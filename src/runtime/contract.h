// Sums of products over strided operands: out[b, m, n] = Σ_k a[b, m, k] · b[b, k, n], where b, m, n
// and k are sets of indices. `shape` holds the sizes of the four sets (batch, m, n, k), then for
// every index in that order: extent, step in a, step in b, step in out (in elements; 0 where it
// does not move). Every combination of steps is legal, overlapping reads included, so a convolution
// is one call. Indices are blocked by extents alone, so results do not depend on anything else.
#pragma once

#include <cstdint>

#include "runtime/processor.h"

namespace ein {

template <class T>
using Contraction = void (*)(const int64_t* shape, const T* a, const T* b, T* out);
Contraction<float> contract_f32(Level level);
Contraction<double> contract_f64(Level level);

// Of operands in 16 bits, summed in f32. Products are exact: both factors are widened first.
using ShortContraction = void (*)(const int64_t* shape, const uint16_t* a, const uint16_t* b,
                                  float* out);
ShortContraction contract_f16(Level level);
ShortContraction contract_bf16(Level level);
// Where the level has an instruction for pairs of bf16, by that: products are exact as well, but
// operands and sums in registers that are subnormal count as zero.
ShortContraction dot_bf16(Level level);

}  // namespace ein
