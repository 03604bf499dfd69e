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

}  // namespace ein
