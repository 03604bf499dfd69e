// Products with few cells that are long sums over contiguous memory: out[m, n] = Σ_k a[m, k] · b[n,
// k], as in the gradient with respect to a small matrix that a whole batch is multiplied by. Packed
// panels would leave most of a tile empty. Here the lanes of a vector run along k, every operand is
// read in place, and all cells of a small square share what is read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/processor.h"

namespace ein {

// A contraction (contract.h) of that kind.
struct Dots {
  std::vector<int64_t> a_rows, out_rows;        // for each m, its offsets in a and out
  std::vector<int64_t> b_columns, out_columns;  // for each n, its offsets in b and out
  std::vector<int64_t> a_lines, b_lines;        // where the contiguous lines begin, in order
  int64_t length = 0;                           // the length of each line
};

// Nothing if `shape` is not of that kind. The caller takes care of the batch indices of `shape`.
std::optional<Dots> dots_of(const int64_t* shape);

// The order of the sum depends on extents alone, so not on the number of threads. `How` reads the
// cells, as in packing.h.
template <class How>
using DotsRun = void (*)(const Dots& dots, const typename How::Cell* a, const typename How::Cell* b,
                         typename How::Sum* out);
template <class How>
DotsRun<How> dots_for(Level level);

}  // namespace ein
