// Random numbers as pure functions: Philox (2×64 bits, 10 rounds) keyed by a seed, counted by an
// address. The same on every back end, for any order of evaluation and any number of threads.
#pragma once

#include <cstdint>

namespace ein {

// 64 random bits for an address under a key. Several addresses chain: the bits of the first are the
// key of the next.
int64_t philox(int64_t key, int64_t address);
float uniform_of(int64_t bits);  // in [0, 1), every value a multiple of 2^-24
float normal_of(
    int64_t bits);  // mean 0, variance 1 (Box–Muller; the second number from the same bits)

}  // namespace ein
