// LLVM's archives and the static C++ library use arc4random, the one function that they need of a C library as new as
// 2.36. A library that shall run with older ones has its own.
#ifdef EIN_STATIC

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random(void) {
  uint32_t out = 0;
  if (getrandom(&out, sizeof out, 0) != sizeof out) std::abort();  // cannot happen for so few bytes
  return out;
}

#endif
