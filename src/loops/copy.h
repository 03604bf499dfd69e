// Copies of blocks, with variables of their own.
#pragma once

#include <functional>
#include <unordered_map>

#include "loops/loops.h"

namespace ein::loops {

using Renaming = std::unordered_map<VarId, ExprId>;  // what stands for a variable from outside

struct Copier {
  Program& p;
  // Replaces an expression after renaming; returns its argument to keep it.
  std::function<ExprId(ExprId)> replace = nullptr;

  ExprId expr(ExprId e, const Renaming& by);
  Block block(const Block& from, Renaming by);
  Block at(const Loop& loop, int64_t i);  // its body, for one iteration

 private:
  VarId fresh(VarId v, Renaming& by);
  VarId now_called(VarId v, const Renaming& by) const;
};

}  // namespace ein::loops
