// LLVM's archives and the static C++ library call arc4random, which glibc has only since 2.36. A
// library that should also run with older versions brings its own.
#ifdef EIN_STATIC

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random(void) {
  uint32_t out = 0;
  if (getrandom(&out, sizeof out, 0) != sizeof out) std::abort();  // cannot fail for so few bytes
  return out;
}

#endif
