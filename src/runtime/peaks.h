// What this machine can do at most, measured now: the reference values of `ein bench`.
#pragma once

#include "runtime/dtype.h"

namespace ein {

struct Peaks {
  double fma32 = 0, fma64 = 0;  // floating-point operations per second, operands in registers
  double stream = 0;  // bytes per second of y[i] = s · x[i], ordinary stores, far beyond the caches
  int threads = 1;

  double fma(DType type) const { return type == DType::F64 ? fma64 : fma32; }
};

// Uses all threads at once. Takes about half a second, and several times as much memory as the
// last-level cache.
Peaks measure_peaks(int threads = 1);

}  // namespace ein
