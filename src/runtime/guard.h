// What code compiled with `--check-bounds` calls.
#pragma once

#include <cstdint>

namespace ein {

// Reports that cell `at` of a buffer with `cells` cells was about to be accessed, and ends the
// process.
[[noreturn]] void out_of_bounds(int64_t buffer, int64_t at, int64_t cells);

// The same if an operand of a contraction (1: a, 2: b, 3: the result) that begins at cell `at`
// reaches beyond its buffer (contract.h).
void guard_contraction(const int64_t* shape, int64_t operand, int64_t buffer, int64_t at,
                       int64_t cells);

}  // namespace ein
