// How the cells of a program that runs on several ranks go from one to the others. Generated code reaches
// a move at a place that all ranks reach in the same order (native_abi.h: poll); what it does is
// in the description of the move (moves.h), which is the same on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// Dense, row-major cells of one rank.
struct RankCells {
  DType dtype;
  std::vector<int64_t> shape;
  void* data;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // Returns once `to` has its cells. An error ends the run of this rank.
  virtual std::optional<RuntimeError> move(int64_t number, const RankCells& from,
                                           const RankCells& to) = 0;
};

}  // namespace ein
