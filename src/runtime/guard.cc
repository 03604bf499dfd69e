#include "runtime/guard.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ein {

void out_of_bounds(int64_t buffer, int64_t at, int64_t cells) {
  std::fprintf(
      stderr, "internal error: compiled code uses cell %lld of buffer %lld, which has %lld\n",
      static_cast<long long>(at), static_cast<long long>(buffer), static_cast<long long>(cells));
  std::abort();
}

void guard_contraction(const int64_t* shape, int64_t operand, int64_t buffer, int64_t at,
                       int64_t cells) {
  int64_t low = at, high = at, indices = shape[0] + shape[1] + shape[2] + shape[3];
  for (int64_t i = 0; i < indices; ++i) {
    const int64_t* index = shape + 4 + 4 * i;
    if (index[0] <= 0) {
      // Nothing is read if there are no cells, and nothing is written if the result has no rows or
      // columns.
      bool summed = i >= indices - shape[3];
      if (operand < 3 || !summed) return;
      continue;
    }
    int64_t reach = (index[0] - 1) * index[operand];
    low += std::min<int64_t>(reach, 0);
    high += std::max<int64_t>(reach, 0);
  }
  if (low < 0) out_of_bounds(buffer, low, cells);
  if (high >= cells) out_of_bounds(buffer, high, cells);
}

}  // namespace ein
