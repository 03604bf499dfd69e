// Private to src/device: statements that the threads of a block, or of a warp, run together.
#pragma once

#include <set>

#include "device/mapping.h"

namespace ein::device {

// Every thread runs what stands outside of loops over threads, with the same values. Such loops take
// the place of loops whose iterations are independent, and of sums, of which every thread keeps a
// part. Between two statements that meet in memory there is a barrier.
struct Together {
  Mapping& m;
  bool warp = false;
  int64_t threads = 0;                                 // that run them
  std::set<loops::VarId> own = {};                     // variables that change, declared inside
  std::set<loops::BufferId> loaded = {}, stored = {};  // since the last barrier

  // Appends `from`; false where something cannot run on a device (Mapping::why).
  bool block(const loops::Block& from, loops::Block& to);
  // Folds the cells `first`.. of a nest of sums, `count` of them, into its accumulators, which stand
  // in `into`, one for each of the loop's.
  bool reduce(const Nest& nest, const std::vector<loops::ExprId>& lengths, loops::ExprId first,
              loops::ExprId count, const std::vector<loops::VarId>& into, loops::Block& to);
  void one_thread(loops::Block code, loops::Block& to);

 private:
  bool stmt(const loops::Stmt& s, loops::Block& to);
  bool loop(const loops::Loop& n, loops::Block& to);
  bool parallel(const loops::Loop& n, loops::Block& to);
  bool steps(const loops::Loop& n, loops::Block& to);
  bool branch(const loops::If& n, loops::Block& to);
  // A barrier, if what comes meets what threads have stored or still read.
  void meet(const loops::Effects& e, loops::Block& to);
  loops::Stmt over_threads(loops::VarId thread, int64_t count, loops::Block code) const;
};

// Whether partial results of a sum may be combined.
bool splits(const loops::Program& p, const loops::Loop& n);
// The value with which a reduction begins.
loops::ExprId start_of(Mapping& m, core::ReduceOp op, DType type);
core::ReduceOp fold_of(const loops::Loop& n, loops::VarId acc);

}  // namespace ein::device
