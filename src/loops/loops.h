// Loops: the imperative IR between the plan and machine code. A program is a list of kernels that
// run one after the other; a kernel is a block of structured statements over buffers and scalar
// variables. Statements know neither families nor coordinates; buffers and sites keep the family that
// they came from, for callers and messages. Nothing here knows LLVM.
//
// Semantics, once:
// - Expressions are strict and cannot fail: every Load is in bounds and every integer division
//   has a divisor other than zero, because lowering proved it or put a Check before it.
//   Laziness is an If.
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
// - Update adds to memory; two iterations of a seq loop or a reduce of width 1 may hit one address,
//   those of a parallel or vector loop around it never do.
// - Invoke calls a scalar function, which may stop the program too; in lanes it is called once for
//   each active one. Functions have no loops and touch no buffers.
// - Check stops the program when its condition is false, and records `values` for the message.
// - A Launch is one kernel of the device: `blocks` blocks of `threads` threads. What stands directly
//   in it is done once for a block, and is the same for all of its threads; a loop with the axis
//   `block` hands its iterations to them, one each, and `lane` to the 32 threads of a warp (inside a
//   loop over `block`, whose iterations are warps then). An iteration of such a loop does not see
//   what others store, before a Barrier of their scope. Stores, and Checks of what differs from
//   thread to thread, stand in such loops. Blocks do not see each other.
// - Integers wrap; where that must stop the program, a Check of Overflows stands before. Division
//   and % truncate. min and max propagate the first NaN.
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
  // Threads may share the loop, in chunks of this many iterations; invalid: they may not.
  // Only where no loop around it is shared. Partial results of a reduce are combined in
  // the chunks' order.
  ExprId grain = {};
  ExprId steps = {};  // of the recurrence that this loop is a part of; invalid: its own
  // Seq only, a Get: a variable declared outside. Once it is true after a step, no further step
  // runs. Invalid: all of them do.
  ExprId leave = {};
  // Seq only, and in no such loop: threads run it together, as many as its loops have work for;
  // known before it begins. Invalid: one thread does.
  ExprId team = {};
  // Seq only: stores what the steps have left in variables. Runs after the last step, and before a
  // step at which the caller wants to look; `var` is the step that comes next.
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
  };               // where all indices are 0
  DType type;      // of the result
  DType operands;  // the same, or a shorter float
  // Operands and sums that are subnormal may count as zero (runtime/contract.h).
  bool drops_subnormals = false;
  std::vector<Index> batch, m, n, k;
  Operand a, b, out;
  int64_t factor = -1;  // a matrix function instead, of this number (runtime/factor.h)
};

// var = function(args); `var` is bound like by Let.
struct Invoke {
  VarId var;
  uint32_t function;  // of the program
  std::vector<ExprId> args;
  SiteId site;  // the statement that calls; invalid inside a function
};

// The rows of a streamed input from `first` on become the contents of its buffer, which is as long
// as its window; rows that do not exist are left out, and their places must not be loaded. May stop
// the program. Stands in no loop but sequential ones.
struct Fetch {
  BufferId buffer;
  ExprId first;
  SiteId site;
  // Valid: `buffer` gets what a move between ranks (Site::Kind::Move) makes of this one instead, at the
  // step `first` of both; −1: at every step.
  BufferId from = {};
};

// ---- on a device -------------------------------------------------------------------------------

enum class Scope : uint8_t { Lane, Threads };  // the threads of a warp; all threads of a block
const char* name_of(Scope scope);

inline constexpr uint32_t kLanes = 32;  // of a warp

// A kernel of the device: its body runs for every block, `index` being its number.
struct Launch {
  std::string name;
  uint32_t number = 0;  // among those of the program
  VarId index;
  ExprId blocks;
  uint32_t threads = 0;  // of a block
  bool warps = false;    // loops over `block` run over warps, whose threads are lanes
  Block body;
};

// All threads of the scope have come so far, and see what the others have stored.
struct Barrier {
  Scope scope;
};

// acc = op(acc, parts), where `parts` has one cell for every thread: those of a warp in a tree of
// halves, then those of the warps in another. `parts` is local and has no coordinates.
struct Combine {
  core::ReduceOp op;
  VarId acc;
  BufferId parts;
  Scope scope;
};

// The host reads `loads` and writes `stores` in what follows, up to the next Launch.
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
    Input,     // supplied by the caller, read only; of a streamed one, the rows last fetched
    Constant,  // an array literal, filled when compiling
    Output,    // asked for
    Row,       // scratch of one iteration of a loop: every thread has its own
    Temp,      // everything else that is stored
    Shared,    // in a Launch: every block has its own
    Local,     // in a Launch: every thread has its own
  };
  std::string name;
  core::FamilyId family;
  DType dtype;
  std::vector<core::ExprId> dims;  // evaluated by the caller, which also allocates
  Space space = Space::Temp;
  // The extents that are constants; where one is less than `dims` says, only so many steps are kept.
  std::vector<std::optional<int64_t>> known = {};
};
const char* name_of(Buffer::Space space);

// Where a program may stop, and how to say why.
struct Site {
  enum class Kind : uint8_t {
    Bounds,  // values: every index of the access, then the extent at `position`
    DivideByZero,
    Shift,      // values: how far; outside the width of `type`
    Overflow,   // values: the operands of `op`, in `type`
    TooDeep,    // calls of the function `name` are nested too deep
    Call,       // where a function that stopped was called from; never the reason itself
    Step,       // values: the address of the next step; `name`: the recurrence,
                // `position`: of its coordinate
    Rows,       // the same, for one that runs row by row (plan/rows.h); values: how
                // many pieces are done
    NotFinite,  // values: the address of the cell of `name`; its value is NaN or infinite
    Fetch,      // a file that is read while the program runs; `name`: the input
    Move,       // cells that go between ranks; `move`: which
  } kind = Kind::Bounds;
  std::string name;  // the family accessed
  uint32_t position = 0;
  Span span;                        // of the expression
  Span statement;                   // the clause it is computed for
  uint32_t step = 0;                // Step: which of the schedule's steps
  std::vector<uint32_t> also = {};  // Step: those that run along with it
  bool by_diagonals = false;        // Step: of a table, one diagonal after the other
  core::Op op = core::Op::Add;
  DType type = DType::I64;
  struct Moving {
    static constexpr uint32_t kNone = ~uint32_t{0};
    int64_t number = -1;
    core::FamilyId from;                          // `name` gets what it makes of this one
    uint32_t from_step = kNone, to_step = kNone;  // the coordinate that `first` is an address of
  } move = {};
};

struct Kernel {
  std::string name;
  Block body;
  bool continues = false;  // a further part of the kernel before it, timed together with that
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
  bool resumable = false;  // a run may go on at a step where another was stopped (native_abi.h)
  // Products are never fused into sums but where a formula says so, so that the code for a device
  // and the code that stands for it give the same bits.
  bool exact = false;
};

// The passes over Loops, in the order in which driver/compile.cc runs them.

// Takes reductions over the same steps in one pass (fuse.cc).
Program fuse_sums(Program p);
// Runs recurrences along the same steps in one loop, and takes sums over those steps there
// (join.cc).
Program join_steps(Program p);
// Splits the first and last steps of recurrences off (split.cc).
Program split_steps(Program p);
// Writes out loops over few cells that are computed in different ways (cells.cc).
Program write_out_cells(Program p);
// Keeps what the steps of a recurrence of a few numbers leave to each other in variables (hold.cc).
Program hold_state(Program p);
// Between these two, programs for a device get their Launches (device/device.h).
// Lets threads share the outermost loops that may be, in chunks of about `chunk_work` operations
// (share.cc).
Program share_loops(Program p);
// Cuts kernels of very many statements into several that share no variable (cut.cc).
Program cut_kernels(Program p);

std::string print(const Program& p);
// One line per broken rule of the above (scopes, types, where Update and folds may stand).
std::vector<std::string> verify(const Program& p);

}  // namespace ein::loops
