#include "runtime/native_abi.h"

#include <cmath>

#include "base/clock.h"
#include "runtime/contract.h"
#include "runtime/device_run.h"
#include "runtime/factor.h"
#include "runtime/guard.h"
#include "runtime/pool.h"
#include "runtime/random.h"
#include "runtime/team.h"

namespace ein {

int64_t power_overflows(int64_t base, int64_t exponent, int64_t lowest, int64_t most) {
  if (base >= -1 && base <= 1) return 0;
  int64_t exact = 1;  // at most 63 steps
  for (int64_t n = exponent; n > 0; --n) {
    if (__builtin_mul_overflow(exact, base, &exact)) return 1;
  }
  return exact < lowest || exact > most;
}

int64_t clock_nanoseconds() { return now_nanoseconds(); }

void kernel_ended(int64_t* times, int64_t kernel) {
  int64_t now = clock_nanoseconds();
  times[1 + kernel] += now - times[0];
  times[0] = now;
}

namespace {

template <Level level>
const void* const* table() {
  static const void* const all[] = {
#define EIN_FN(name, address) reinterpret_cast<const void*>(address),
#include "runtime/functions.def"
#undef EIN_FN
  };
  return all;
}

}  // namespace

const void* const* native_functions(Level level) {
  switch (level) {
    case Level::Avx512Bf16: return table<Level::Avx512Bf16>();
    case Level::Avx512: return table<Level::Avx512>();
    case Level::Avx2: return table<Level::Avx2>();
    case Level::Plain: break;
  }
  return table<Level::Plain>();
}

}  // namespace ein
