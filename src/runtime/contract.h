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

// For operands in 16 bits, summed in f32. Products are exact, because both factors are widened
// first.
using ShortContraction = void (*)(const int64_t* shape, const uint16_t* a, const uint16_t* b,
                                  float* out);
ShortContraction contract_f16(Level level);
ShortContraction contract_bf16(Level level);
// The same with the instruction for pairs of bf16, if the level has it. Products are exact as well,
// but subnormal operands and sums in registers count as zero.
ShortContraction dot_bf16(Level level);

}  // namespace ein
