// Private to src/codegen: Loops → LLVM IR. One LLVM function per kernel and one that runs them in
// order.
//
// A vector loop is emitted twice: its body over `width` lanes, then the same body for one lane as
// the tail. In lanes a value has one of three shapes: uniform (one scalar for all lanes), linear
// (an index: base plus lane · step, both scalars, so that addresses stay scalar), or varying (a
// vector). Where lanes disagree about a branch, the statements inside run under a mask.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "codegen/kernel_shape.h"
#include "loops/loops.h"
#include "runtime/native_abi.h"

namespace ein::codegen {

struct Val {
  enum class Shape : uint8_t { Uniform, Linear, Varying } shape = Shape::Uniform;
  llvm::Value* v = nullptr;
  llvm::Value* step = nullptr;  // Linear

  bool uniform() const { return shape == Shape::Uniform; }
};
inline Val uniform(llvm::Value* v) { return {Val::Shape::Uniform, v, nullptr}; }
inline Val varying(llvm::Value* v) { return {Val::Shape::Varying, v, nullptr}; }

// Instructions of the target that change which code is emitted, but never what it computes (except
// for the last bit of `mad`, emit_math.h).
struct Target {
  bool fma = false;     // a·b + c, rounded once
  bool rounds = false;  // rounds to an integer
  bool halves = false;  // converts between f16 and f32
  bool guards = false;  // check every address (emit_guard.cc)
};

struct Emitter {
  Emitter(const loops::Program& program, llvm::Module& module, std::vector<uint32_t> dims)
      : p(program),
        mod(module),
        b(module.getContext()),
        entry(module.getContext()),
        first_dim(std::move(dims)) {}

  const loops::Program& p;
  llvm::Module& mod;
  llvm::IRBuilder<> b;      // where code is added
  llvm::IRBuilder<> entry;  // the kernel's first block: allocas, buffers, params
  llvm::Function* fn = nullptr;
  llvm::Value* context = nullptr;
  // For a kernel that serves several: its own numbering of buffers and sites, and the table with
  // the actual ones (kernel_shape.h). Null: the numbers are those of the program.
  KernelNames* names = nullptr;
  llvm::Value* table = nullptr;
  llvm::Value* named(uint64_t entry_number);
  llvm::Value* site_number(loops::SiteId site);
  llvm::Value* buffer_number(loops::BufferId id);
  llvm::Value* context_field(size_t bytes);  // loaded in the first block
  llvm::Value* extent_of(loops::BufferId id, size_t axis);

  // emit_guard.cc
  llvm::Value* cells_of(loops::BufferId id);
  void guard(loops::BufferId id, const Val& at);
  void guard_contraction(llvm::Value* shape, uint32_t operand, loops::BufferId id, llvm::Value* at);

  uint32_t width = 1;           // lanes of the code being emitted
  bool in_sequence = false;     // inside a sequential loop
  llvm::Value* mask = nullptr;  // the active lanes; null: all of them
  struct Cell {                 // a variable that changes
    llvm::AllocaInst* at = nullptr;
    bool lanes = false;
  };
  // The iteration of every unrolled parallel loop around the code, outermost first; and the stores
  // that are delayed to the end of those loops (emit_unrolled.cc).
  struct Iteration {
    const loops::Loop* loop;
    int64_t number;
  };
  std::vector<Iteration> path;
  struct Waiting {
    loops::BufferId buffer;
    llvm::Value *value, *at;
    llvm::Align align;
    std::vector<Iteration> from;
  };
  std::vector<Waiting> waiting;
  bool meets_waiting(loops::BufferId buffer) const;
  std::unordered_map<loops::VarId, Val> values;
  std::unordered_map<loops::VarId, Cell> cells;
  struct Memory {
    llvm::Value* base = nullptr;
    std::vector<llvm::Value*> strides;
  };
  std::unordered_map<loops::BufferId, Memory> memory;
  Memory found_here;  // of the last buffer, if there are too many to keep
  // What the optimiser may know about loads and stores (emit_aliases.cc).
  std::set<loops::BufferId> written;  // by the kernel
  struct Aliases {
    llvm::MDNode *own = nullptr, *others = nullptr;  // scopes
  };
  std::unordered_map<loops::BufferId, Aliases> aliases;
  void note_aliases(const loops::Kernel& k);
  llvm::Value* touch(llvm::Instruction* access, loops::BufferId id);
  std::unordered_map<uint32_t, llvm::Value*> params;
  std::vector<uint32_t> first_dim;              // by buffer: where its extents begin in the context
  std::vector<llvm::Function*> functions = {};  // of the program, by number
  llvm::Value* calls = nullptr;                 // calls around the code; null in a kernel
  Target target;

  // emit.cc
  llvm::Function* kernel(const loops::Kernel& k, const std::string& name);
  llvm::Function* declare_function(const loops::Function& f);
  void function(const loops::Function& f, llvm::Function* to);
  void invoke(const loops::Invoke& s);
  llvm::Value* invoke_once(const loops::Invoke& s, std::vector<llvm::Value*> args);
  llvm::Value* failure();  // where failures are recorded
  void leave();            // leaves the kernel or the function after a failure
  void leave_unless_zero(llvm::Value* status);
  void block(const loops::Block& body);
  void stmt(const loops::Stmt& s);
  void declare(const loops::Declare& s);
  void assign(loops::VarId var, llvm::Value* v);
  void check(const loops::Check& s);
  void branch(const loops::If& s);
  void branch_on(const loops::If& s, Val cond);
  void fold(const loops::Fold& s);
  void contract(const loops::Contract& s);
  // emit_host.cc: the host's part of a program for a device
  void launch(const loops::Launch& s);
  void touch_host(const loops::Touch& s);
  // emit_device.cc: the code of one thread of a device
  struct Thread;
  Thread* thread = nullptr;  // null: this is code for the processor
  llvm::Function* kernel_of(const loops::Launch& s);
  void thread_loop(const loops::Loop& s);
  void barrier(loops::Scope scope);
  void combine(const loops::Combine& s);
  void fail(loops::SiteId site, const std::vector<Val>& recorded);
  void leave_if_failed();
  void leave_if_failed_before(llvm::Value* block_number, llvm::Value* phase);
  llvm::Value* combine(core::ReduceOp op, llvm::Value* acc, llvm::Value* v, DType type);

  // emit_parts.cc
  void block_in_parts(const loops::Block& body);
  void call_part(const loops::Block& part, const std::vector<loops::VarId>& reads);

  // emit_loop.cc
  void loop(const loops::Loop& s);
  // `state`: stored before the caller looks at it.
  void poll(loops::SiteId site, llvm::Value* next, llvm::Value* steps,
            const loops::Block* state = nullptr);
  void fetch(const loops::Fetch& s);
  llvm::Value* context_field(llvm::IRBuilder<>& at, size_t offset);
  // Calls the caller, and stops the program if it says so.
  void call_back(loops::SiteId site, llvm::Value* next, llvm::Value* steps,
                 llvm::BasicBlock* go_on);
  // All iterations from `lo` to `hi`, one after the other or in lanes.
  void whole_loop(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi);
  void plain_loop(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi);
  llvm::Value* resumed(loops::SiteId site, llvm::Value* lo, llvm::Value* last);
  void lane_loop(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi);
  void ragged_loop(const loops::Loop& s, Val lo, Val hi);
  llvm::Constant* start_of(core::ReduceOp op, DType type);  // of a reduction
  // emit_sums.cc
  struct RunningSum {
    loops::VarId var;
    Cell around;     // its accumulator outside of the loop
    bool outermost;  // no loop around adds to the same variable, so this one adds to `around`
    llvm::AllocaInst *total = nullptr, *lost = nullptr;
  };
  std::set<loops::VarId> summed = {};  // variables that loops around add to
  // The accumulators that a loop folds and does not declare.
  std::vector<loops::VarId> float_sums(const loops::Loop& s) const;
  std::vector<RunningSum> begin_sums(const std::vector<loops::VarId>& sums, bool in_blocks);
  void add_block(const RunningSum& sum);
  void after_block(const std::vector<RunningSum>& sums, llvm::Value* done);
  void add_blocks(const RunningSum& sum);
  void end_sums(const std::vector<RunningSum>& sums);
  void counted_sums(const std::vector<loops::VarId>& vars, llvm::Value* lo, llvm::Value* hi,
                    int64_t step, const char* name, const std::function<void(llvm::Value*)>& body);
  // emit_unrolled.cc
  bool unrolls(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi) const;
  void unrolled_loop(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi);
  void flush_stores();
  // emit_shared.cc
  void shared_loop(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi);
  // Runs `alone` if the loop is a single chunk; otherwise threads share it.
  void alone_or_shared(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi, llvm::Value* grain,
                       const std::function<void()>& alone);
  // What another function needs from this one: the present values of variables, and a struct of
  // such values on the stack.
  std::vector<llvm::Value*> values_now(const std::vector<loops::VarId>& vars);
  llvm::AllocaInst* closure_of(const std::vector<llvm::Value*>& fields);
  void run_shared(const loops::Loop& s, llvm::Value* lo, llvm::Value* hi, llvm::Value* grain);
  llvm::AllocaInst* partial_results(loops::VarId v);
  llvm::Function* chunk_of(const loops::Loop& s, const std::vector<loops::VarId>& captured,
                           llvm::StructType* closure);
  void counted(llvm::Value* lo, llvm::Value* hi, int64_t step, const char* name,
               const std::function<void(llvm::Value*)>& body, loops::ExprId leave = {});

  // emit_team.cc
  struct Team;
  Team* team = nullptr;  // of the loop around, if a team runs it and this code is for all members
  void team_loop(const loops::Loop& s);
  void team_block(const loops::Block& body);
  void team_stmt(const loops::Stmt& s);
  void team_steps(const loops::Loop& s);
  void team_share(const loops::Loop& s);
  void by_itself(const loops::Stmt& s);
  void first_alone(const std::function<void()>& code);
  void in_company(const std::function<void()>& code);
  void meet();
  void meet_unless_apart(const std::set<loops::BufferId>& loads,
                         const std::set<loops::BufferId>& stores);

  // emit_expr.cc
  Val expr(loops::ExprId id);
  llvm::Value* param(uint32_t index);
  llvm::Value* scalar(loops::ExprId id);  // of a uniform value
  llvm::Value* lanes(Val v, DType type);  // as a vector (unchanged if there is one lane)
  llvm::Value* lanes(loops::ExprId id);
  Val index_op(core::Op op, Val a, Val b);
  Val load(const loops::Load& n, DType type);
  Memory& memory_of(loops::BufferId id);
  Val offset(loops::BufferId id, const std::vector<loops::ExprId>& at);
  void store(const loops::Store& s);
  void update(const loops::Update& s);
  llvm::Value* full_mask();
  llvm::Value* any(llvm::Value* m);

  // emit_op.cc: `args` are all scalars or all vectors of one length.
  llvm::Value* apply(core::Op op, const std::vector<llvm::Value*>& args, DType from, DType to);
  llvm::Value* real(core::Op op, const std::vector<llvm::Value*>& args, DType type);
  llvm::Value* whole(core::Op op, const std::vector<llvm::Value*>& args, DType type);
  llvm::Value* overflows(core::Op op, const std::vector<llvm::Value*>& args, DType type);
  llvm::Value* compare(core::Op op, llvm::Value* x, llvm::Value* y, DType type);
  llvm::Value* cast(llvm::Value* x, DType from, DType to);
  llvm::Value* to_integer(core::Op op, llvm::Value* x);  // Floor, Ceil, Round
  llvm::Value* power(llvm::Value* x, llvm::Value* y, DType type);
  llvm::Value* call(NativeFn f, const std::vector<llvm::Value*>& args, llvm::Type* result);
  // emit_math.cc: by a formula if there is one, otherwise by a library function.
  llvm::Value* math(core::Op op, const std::vector<llvm::Value*>& args, DType type,
                    NativeFn library);
  llvm::Function* math_function(core::Op op, const std::vector<llvm::Value*>& args, DType type,
                                NativeFn library);
  // Whether the challenger replaces the present best (NaN beats numbers, the first NaN stays).
  llvm::Value* beats(bool max, llvm::Value* challenger, llvm::Value* holder, DType type);

  // emit_half.cc
  llvm::Value* round_half(llvm::Value* v, DType type);
  llvm::Value* half_to_memory(llvm::Value* v, DType type);
  llvm::Value* half_from_memory(llvm::Value* v, DType type);

  llvm::Type* type_of(DType t);         // in registers: bool is one bit, f16 and bf16 are floats
  llvm::Type* memory_type_of(DType t);  // in memory: bool is one byte, f16 and bf16 are two
  llvm::Value* to_memory(llvm::Value* v, DType t);
  llvm::Value* from_memory(llvm::Value* v, DType t);
  llvm::Type* wide(llvm::Type* t, llvm::Value* like);  // a vector of t where `like` is a vector
  llvm::ConstantInt* i64(int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }
};

// Of a reduction; it affects the bits of sums, so it is not in tuning.def.
constexpr int64_t kMaxChunks = 256;

// The kind of fold that an accumulator of the loop takes part in: it decides the initial value and
// how parts are combined.
core::ReduceOp fold_of(const loops::Loop& s, loops::VarId accumulator);

inline bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
inline bool is_unsigned(DType t) { return t == DType::U8 || t == DType::Bool; }

// Emits the whole program into `mod`; the function to call is named `kEntryName`.
inline constexpr const char* kEntryName = "ein_run";
void emit_program(const loops::Program& p, llvm::Module& mod, Target target);

}  // namespace ein::codegen
