// Operations on integers that are no instruction, for every way to run a program.
#pragma once

#include <cstdint>

namespace ein {

int64_t bit_length(int64_t v);                      // of |v|; 0 has none
int64_t int_power(int64_t base, int64_t exponent);  // wraps; negative exponents truncate toward 0

}  // namespace ein
