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

inline constexpr uint32_t kThreads = 256;      // of a block
inline constexpr int64_t kShortRow = 1024;     // cells of a row that is the work of a warp
inline constexpr int64_t kSumParts = 1024;     // of a sum
inline constexpr int64_t kSumCells = 4096;     // of a part, at least
inline constexpr int64_t kFewCells = 1024;     // of a loop in a kernel that is one block
inline constexpr int64_t kFewNodes = 4096;     // of steps that stay with the host
inline constexpr int64_t kThreadBytes = 4096;  // of arrays of one thread

// Loops directly inside each other, none of which depends on another.
struct Nest {
  std::vector<const loops::Loop*> loops;
  std::vector<const loops::Block*> between;  // Lets in front of each loop but the first
  const loops::Block* body = nullptr;        // of the innermost
};

struct Mapping {
  plan::Plan& plan;
  loops::Program& p;
  core::FamilyId family = {};  // one whose buffer the kernel stores to: scratch bears its name
  std::string kernel = {};
  std::string why = {};  // the last loop was left to the host
  uint64_t draws = 0;    // for mappings at random; 0: none

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
  loops::ExprId length(const loops::Loop& n);     // how often it runs
  loops::BufferId scratch(const std::string& name, DType type, std::vector<int64_t> extents,
                          loops::Buffer::Space space);
  uint64_t draw(uint64_t below);

  // ---- map.cc
  void map(loops::Block& body);  // statements of the host
  Nest nest_of(const loops::Loop& n, loops::Axis::Kind outermost) const;
  // Variables of the loops of a nest for the iteration of this number, and what stands between them.
  void place(loops::Block& to, const Nest& nest, const std::vector<loops::ExprId>& lengths,
             loops::ExprId number);
  bool each(loops::Block& out, const loops::Loop& n);
  // ---- rows.cc
  bool rows(loops::Block& out, const loops::Loop& n);
  bool rows_by(loops::Block& out, const Nest& nest, bool warps);
  // A kernel of few cells, wholly.
  bool one_block(loops::Block& out, const loops::Block& body);
  // ---- contract.cc
  bool contract(loops::Block& out, const loops::Contract& n);
  // ---- sums.cc
  // `rest`: what follows, which may go along; true in `took_rest` if it does.
  bool sum(loops::Block& out, const loops::Loop& n, const loops::Block& before,
           const loops::Block& rest, bool& took_rest);
  // Rows of the host become memory of `space`, other buffers with their extents; false: too much.
  bool move_rows(loops::Block& body, loops::Buffer::Space space);
  loops::Stmt launch(const std::string& how, loops::VarId index, loops::ExprId blocks,
                     uint32_t threads, bool warps, loops::Block body);
};

// Whether an expression is the same, whatever these variables are.
bool stands_still(const loops::Program& p, loops::ExprId e, const std::set<loops::VarId>& moving);
// Loops inside a thread run one iteration after the other, and nobody looks in between.
void in_a_thread(loops::Block& body);
// Whether threads may run the iterations in any order.
bool is_parallel(const loops::Loop& n);

}  // namespace ein::device
