#include "runtime/native_abi.h"

#include <chrono>
#include <cmath>

#include "runtime/contract.h"
#include "runtime/random.h"

namespace ein {

int64_t int_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t out = 1, b = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1, b *= b) {
    if (e & 1) out *= b;
  }
  return static_cast<int64_t>(out);
}

int64_t clock_nanoseconds() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void kernel_ended(int64_t* times, int64_t kernel) {
  int64_t now = clock_nanoseconds();
  times[1 + kernel] += now - times[0];
  times[0] = now;
}

const void* const* native_functions() {
  static const void* const table[] = {
#define EIN_FN(name, address) reinterpret_cast<const void*>(address),
#include "runtime/functions.def"
#undef EIN_FN
  };
  return table;
}

}  // namespace ein
