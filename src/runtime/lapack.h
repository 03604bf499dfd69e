// LAPACK, a library of the system that is opened when it is first needed: OpenBLAS, or whatever
// provides liblapack.so.3. It need not be installed; without it, every function here returns false.
// The environment variable EINLANG_LAPACK is `off`, or the library to open.
//
// One call runs on one thread, so its bits do not depend on how many there are; a batch is shared
// by our own threads (factor.cc).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/factor.h"

namespace ein {

// Does the same as `factor_plain`. If it returns false, nothing useful was done and the caller uses
// `factor_plain`. `upright`: right-hand sides and solutions are contiguous, not interleaved.
template <class T>
bool factor_lapack(Factor f, int64_t rows, int64_t cols, const T* a, int64_t columns, bool upright,
                   T* out);

// The name of the library that is open, or empty.
std::string lapack_name();

}  // namespace ein
