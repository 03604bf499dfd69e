// Private to src/device: the state of mapping kernels to a device, and its functions across files.
// Which loops become what is in map.cc, the statements of a block in block.cc, rows and sums in
// rows.cc and sums.cc.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "loops/effects.h"
#include "loops/loops.h"
#include "loops/walk.h"
#include "plan/plan.h"

namespace ein::device {

inline constexpr uint32_t kThreads = 256;   // threads of a block
inline constexpr int64_t kShortRow = 1024;  // most cells of a row that a warp computes
inline constexpr int64_t kSumParts = 1024;  // most partial results of a sum
inline constexpr int64_t kSumCells = 4096;  // fewest terms of a partial result
// Most iterations of a loop in a kernel that runs as one block.
inline constexpr int64_t kFewCells = 1024;
inline constexpr int64_t kFewNodes = 4096;  // a loop over steps with fewer nodes stays on the host
inline constexpr int64_t kThreadBytes = 4096;  // most bytes of the arrays of one thread

// Directly nested loops whose bounds and iterations do not depend on one another.
struct Nest {
  std::vector<const loops::Loop*> loops;
  std::vector<const loops::Block*> between;  // the Lets in front of each loop but the first
  const loops::Block* body = nullptr;        // of the innermost loop
};

struct Mapping {
  plan::Plan& plan;
  loops::Program& p;
  // A family whose buffer the kernel stores to; scratch buffers are named after it.
  core::FamilyId family = {};
  std::string kernel = {};
  std::string why = {};  // why the last loop stays on the host
  uint64_t draws = 0;    // the random bits that tests choose mappings with; 0: choose normally

  // ---- building
  loops::ExprId integer(int64_t v);
  loops::ExprId op(core::Op o, loops::ExprId a, loops::ExprId b, DType type = DType::I64);
  loops::ExprId get(loops::VarId v);
  loops::VarId variable(const std::string& name, DType type);
  loops::ExprId let(loops::Block& to, const std::string& name, loops::ExprId value);
  loops::ExprId times(loops::ExprId a, loops::ExprId b);
  loops::ExprId plus(loops::ExprId a, loops::ExprId b);
  loops::ExprId minus(loops::ExprId a, loops::ExprId b);
  loops::ExprId larger(loops::ExprId a, loops::ExprId b);
  loops::ExprId up(loops::ExprId a, int64_t by);  // a / by, rounded up
  loops::ExprId length(const loops::Loop& n);     // how many iterations it has
  loops::ExprId product(const std::vector<loops::ExprId>& factors);
  loops::BufferId scratch(const std::string& name, DType type, std::vector<int64_t> extents,
                          loops::Buffer::Space space);
  uint64_t draw(uint64_t below);

  // ---- map.cc
  void map(loops::Block& body);  // statements of the host
  Nest nest_of(const loops::Loop& n, loops::Axis::Kind outermost) const;
  // How many iterations the nest has; fills `lengths` with those of its loops.
  loops::ExprId count(const Nest& nest, loops::Block& to, std::vector<loops::ExprId>& lengths);
  // Sets the variables of the nest's loops for iteration number `number`, and emits the Lets
  // between the loops.
  void place(loops::Block& to, const Nest& nest, const std::vector<loops::ExprId>& lengths,
             loops::ExprId number);
  bool each(loops::Block& out, const loops::Loop& n);
  // ---- rows.cc
  bool rows(loops::Block& out, const loops::Loop& n);
  bool rows_by(loops::Block& out, const Nest& nest, bool warps);
  // A whole kernel that has few cells, as one block.
  bool one_block(loops::Block& out, const loops::Block& body);
  // ---- contract.cc
  bool contract(loops::Block& out, const loops::Contract& n);
  // ---- sums.cc
  // `rest`: the statements after the sum. `took_rest`: whether the last launch runs them, too.
  bool sum(loops::Block& out, const loops::Loop& n, const loops::Block& before,
           const loops::Block& rest, bool& took_rest);
  // Moves scratch buffers of host iterations to `space`, and gives the others their extents. False
  // if they are too large.
  bool move_rows(loops::Block& body, loops::Buffer::Space space);
  loops::Stmt launch(const std::string& how, loops::VarId index, loops::ExprId blocks,
                     uint32_t threads, bool warps, loops::Block body);
};

// Whether an expression does not depend on any of these variables.
bool stands_still(const loops::Program& p, loops::ExprId e, const std::set<loops::VarId>& moving);
// Makes loops inside a thread sequential, without checks for interruption.
void in_a_thread(loops::Block& body);
// Whether threads may run the iterations in any order.
bool is_parallel(const loops::Loop& n);

}  // namespace ein::device
