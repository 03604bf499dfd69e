// Copies blocks; the copies get variables of their own.
#pragma once

#include <functional>
#include <unordered_map>

#include "loops/loops.h"

namespace ein::loops {

// What replaces a variable from outside of the block.
using Renaming = std::unordered_map<VarId, ExprId>;

struct Copier {
  Program& p;
  // Replaces an expression after renaming; returns its argument to keep it.
  std::function<ExprId(ExprId)> replace = nullptr;

  ExprId expr(ExprId e, const Renaming& by);
  Block block(const Block& from, Renaming by);
  Block at(const Loop& loop, int64_t i);  // the loop's body for iteration i

 private:
  VarId fresh(VarId v, Renaming& by);
  VarId now_called(VarId v, const Renaming& by) const;
};

}  // namespace ein::loops
