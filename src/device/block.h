// Private to src/device: statements that the threads of a block, or of a warp, run together.
#pragma once

#include <set>

#include "device/mapping.h"

namespace ein::device {

// All threads execute the statements outside of thread loops, and compute the same values. Loops
// with independent iterations become loops over threads; so do sums, each thread keeping a partial
// result. A barrier separates two statements that access the same memory.
struct Together {
  Mapping& m;
  bool warp = false;
  int64_t threads = 0;              // how many threads run the statements
  std::set<loops::VarId> own = {};  // variables declared inside, which may change
  std::set<loops::BufferId> loaded = {}, stored = {};  // accessed since the last barrier

  // Appends `from` to `into`. False if something in it cannot run on a device; Mapping::why says
  // what.
  bool block(const loops::Block& from, loops::Block& to);
  // Adds up `count` terms of a nest of sums, beginning with number `first`. `into` holds one
  // accumulator for each accumulator of the loop.
  bool reduce(const Nest& nest, const std::vector<loops::ExprId>& lengths, loops::ExprId first,
              loops::ExprId count, const std::vector<loops::VarId>& into, loops::Block& to);
  void one_thread(loops::Block code, loops::Block& to);

 private:
  bool stmt(const loops::Stmt& s, loops::Block& to);
  bool loop(const loops::Loop& n, loops::Block& to);
  bool parallel(const loops::Loop& n, loops::Block& to);
  bool steps(const loops::Loop& n, loops::Block& to);
  bool branch(const loops::If& n, loops::Block& to);
  // Emits a barrier if the next statement's accesses `e` conflict with what threads have stored, or
  // with what they may still be reading.
  void meet(const loops::Effects& e, loops::Block& to);
  loops::Stmt over_threads(loops::VarId thread, int64_t count, loops::Block code) const;
};

// Whether a sum may be computed as partial results that are then combined.
bool splits(const loops::Program& p, const loops::Loop& n);
// The value that a reduction starts from.
loops::ExprId start_of(Mapping& m, core::ReduceOp op, DType type);
core::ReduceOp fold_of(const loops::Loop& n, loops::VarId acc);

}  // namespace ein::device
