// How cells go between the ranks of a program that runs on several. Generated code reaches a move
// at a place that all ranks reach in the same order (native_abi.h: poll). The description of the
// move (moves.h), which is the same on every rank, says what it does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// The cells of one rank, dense and row-major.
struct RankCells {
  DType dtype;
  std::vector<int64_t> shape;
  void* data;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // Returns when `to` has its cells. An error ends the run of this rank.
  virtual std::optional<RuntimeError> move(int64_t number, const RankCells& from,
                                           const RankCells& to) = 0;
};

}  // namespace ein
