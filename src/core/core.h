// Core: the typed tensor IR. A module is a flat graph of families. A family is an array whose
// coordinates have names: a function from addresses to scalars, given by clauses over disjoint
// boxes. A clause body is a scalar expression over accesses to families and reductions. A gate is a
// mask: the `where` condition under which a clause or a summand holds. A request is a derivative
// asked for in the source, `@y / @x`. Every pass between sema and plan is Core → Core.
//
// Semantics, once:
// - A family's coordinate c runs over 0..extent(c). The boxes of its clauses are disjoint and cover
//   it (block-locals of a recurrence step get an explicit zero clause for steps that don't exist).
// - A `where` on a family is Select(gate, body, 0) — there is no other family gate. Select and the
//   logical operators are lazy: the side not taken is not evaluated, so no NaN and no bounds
//   failure leaks from it. And/Or short-circuit left to right.
// - A Reduce visits the cells of its binders' ranges (lexicographically, first binder slowest;
//   later ranges may mention earlier binders), keeps those where `gate` holds and every route
//   (slot, to) has to == slot, and combines `body` with `op`. Routes say the same as a gate; they
//   exist so that the sum can be executed as one pass over the binders that adds each body to the
//   address it is routed to. A route outside the coordinate's range contributes nothing.
// - An Access outside the family's extents is a run-time error, unless the access is proven in
//   bounds, in which case the check is dropped.
// - Slots, not names: inside a clause of a family of rank n, slots 0..n-1 are its coordinates;
//   a Reduce binds the next free slots (`first`, `first+1`, …). Names ride along for messages and
//   the printer and never take part in equality.
// - Index arithmetic is i64. Sums and constant multiples of i64 are always one Affine node in
//   normal form, so equal index expressions are equal ids. Extents are i64 expressions without
//   slots, over literals and Params.
// - Nodes are hash-consed in an append-only arena shared by all modules derived from each other;
//   equal ids mean equal meaning. Spans are those of the first occurrence.
// - A Call evaluates its arguments and then the function's body; more than kMaxRecursion nested
//   calls are a run-time error.
// - f32 arithmetic is f32 arithmetic. In Core only `simplify` reassociates floats, as it documents;
//   on the way to native code, sums and products may be taken in another order (optimise/).
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/source.h"
#include "base/symbol.h"
#include "runtime/dtype.h"
#include "runtime/files.h"

namespace ein::core {

using ein::DType;

using ExprId = Id<struct CoreExprTag>;
using FamilyId = Id<struct FamilyTag>;
using ParamId = Id<struct ParamTag>;
using FunctionId = Id<struct FunctionTag>;

enum class Op : uint8_t {
#define EIN_OP(name, spelling, arity, cls) name,
#include "core/ops.def"
#undef EIN_OP
};
enum class OpClass : uint8_t {
  Arith,
  Real,
  Whole,
  Compare,
  Logic,
  Select,
  Cast,
  Bits,
  Draw,
  Rule,
  Mark,
  Matrix,
  Move
};
struct OpInfo {
  const char* name;
  const char* spelling;
  uint32_t arity;
  OpClass cls;
};
const OpInfo& info(Op op);

// Collect: no number but all cells; only as an operand of Op::Factor and Op::Moved.
enum class ReduceOp : uint8_t { Sum, Prod, Max, Min, All, Any, ArgMax, ArgMin, Collect };
const char* name_of(ReduceOp op);

// ---- nodes -------------------------------------------------------------------------------------

// The value rounded to the node's float type, and the number as it was written. Only `widen` uses
// `written`; it is not part of equality.
struct FloatLit {
  double value, written;
};
struct IntLit {
  int64_t value;
};  // of the node's integer type
struct BoolLit {
  bool value;
};

struct Slot {
  uint32_t n;
};  // i64: an index
struct ParamRef {
  ParamId param;
};  // i64: a symbolic extent, never negative

// constant + Σ coef·atom, i64. At least one term; atoms are non-Affine, non-literal i64 nodes sorted
// by id; no zero coefficients; never just 1·atom + 0 (that is the atom itself).
struct Affine {
  struct Term {
    ExprId atom;
    int64_t coef;
  };
  std::vector<Term> terms;
  int64_t constant = 0;
};

struct Apply {
  Op op;
  std::vector<ExprId> args;
};

struct Access {
  FamilyId family;
  std::vector<ExprId> at;
};  // one i64 expression per coordinate

struct Range {
  ExprId lo, hi;
};  // lo..hi, exclusive

struct Route {
  uint32_t slot;
  ExprId to;
};  // slot: a coordinate of the family

struct Reduce {
  ReduceOp op;
  uint32_t first = 0;         // slot of the first binder
  std::vector<Range> over;    // one range per binder
  std::vector<Symbol> names;  // one per binder; not part of equality
  ExprId gate;                // bool; invalid means true
  std::vector<Route> routes;  // only for Sum
  ExprId body;
};

// A request: a derivative asked for in the source, `@num[num_at] / @den[den_at]`. Everything
// computed from the binding `den` varies with it, all else is held (decisions.md, 23). None is
// left after autodiff.
struct Request {
  FamilyId num;
  std::vector<ExprId> num_at;
  FamilyId den;
  std::vector<ExprId> den_at;
};

// A call of a scalar function. Calls of functions that are more than that are expanded by sema.
struct Call {
  FunctionId function;
  std::vector<ExprId> args;
};
struct Arg {
  uint32_t n;
};  // only in the body of a function

using Node = std::variant<FloatLit, IntLit, BoolLit, Slot, ParamRef, Affine, Apply, Access, Reduce,
                          Request, Call, Arg>;

struct Expr {
  Node node;
  DType type;
  Span span;
  uint64_t free = 0;      // bit n: slot n occurs free
  int32_t level() const;  // the highest free slot, −1 when closed
};
inline int32_t Expr::level() const { return 63 - std::countl_zero(free); }
// Slots are numbered below this: a family's rank plus the depth of binders in it.
constexpr uint32_t kMaxSlots = 64;

// ---- families ----------------------------------------------------------------------------------

struct Coord {
  Symbol name;    // invalid when the coordinate has no name
  ExprId extent;  // i64, no slots
};

struct Clause {
  std::vector<Range> box;  // one per coordinate, no slots
  ExprId body;
  Span span;
};

// Where the value of `load("weights.npz", "W")` comes from. The header is what the compiler saw; a
// file that says something else when the program runs is a run-time error.
struct LoadedFile {
  std::string written, member;  // as in the source
  std::string path;             // where it was found
  FileHeader header;
};

// A family: an array whose coordinates have names. It is what a `let` defines.
struct Family {
  enum class Kind : uint8_t {
    Defined,  // by clauses
    Input,    // supplied from outside, or loaded from `file`
    Table,    // an array literal: `cells`, row-major, closed scalar expressions
  };
  Symbol name;  // unique in the module
  std::string
      path;  // how the program spells it, if that is not its name: `net.w`, a part of a record
  // Of a part of a record whose type is written: what files call it, `h.#.w` (runtime/members.h).
  std::string member;
  Kind kind = Kind::Defined;
  DType dtype = DType::F32;
  std::vector<Coord> coords;
  std::vector<Clause> clauses;             // Kind::Defined
  std::vector<ExprId> cells;               // Kind::Table
  std::shared_ptr<const LoadedFile> file;  // Kind::Input
  bool generated = false;                  // made by the compiler, not a name the user wrote
  // `#[checkpoint(n)]`: derivatives recompute its steps, n at a time, instead of keeping them all.
  // 0: not asked for; −1: the compiler chooses n.
  int64_t checkpoint = 0;
  // Families that are computed whenever this one is, although it does not read them. A derivative
  // through `x[at[k]]` adds to addresses that nothing checks, so the value it belongs to is
  // computed too, and fails if an address is wrong.
  std::vector<FamilyId> with;
  // The index that wins a max, made for a derivative, which passes on the winner's tangent. It is
  // control, so further derivatives hold it constant, unlike an argmax in the program that
  // becomes a float.
  bool winner = false;
  // An adjoint or a tangent: where its gate fails it is zero by structure, whatever multiplies it.
  bool tangent = false;
  Span span;

  uint32_t rank() const { return static_cast<uint32_t>(coords.size()); }
  const std::string& spelled() const { return path.empty() ? text(name) : path; }
};

// A scalar function: its body reads its parameters (Arg) and nothing else. Those that do not call
// themselves stand for an expression with a name; `expand-calls` puts that back on the way to
// native code.
struct Function {
  struct Parameter {
    Symbol name;
    DType type;
  };
  Symbol name;  // unique among the functions of the module
  std::vector<Parameter> params;
  DType result = DType::F32;
  ExprId body;                       // of literals, Arg, Affine, Apply and Call
  bool recursive = false;            // calls itself, directly or through others
  std::vector<FunctionId> partials;  // by parameter: the derivative, where autodiff has made it
  // For two or more parameters that vary, by position: the derivative along their tangents, which
  // are further parameters.
  std::map<std::vector<size_t>, FunctionId> along;
  Span span;
};
// How deep calls may nest, on both back ends; one more is a run-time error.
constexpr int kMaxRecursion = 10'000;

// A symbolic extent: bound at entry from the shape of an input (`source`, `position`), or the value
// of a scalar integer input itself.
struct Param {
  static constexpr uint32_t kItself = ~uint32_t{0};  // as `position`: the value itself
  Symbol name;  // as written in a type; invalid for `?` (printed `extent(x, 0)`)
  FamilyId source;
  uint32_t position = 0;
};

// Checked once at entry; failing is a run-time error that names both sides.
struct Constraint {
  ExprId cond;  // bool over params
  std::string message;
  Span first, second;
};

struct EntryFacts;  // what the constraints say about index expressions (prove.h)

// The constraints of a module. What they imply is cached with them, because every proof asks for
// it. Adding a constraint extends the cache; changing one or copying the list drops it.
class Constraints {
 public:
  Constraints() = default;
  Constraints(const Constraints& other) : list_(other.list_) {}
  Constraints(Constraints&&) = default;
  Constraints& operator=(Constraints other) noexcept {
    list_.swap(other.list_);
    facts.swap(other.facts);
    return *this;
  }
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  const Constraint& operator[](size_t i) const { return list_[i]; }
  void push_back(Constraint c) { list_.push_back(std::move(c)); }
  template <class F>
  void rewrite(const F& f) {
    for (Constraint& c : list_) {
      ExprId cond = f(c.cond);
      if (cond != c.cond) facts.reset();
      c.cond = cond;
    }
  }

  mutable std::shared_ptr<EntryFacts> facts;  // from the first `facts->constraints` of them

 private:
  std::vector<Constraint> list_;
};

struct Piece {         // a piece of a text, or a value to save
  std::string text;    // Save: the name it has in the file
  FamilyId value;      // invalid for text
  std::string format;  // `@`: the differential of the value, as source; text after autodiff
  // The pieces from an Open to its Close are written once for each true cell of `value`, a bool
  // family. Its last `rank` coordinates are new here; values up to the Close have all of its
  // coordinates before their own.
  enum class Join : uint8_t { None, Open, Close } join = Join::None;
  uint32_t rank = 0;
};

struct Effect {
  enum class Kind : uint8_t { Print, Assert, Save, Write } kind = Kind::Print;
  FamilyId cond;  // Assert: a bool family of rank 0 (or any rank: all cells)
  std::vector<Piece>
      pieces;          // Print: the line; Assert: the message; Save: the values; Write: the text
  std::string path;    // Save, Write
  bool error = false;  // Print: on standard error
  std::string end = "\n";  // Print: what follows the line
  // A report of `dbg`: it is made only if one of these is computed. Empty: no report.
  std::vector<FamilyId> users;
  Span span;
};

// Families that run along one coordinate in step although no read demands it, so that one need not
// keep all its steps for another. A hint about order, not part of the meaning.
struct Lockstep {
  struct Member {
    FamilyId family;
    uint32_t position;
  };
  std::vector<Member> members;
  bool downward = false;
};

// ---- the arena and the module ------------------------------------------------------------------

class Arena {
 public:
  // The node's id; an equal node made before gives the id it had then. `type` is trusted: use the
  // builders of build.h, which compute it.
  ExprId intern(Node node, DType type, Span span, uint64_t free);
  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  size_t size() const { return exprs_.size(); }

 private:
  struct Entry {
    uint32_t hash = 0;  // the upper half: tells most unequal nodes apart without looking at them
    ExprId id;          // invalid: free
  };
  void grow();

  Store<ExprId, Expr> exprs_;
  std::vector<Entry> index_;  // open addressing; a power of two, at most half full
};

struct Module {
  std::shared_ptr<Arena> arena = std::make_shared<Arena>();
  Store<FamilyId, Family> families;
  Store<ParamId, Param> params;
  Store<FunctionId, Function> functions;
  Constraints constraints;
  std::vector<Effect> effects;  // in source order
  // Where Rule nodes stand whose rule is marked `#[surrogate]`, not meant to be the derivative of
  // its function. Only before autodiff, for tools that check derivatives.
  std::vector<Span> surrogates;
  std::vector<Lockstep> locksteps;
  // A cache for fresh_name: the names of the first `families` families and `params` params.
  // Names never change.
  struct Names {
    std::unordered_set<Symbol> symbols;
    uint32_t families = 0, params = 0;
  };
  mutable Names names;

  const Expr& operator[](ExprId id) const { return (*arena)[id]; }
  const Family& operator[](FamilyId id) const { return families[id]; }
  FamilyId find(Symbol name) const;  // by name or by path; invalid when there is none
};

template <class T>
const T* get_if(const Module& m, ExprId id) {
  return std::get_if<T>(&m[id].node);
}

// Equal for two modules exactly when they have the same families (by name), params and effects with
// equal meaning; independent of the order of definition, of binder names and of spans. Entry
// constraints are left out: they follow from how ranges were written (an inferred range must not be
// negative, a written one may be empty), not from what is computed.
uint64_t hash(const Module& m);
// The same for one family's definition, with other families by name.
uint64_t hash(const Module& m, FamilyId family);
uint64_t hash(const Module& m, FunctionId function);

}  // namespace ein::core
