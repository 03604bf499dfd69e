// Batches of small products with an operand whose neighbours in memory belong to different
// products: packing one product after the other would fetch a line of memory for every cell of it.
// The batch is cut into blocks, and such operands are copied, product by product, into a block of
// memory that stays in cache while it is used.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/block.h"

namespace ein {

// A contraction as its table of indices says (contract.h), in which every batch index runs over a
// part of its extent.
struct Batches {
  std::vector<int64_t> shape;
  std::vector<int64_t> width;  // how far each batch index runs within a block

  int64_t blocks() const;
};

// Nothing where copies would not pay.
template <class T>
std::optional<Batches> batches_to_copy(const int64_t* shape);

// One block: its own table, and operands that are copied where that pays.
template <class T>
struct BatchBlock {
  std::vector<int64_t> shape;
  const T *a, *b;
  int64_t out;  // where its result begins
};
template <class T>
BatchBlock<T> batch_block(const Batches& all, int64_t number, const T* a, const T* b, T* copies);
// How many cells `copies` has to have room for.
template <class T>
int64_t copied_cells(const Batches& all);

}  // namespace ein
