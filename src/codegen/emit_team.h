// Private to src/codegen: the state of code that a team runs.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "codegen/emit.h"

namespace ein::codegen {

struct Emitter::Team {
  llvm::Value *first = nullptr, *many = nullptr;  // is this rank 0? are there others?
  // The partial results of reductions, which all members see.
  std::map<std::pair<const loops::Loop*, loops::VarId>, llvm::Value*> parts = {};
  // What members may still read or write since they met.
  std::set<loops::BufferId> reads = {}, writes = {};
  bool parts_read = false;

  bool apart() const { return reads.empty() && writes.empty() && !parts_read; }
};

}  // namespace ein::codegen
