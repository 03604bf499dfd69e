// Private to src/codegen: the state of emitting code that a team runs.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "codegen/emit.h"

namespace ein::codegen {

struct Emitter::Team {
  // Whether this is rank 0; whether there are other members.
  llvm::Value *first = nullptr, *many = nullptr;
  // The partial results of reductions, in memory that all members see.
  std::map<std::pair<const loops::Loop*, loops::VarId>, llvm::Value*> parts = {};
  // What members may still be reading or writing since they last met.
  std::set<loops::BufferId> reads = {}, writes = {};
  bool parts_read = false;

  bool apart() const { return reads.empty() && writes.empty() && !parts_read; }
};

}  // namespace ein::codegen
