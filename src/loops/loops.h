// Loops: the imperative IR between the plan and machine code. A program is a list of kernels that
// run one after the other; a kernel is a block of structured statements over buffers and scalar
// variables. Statements know neither families nor coordinates; buffers and sites keep the family that
// they came from, for callers and messages. Nothing here knows LLVM.
//
// Semantics, once:
// - Expressions are strict and cannot fail: every Load is in bounds and every integer division
//   has a divisor other than zero, because lowering proved it or put a Check before it.
//   Whatever is evaluated only under a condition is inside an If.
// - A variable is bound by Let (once, never changes), by Declare (changes through Assign and Fold)
//   or by a Loop; it is visible in the rest of its block and in the blocks inside.
// - A Loop's axis says what its iterations may do to each other:
//     seq       in order (upward, or downward)
//     parallel  independent of each other; any order gives the same values
//     vector    independent; `width` of them run in lanes. Any statement may stand inside: where
//               lanes take different branches, each runs under a mask. Vector loops do not nest:
//               inside one, every other axis runs as seq.
//     reduce    independent except for the accumulators named in `folds`, which are only folded.
//               `width` partial results run in lanes and are combined in a tree whose shape depends
//               on the extents alone; width 1 folds in order.
// - Fold combines a value into an accumulator by the rules of core.h (NaN beats numbers in max and
//   min, the first winner stays).
// - Update adds to memory. Iterations of a seq loop, or of a reduce of width 1, may add to the same
//   address; those of a parallel or vector loop never do.
// - Invoke calls a scalar function, which may stop the program, too. In a vector loop it is called
//   once for each active lane. Functions have no loops and access no buffers.
// - Check stops the program if its condition is false, and records `values` for the message.
// - A Launch is a kernel of the device: `blocks` blocks of `threads` threads. Statements directly in
//   it are executed once for a block, with the same result for all of its threads. A loop with axis
//   `block` hands its iterations to the block's threads, one each; a loop with axis `lane` does so for
//   the 32 threads of a warp (it is inside a `block` loop, whose iterations are then warps). An
//   iteration of such a loop does not see what others store until a Barrier of their scope. Stores,
//   and Checks whose condition differs from thread to thread, are only in such loops. Blocks do not
//   see each other's stores.
// - Integers wrap. Where overflow must stop the program, there is a Check of Overflows before the
//   operation. Division and % truncate. min and max propagate the first NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/tuning.h"
#include "core/core.h"
#include "runtime/dtype.h"

namespace ein::loops {

using ExprId = Id<struct LoopsExprTag>;
using VarId = Id<struct LoopsVarTag>;
using BufferId = Id<struct LoopsBufferTag>;
using SiteId = Id<struct LoopsSiteTag>;

// ---- expressions -------------------------------------------------------------------------------

struct FloatConst {
  double value;
};
struct IntConst {
  int64_t value;
};  // also bool: 0 or 1
struct Param {
  uint32_t index;
};  // i64: a symbolic extent, an argument of the program
struct Get {
  VarId var;
};
struct Apply {
  core::Op op;
  std::vector<ExprId> args;
};  // strict, Select and logic included
struct Overflows {
  core::Op op;
  std::vector<ExprId> args;
};  // bool: the exact result does not fit the type of the arguments
struct Load {
  BufferId buffer;
  std::vector<ExprId> at;
};

using Node = std::variant<FloatConst, IntConst, Param, Get, Apply, Overflows, Load>;

struct Expr {
  Node node;
  DType type;
};

// ---- statements --------------------------------------------------------------------------------

struct Stmt;
using Block = std::vector<Stmt>;

struct Let {
  VarId var;
  ExprId value;
};
struct Declare {
  VarId var;
  ExprId init;
};
struct Assign {
  VarId var;
  ExprId value;
};
struct Store {
  BufferId buffer;
  std::vector<ExprId> at;
  ExprId value;
};
struct Update {
  BufferId buffer;
  std::vector<ExprId> at;
  ExprId value;
};  // buffer[at] += value

// acc = op(acc, value). ArgMax and ArgMin: `acc` is the best value so far, `arg` where it was (−1
// at first, when any value wins), `index` where this one is.
struct Fold {
  core::ReduceOp op;
  VarId acc;
  ExprId value;
  VarId arg;
  ExprId index;
};

struct If {
  ExprId cond;
  Block then, otherwise;
};

struct Axis {
  // Thread (of a block; printed as `block`) and Lane (of a warp): in a Launch only.
  enum class Kind : uint8_t { Seq, Parallel, Vector, Reduce, Thread, Lane } kind = Kind::Seq;
  uint32_t width = 1;
};
const char* name_of(Axis::Kind kind);

struct Loop {
  VarId var;
  ExprId lo, hi;  // lo..hi, exclusive; empty when hi <= lo
  Axis axis;
  bool downward = false;     // seq only
  std::vector<VarId> folds;  // reduce only
  Block body;
  SiteId poll;  // seq only: before each step the caller may stop here; invalid: it may not
  // Threads may share the loop, in chunks of this many iterations; invalid: they may not. A shared
  // loop is in no other one. Partial results of a reduce are combined in the order of the chunks.
  ExprId grain = {};
  ExprId steps = {};  // of the recurrence that this loop is a part of; invalid: its own
  // Seq only. A Get of a variable declared outside: the loop stops after a step that sets it.
  // Invalid: all steps run.
  ExprId leave = {};
  // Seq only. How many threads run the loop together, at most: as many as its loops have work for.
  // Known before the loop begins. A team is in no other team. Invalid: a single thread runs it.
  ExprId team = {};
  // Seq only. Stores the state that steps keep in variables. Runs after the last step, and before
  // any step at which the caller wants to look; `var` is then the next step.
  Block state;
};

struct Check {
  ExprId ok;
  SiteId site;
  std::vector<ExprId> values;
};

// out[b, m, n] = Σ_k a[b, m, k] · b[b, k, n], each set of indices a nest of loops whose addresses
// are linear: a step along an index moves each operand by a fixed number of elements.
struct Contract {
  struct Index {
    ExprId extent;
    ExprId a, b, out;  // elements per step; no id where the operand does not move
  };
  struct Operand {
    BufferId buffer;
    std::vector<ExprId> at;
  };               // the cell at which all indices are 0
  DType type;      // of the result
  DType operands;  // the same type, or a shorter float
  // Subnormal operands and sums may be treated as zero (runtime/contract.h).
  bool drops_subnormals = false;
  std::vector<Index> batch, m, n, k;
  Operand a, b, out;
  int64_t factor = -1;  // a matrix function instead of a product (runtime/factor.h); −1: a product
};

// var = function(args). `var` is bound as by Let.
struct Invoke {
  VarId var;
  uint32_t function;  // its number in the program
  std::vector<ExprId> args;
  SiteId site;  // of the calling statement; invalid inside a function
};

// Reads the rows of a streamed input from `first` on into its buffer, which has the length of the
// window. Rows that do not exist are left out, and their places must not be loaded. May stop the
// program. Every loop around is sequential.
struct Fetch {
  BufferId buffer;
  ExprId first;
  SiteId site;
  // If valid: instead, `buffer` gets the result of a move between ranks (Site::Kind::Move) of this
  // one, at step `first` of both; if `first` is −1, at every step.
  BufferId from = {};
};

// ---- on a device -------------------------------------------------------------------------------

enum class Scope : uint8_t { Lane, Threads };  // the threads of a warp; all threads of a block
const char* name_of(Scope scope);

inline constexpr uint32_t kLanes = 32;  // threads of a warp

// A kernel of the device. Its body runs once for every block; `index` is the block's number.
struct Launch {
  std::string name;
  uint32_t number = 0;  // its number in the program
  VarId index;
  ExprId blocks;
  uint32_t threads = 0;  // threads of a block
  bool warps = false;    // iterations of `block` loops go to warps, whose threads are lanes
  Block body;
};

// No thread of the scope continues until all have arrived; then each sees what the others have
// stored.
struct Barrier {
  Scope scope;
};

// acc = op(acc, parts), where `parts` has one cell for each thread. The cells of a warp are
// combined as a tree, then the results of the warps as another. `parts` is local and has no
// coordinates.
struct Combine {
  core::ReduceOp op;
  VarId acc;
  BufferId parts;
  Scope scope;
};

// Up to the next Launch the host reads `loads` and writes `stores`.
struct Touch {
  std::vector<BufferId> loads, stores;
};

struct Stmt {
  std::variant<Let, Declare, Assign, Store, Update, Fold, If, Loop, Check, Contract, Invoke, Fetch,
               Launch, Barrier, Combine, Touch>
      node;
};

// ---- programs ----------------------------------------------------------------------------------

struct Var {
  std::string name;
  DType type;
};

struct Buffer {
  enum class Space : uint8_t {
    Input,     // supplied by the caller, read only; if it streams, the rows fetched last
    Constant,  // an array literal, filled at compile time
    Output,    // a wanted value
    Row,       // scratch of one iteration of a loop: every thread has its own
    Temp,      // everything else that is stored
    Shared,    // in a Launch: every block has its own
    Local,     // in a Launch: every thread has its own
  };
  std::string name;
  core::FamilyId family;
  DType dtype;
  std::vector<core::ExprId> dims;  // the caller evaluates them and allocates the buffer
  Space space = Space::Temp;
  // The extents that are constants. If one is less than `dims` says, only that many steps are kept.
  std::vector<std::optional<int64_t>> known = {};
};
const char* name_of(Buffer::Space space);

// A place where a program may stop, and what the message needs.
struct Site {
  enum class Kind : uint8_t {
    Bounds,  // values: every index of the access, then the extent at `position`
    DivideByZero,
    Shift,     // values: the distance, which is outside the width of `type`
    Overflow,  // values: the operands of `op`, in `type`
    TooDeep,   // calls of the function `name` are nested too deep
    Call,      // where a function that stopped was called from; never the reason itself
    // Values: the address of the next step; `name`: the recurrence, `position`: of its coordinate.
    Step,
    // The same for a recurrence that runs row by row (plan/rows.h); values: how many pieces are
    // done.
    Rows,
    NotFinite,  // values: the address of the cell of `name`; its value is NaN or infinite
    Fetch,      // a file that is read while the program runs; `name`: the input
    Move,       // a move of cells between ranks: `move`
  } kind = Kind::Bounds;
  std::string name;  // the family accessed
  uint32_t position = 0;
  Span span;                        // of the expression
  Span statement;                   // the clause that is being computed
  uint32_t step = 0;                // Step: the number of the step in the schedule
  std::vector<uint32_t> also = {};  // Step: the numbers of those that run along with it
  bool by_diagonals = false;        // Step: of a table that runs one diagonal after the other
  core::Op op = core::Op::Add;
  DType type = DType::I64;
  struct Moving {
    static constexpr uint32_t kNone = ~uint32_t{0};
    int64_t number = -1;
    core::FamilyId from;  // the family whose cells move; `name` gets the result
    // Which coordinate of each is addressed by `first`.
    uint32_t from_step = kNone, to_step = kNone;
  } move = {};
};

struct Kernel {
  std::string name;
  Block body;
  bool continues = false;  // a continuation of the previous kernel; the two are timed together
};

// Called with the number of calls around it, up to core::kMaxRecursion.
struct Function {
  std::string name;
  std::vector<VarId> params;
  Block body;
  ExprId result;
  SiteId too_deep;
};

struct Program {
  ein::Store<ExprId, Expr> exprs;
  ein::Store<VarId, Var> vars;
  ein::Store<BufferId, Buffer> buffers;
  ein::Store<SiteId, Site> sites;
  std::vector<Function> functions;
  std::vector<Kernel> kernels;
  Tuning tuning = {};
  // A run may resume at a step at which another one was stopped (native_abi.h).
  bool resumable = false;
  // Products are not fused with additions unless a formula asks for it, so that device code and its
  // emulation give the same bits.
  bool exact = false;
};

// The passes over Loops, in the order in which driver/compile.cc runs them.

// Computes reductions over the same steps in one loop (fuse.cc).
Program fuse_sums(Program p);
// Runs recurrences along the same steps in one loop, and sums over those steps as well (join.cc).
Program join_steps(Program p);
// Splits off the first and last steps of recurrences (split.cc).
Program split_steps(Program p);
// Writes out loops over few cells that are computed in different ways (cells.cc).
Program write_out_cells(Program p);
// Keeps the state of recurrences over a few numbers in variables (hold.cc).
Program hold_state(Program p);

// Between these two passes, programs for a device get their Launches (device/device.h).

// Marks the outermost loops that threads may share, in chunks of about `chunk_work` operations
// (share.cc).
Program share_loops(Program p);
// Cuts kernels of very many statements into several that share no variables (cut.cc).
Program cut_kernels(Program p);

std::string print(const Program& p);
// Checks the rules above (scopes, types, where Update and folds may stand). One line per broken
// rule.
std::vector<std::string> verify(const Program& p);

}  // namespace ein::loops
