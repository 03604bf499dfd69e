// Products with few cells that are long sums over neighbours in memory: out[m, n] = Σ_k a[m, k] ·
// b[n, k], as in the gradient by a small matrix that a whole batch is multiplied with. Packed
// panels would leave most of a tile empty; here the lanes of a vector run along k, every operand is
// read where it is, and all cells of a small square share what is read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/processor.h"

namespace ein {

// A contraction (contract.h) of that kind.
struct Dots {
  std::vector<int64_t> a_rows, out_rows;        // by m: steps in a and out
  std::vector<int64_t> b_columns, out_columns;  // by n: steps in b and out
  std::vector<int64_t> a_lines, b_lines;        // where the lines of neighbours begin, in order
  int64_t length = 0;                           // of each line
};

// Nothing if `shape` is not of that kind. The batch indices of `shape` are left to the caller.
std::optional<Dots> dots_of(const int64_t* shape);

// The sum has one order whatever the number of threads: it is cut by extents alone.
// How cells are read is one of packing.h.
template <class How>
using DotsRun = void (*)(const Dots& dots, const typename How::Cell* a, const typename How::Cell* b,
                         typename How::Sum* out);
template <class How>
DotsRun<How> dots_for(Level level);

}  // namespace ein
