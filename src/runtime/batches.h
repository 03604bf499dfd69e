// Batches of small products with an operand in which neighbours in memory belong to different
// products. Packing one product after the other would fetch a cache line for every cell. So the
// batch is cut into blocks, and such operands are copied, product by product, into memory that
// stays in cache while it is used.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/block.h"

namespace ein {

// A contraction with its table of indices (contract.h), cut so that every batch index runs over a
// part of its extent.
struct Batches {
  std::vector<int64_t> shape;
  std::vector<int64_t> width;  // how many addresses of each batch index a block has

  int64_t blocks() const;
};

// Nothing if copies would not pay off.
template <class T>
std::optional<Batches> batches_to_copy(const int64_t* shape);

// One block: its own table, and its operands, copied if that pays off.
template <class T>
struct BatchBlock {
  std::vector<int64_t> shape;
  const T *a, *b;
  int64_t out;  // the offset of its result
};
template <class T>
BatchBlock<T> batch_block(const Batches& all, int64_t number, const T* a, const T* b, T* copies);
// How many cells `copies` must have room for.
template <class T>
int64_t copied_cells(const Batches& all);

}  // namespace ein
