// Private to src/lower: the state of lowering, and its functions, which are spread over several
// files. Scopes and placement are in scope.cc, scalar expressions in lower_expr.cc, reductions in
// lower_reduce.cc, families and clauses in lower.cc, sequences in lower_sequence.cc and their end in
// lower_end.cc, bands in lower_band.cc, contractions in lower_contract.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/build.h"
#include "core/core.h"
#include "core/prove.h"
#include "loops/loops.h"
#include "plan/plan.h"

namespace ein::lower {

// A lowered value and the index of the outermost scope in which it may be used.
struct Value {
  loops::ExprId expr;
  uint32_t depth = 0;
};

struct Scope {
  enum class Kind : uint8_t {
    Kernel,  // the outermost scope
    Loop,
    Guard,   // the part of a Sequence's steps in which a clause has cells
    Branch,  // a side of a Select, or the gate of a reduction
  } kind = Kind::Kernel;
  core::Facts facts;  // all facts that hold inside, including those of outer scopes
  loops::Block block;
  Value lo, hi;                                   // of a Loop
  std::unordered_map<core::ExprId, Value> known;  // values that are bound in this scope
};

struct Lowering {
  plan::Plan& plan;
  core::Module& m;
  loops::Program& p;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::vector<Value> slots;  // by slot; an invalid expression if the slot is not bound
  std::unordered_map<core::FamilyId, loops::BufferId> buffers;
  // How often each expression occurs in the body being lowered.
  std::unordered_map<core::ExprId, uint32_t> uses;
  std::set<core::FamilyId> running;  // families computed by a Sequence or a group around
  bool in_sequence = false;
  struct Rows {
    uint32_t coordinate;
    Value from;
    int64_t count;
  };
  // The rows that the Sequence around runs at a time (plan/rows.h).
  std::optional<Rows> some_rows = {};
  // The band around (plan/bands.h): its first row, the row after its last one, and whether the
  // operands that must be finite are (no expression if there are none).
  struct BandNow {
    const plan::Band* plan;
    Value from, to, finite;
  };
  std::optional<BandNow> band_now = {};
  // In a total: the binder that runs over the rows of the band.
  std::optional<uint32_t> total_rows = {};
  // For families of which the loops around compute one cell per iteration: the value of that cell,
  // and its address.
  struct Cell {
    Value value;
    std::vector<loops::ExprId> at;
  };
  std::unordered_map<core::FamilyId, Cell> staged = {};
  uint32_t clause_depth = 0;       // the scope of the clause being lowered
  Span statement = {};             // the source of that clause
  uint32_t step_number = 0;        // the number of the schedule's step being lowered
  std::vector<Value> params = {};  // the parameters of the function being lowered
  // The functions called so far, in the order of their numbers in the program.
  std::vector<core::FunctionId> functions = {};

  // scope.cc
  uint32_t top() const { return static_cast<uint32_t>(scopes.size() - 1); }
  Scope& push(Scope::Kind kind);  // starts with the facts of the scope around
  std::unique_ptr<Scope> pop();
  void emit(uint32_t depth, loops::Stmt s);
  loops::ExprId make(loops::Node node, DType type);
  Value integer(int64_t value, DType type = DType::I64);
  loops::VarId variable(const std::string& name, DType type);
  Value get(loops::VarId v, uint32_t depth);
  // An operation on lowered values. It is computed in the outermost scope that has all operands.
  Value op(core::Op o, std::vector<Value> args, DType type);
  Value compare(core::Op o, Value a, Value b);
  Value bind(Value v, const std::string& name = "v");
  bool atomic(Value v) const;  // a constant or a variable, which never needs binding
  const Value* known(core::ExprId e) const;
  // The outermost scope, from `from` inward, in which `holds` is true of the facts.
  template <class F>
  std::optional<uint32_t> outermost(uint32_t from, F&& holds) {
    for (uint32_t d = from; d <= top(); ++d) {
      if (holds(scopes[d]->facts)) return d;
    }
    return std::nullopt;
  }
  // The scope for a value that contains branches or loops; and the same, lowered there.
  uint32_t home(core::ExprId e);
  template <class F>
  Value at_scope(uint32_t depth, F&& lower_it) {
    std::vector<std::unique_ptr<Scope>> inner;
    while (top() > depth) {
      inner.push_back(std::move(scopes.back()));
      scopes.pop_back();
    }
    Value v = lower_it();
    while (!inner.empty()) {
      scopes.push_back(std::move(inner.back()));
      inner.pop_back();
    }
    return v;
  }
  // Emits a check as far out as possible; returns the scope that it went to.
  uint32_t check(Value ok, loops::Site site, const std::vector<Value>& values);

  // lower_expr.cc
  Value lower(core::ExprId e);
  Value affine(const core::Affine& n);
  Value checked_affine(const core::Affine& n, Span at);
  uint32_t fits(core::Op o, DType type, std::vector<Value>& args, Span at);
  Value apply(core::ExprId e, const core::Apply& n, DType type);
  Value divide_or_shift(core::ExprId e, const core::Apply& n, DType type);
  std::optional<Value> only_side(const core::Apply& n);
  Value choose(core::ExprId e, const core::Apply& n, DType type);
  Value branch(core::ExprId cond, core::ExprId then, core::ExprId otherwise, DType type);
  Value access(core::ExprId e, const core::Access& n, DType type);
  const Value* staged_cell(const core::Access& n) const;
  Value call(const core::Call& n, DType type);
  void function(core::FunctionId id);  // adds it to the program
  void share(core::ExprId then, core::ExprId otherwise);
  bool cheap(core::ExprId e, const core::Facts& facts);
  void count_uses(core::ExprId body);
  Value zero(DType type);

  // lower_reduce.cc
  Value reduce(core::ExprId e, const core::Reduce& r);
  // Emits loops over the binders of `r` in the current scope, and inside them `body`. It is given
  // what is left of the gate (invalid: nothing) after affine conditions became loop bounds.
  void binders(const core::Reduce& r, uint32_t lanes, const std::vector<loops::VarId>& folds,
               const std::function<void(core::ExprId gate)>& body);

  // lower.cc
  //
  // A coordinate that a loop around the family runs over: its address, and the end of that loop.
  struct Running {
    Value at;
    core::ExprId count;
  };
  using Fixed = std::unordered_map<core::FamilyId, std::vector<Running>>;  // by coordinate
  void steps(const std::vector<core::Step>& list, const Fixed& fixed);
  void group(const plan::Group& g, const Fixed& fixed);
  void members(const std::vector<core::FamilyId>& list, const Fixed& fixed);
  void compute(core::FamilyId id, const Fixed& fixed);
  void table(core::FamilyId id);
  void clause(core::FamilyId id, size_t number, const std::vector<Running>& fixed);
  Value inside(core::FamilyId id, const core::Clause& c, const std::vector<Running>& fixed);
  core::Range clamped(core::FamilyId id, const core::Clause& c, uint32_t k);
  void loops_over(core::FamilyId id, const core::Clause& c, const std::vector<uint32_t>& coords,
                  const std::vector<loops::Axis>& axes, const std::function<void()>& body);
  void scatter(core::FamilyId id, size_t number, const core::Reduce& r,
               const std::vector<uint32_t>& free);
  void store(core::FamilyId id, Value value);
  // Whether a cell of the family that is not finite stops the program.
  bool traps(core::FamilyId id) const;
  // Stops the program at the first cell of a clause that is not finite, after all of them are
  // stored.
  void trap(core::FamilyId id, const core::Clause& c, const std::vector<uint32_t>& free);
  void trap_cell(core::FamilyId id, Value value, const std::vector<Value>& at);
  // Converts an address to where the cell is stored: in a ring, a step takes the place of an old
  // one.
  void to_stored(core::FamilyId id, std::vector<Value>& at);
  // The same for an access to an input that streams: rows count from the start of its window.
  void to_window(core::ExprId access, core::FamilyId id, std::vector<Value>& at);

  // lower_sequence.cc
  void sequence(const core::Sequence& q, const Fixed& fixed);
  void fetch(const core::Sequence& q, loops::VarId t);
  core::ExprId count_of(const core::Sequence& q);
  void diagonals(const core::Sequence& q);
  void rows(const core::Sequence& q);
  void ensemble(const core::Sequence& q, const plan::EnsemblePlan& how);

  // lower_end.cc
  // Variables of a Sequence that may stop early: whether it has, its last step, and how many more
  // steps run once the flag is set.
  struct Ended {
    loops::VarId stop, last, left;
  };
  void note_end(const plan::End& end, const Fixed& fixed, Value t, const Ended& ended);
  void fill_end(const plan::End& end, const core::Sequence& q, const Fixed& fixed,
                const Ended& ended);

  // lower_band.cc
  void band(const plan::Band& b);
  void clear_total(core::FamilyId id, const Fixed& fixed);
  Value all_finite(const plan::Band& b, const Fixed& fixed);
  // The ends of a loop over an index of a clause, given by its slot, within the band around.
  std::pair<Value, Value> ends_in_band(core::FamilyId id, uint32_t slot, const core::Range& range);

  // lower_contract.cc
  void contract(core::FamilyId id, const core::Clause& c, const plan::Contraction& x);
  void move(core::FamilyId id, const plan::Contraction& x);
  // Whether a contraction takes at most this many multiplications.
  Value is_small(core::FamilyId id, const core::Clause& c, const plan::Contraction& x,
                 int64_t most);
};

std::vector<loops::ExprId> exprs_of(const std::vector<Value>& values);

}  // namespace ein::lower
