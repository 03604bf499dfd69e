// LAPACK, a library of the system that is opened when it is first needed: OpenBLAS or whatever
// stands for liblapack.so.3. Nothing has to be installed; without it every call here says no. The
// environment variable EINLANG_LAPACK is `off`, or the library to open.
//
// One call runs on one thread, so its bits do not depend on their number; a batch is shared by our
// own threads (factor.cc).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/factor.h"

namespace ein {

// As `factor_plain`. False: it did nothing that counts, and the caller takes `factor_plain`.
// `upright`: right sides and solutions stand one after the other, not side by side.
template <class T>
bool factor_lapack(Factor f, int64_t rows, int64_t cols, const T* a, int64_t columns, bool upright,
                   T* out);

// The library that is open, by name; empty when there is none.
std::string lapack_name();

}  // namespace ein
