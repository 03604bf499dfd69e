// The state of elaboration: values, names and scopes, what is still unknown. Everything else in sema
// is a free function over it; each folder has a header that says what the others may use.
//
// Depth. `env.depth` is the first free slot: the coordinates of the enclosing clause and the
// binders of the reductions around the current place are numbered below it. A Value made at depth d
// that carries n coordinates has them as slots d … d+n-1 ("holes"), and reductions inside it bind
// slots from d+n on, so core::substitute can put index expressions into the holes and move the
// value to any other depth.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/diag.h"
#include "core/build.h"
#include "core/core.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "sema/file_lookup.h"
#include "sema/modules.h"
#include "syntax/ast.h"

namespace ein::sema {

using CoreId = core::ExprId;
using TreeId = ast::ExprId;
using core::FamilyId;
using core::ParamId;

// ---- values ------------------------------------------------------------------------------------

// An index or an extent (decisions.md, 19) and a literal (decisions.md, 20) have no type of their
// own: they adapt to the type they meet. Until then the body is computed in i64 or f64.
enum class Typing : uint8_t { Fixed, Int, Float };

struct Closure;

struct Index;

struct TextPart {
  std::string text;
  std::optional<size_t> item;  // the value shown here instead of text; Open: its gate
  std::string format;
  // What stands from an Open to its Close is there once for each address of its indices where its
  // gate holds (join.cc). Values inside have a coordinate for each of them, outermost first.
  enum class Join : uint8_t { None, Open, Close } join = Join::None;
  size_t rank = 0;                   // how many indices it has itself
  std::vector<Index*> binders = {};  // those; their ranges are known when `sealed`
  bool sealed = false;               // values inside are families, gates have been applied to them
};

struct Value {
  enum class Kind : uint8_t {
    Poison,  // an error was reported; everything made from it is silent
    Data,
    Table,     // an array literal whose cells have not become a family yet
    Tuple,     // several values; only patterns, fields, calls and `print` take it apart
    Function,  // a lambda, or a function by its name; only calls take it
    Text,      // a string; known when compiling, but for the values it shows
  };
  Kind kind = Kind::Poison;
  DType type = DType::F32;
  Typing typing = Typing::Fixed;
  std::vector<core::Coord> coords;  // carried, in order
  CoreId body;                      // Data
  uint32_t depth = 0;
  std::vector<CoreId> cells;    // Table: row-major
  std::vector<Value> items;     // Tuple; Text: the values it shows
  std::vector<TextPart> parts;  // Text
  std::shared_ptr<const Closure> function;
  Span span;
  Span division;  // where two untyped integers were divided, if the value is made of that

  bool poison() const { return kind == Kind::Poison; }
  bool scalar() const { return coords.empty(); }
  bool one() const { return kind == Kind::Data || kind == Kind::Table; }  // cells of one type
};

// ---- names -------------------------------------------------------------------------------------

// An index in scope. Its range holds placeholders until the statement is complete, if not written.
struct Index {
  Symbol name;
  Span span;
  uint32_t slot = 0;
  core::Range range;
  bool inferred = false;
  bool left = false;  // a coordinate of the left side; otherwise bound by a reduction
  bool used = false;
  bool in_brackets = false;  // used inside an index slot
};

struct ClauseOut;
struct Definition;
struct Scope;
struct Site;
struct PendingGate;

// A pack is a list of coordinates from the moment its rank is known; nothing after sema sees one.
struct PackCoord {
  Symbol name;    // of its index and label here; no name that the text around it spells
  Symbol label;   // what the value it was taken from calls it; invalid when it has no name
  CoreId extent;  // invalid for a pack of a statement, whose ranges are inferred
};
struct Pack {
  Symbol name;
  std::vector<PackCoord> coords;
  Span span;
};

// A link of the lexical chain, innermost first.
struct Frame {
  const Frame* up = nullptr;
  bool function = false;  // indices further out belong to the caller
  bool rule = false;      // of an `@fn`: `@x` is the tangent of its parameter x
  // Indices of a lifted argument: seen only alone in a slot (decisions.md, 1).
  bool slots_only = false;
  std::vector<Pack> packs;
  std::vector<Index*> indices;
  std::vector<std::pair<ast::Name, Value>> values;  // parameters and `where` bindings
  Scope* scope = nullptr;
};

// A coordinate of the clause being elaborated, its enclosing clauses' included.
struct SiteSlot {
  Symbol name;
  core::Range range;  // of this clause
  CoreId extent;      // of the family
};

struct Env {
  const Frame* frame = nullptr;
  uint32_t depth = 0;
  Site* site = nullptr;
  // The slots above the site's: reduced indices, and what a call maps over. Fewer than there are
  // when one of them has no range of its own.
  std::vector<SiteSlot> binders;
  std::vector<CoreId> conds;        // what holds here: gates and `if` conditions around
  std::vector<PendingGate*> gates;  // outside gates looking for their reduction
  bool shadow_ok = false;  // in an index slot or a comparison: may hide a value (decisions.md, 2)
  bool in_slot = false;
  bool effects = false;  // a call made as a statement of the top level: its body may print
  const ast::Fn* recursive = nullptr;  // in the body of a recursive function
};

// One slot of a left side.
struct Left {
  Index* index = nullptr;  // null for a literal
  Span span;
};

// A coordinate of the right side that a left index took over: it has that extent.
struct Hint {
  size_t left = 0;
  CoreId extent;
  Span span;
};

// One elaborated clause: every left slot and trailing coordinate is a slot of its body.
struct ClauseOut {
  bool bad = false;
  std::vector<core::Coord> coords;  // own coordinates (without the enclosing prefix)
  std::vector<core::Range> box;     // the same
  std::vector<Left> left;           // what was written on the left
  std::vector<Hint> hints;
  Value body;  // scalar
  CoreId gate;
  std::optional<Value> otherwise;
  Span span;
  Site* site = nullptr;
  std::vector<core::Clause> siblings;  // the other values of a tuple clause share its ranges
};
// Several clauses of one name in one scope.
struct Definition {
  enum class State : uint8_t { Todo, Busy, Header, Done, Bad };
  ast::Name name;
  std::vector<ast::StmtId> clauses;
  Scope* scope = nullptr;
  State state = State::Todo;
  int group = -1;  // definitions with the same number read each other
  bool recurrent = false;
  FamilyId family;
  std::vector<uint32_t> carries;  // slots of the enclosing clause: the first coordinates
  std::optional<Value> inlined;   // a local that is not a family
  CoreId constant;                // the i64 value, if it is an integer over literals and extents
  std::vector<CoreId> extents;    // placeholders of the slots' extents
  bool input = false;
  bool exported = false;  // `pub const`
  bool finishing = false;
  std::vector<std::optional<ClauseOut>> outs;  // elaborated clauses, in source order
};

// The left side of a clause with its packs expanded.
struct LeftSlot {
  const ast::Slot* slot = nullptr;
  Symbol name;  // of the index; invalid for a literal
};
struct LeftSide {
  bool bad = false;
  std::vector<LeftSlot> slots;
  std::vector<Pack> packs;  // those that this statement itself brings
};

// A function of some scope, seen from another.
struct Function {
  const ast::Fn* fn = nullptr;
  ast::StmtId stmt;
  Scope* home = nullptr;  // where its free names are looked up
};

// `use path::*`
struct Glob {
  Scope* module = nullptr;
  Span span;
};

struct ExtentName {
  CoreId extent;
  Span span;
};

// What a module, a block or a function body defines. Names are looked up on demand.
struct Scope {
  Env env;  // where its definitions are elaborated
  Frame frame;
  std::deque<Definition> definitions;
  std::vector<Definition*> order;        // what is read comes before its readers
  std::map<Symbol, Definition*> values;  // its own and those that `use` names
  std::map<Symbol, Function> functions;  // the same
  std::map<Symbol, Function> rules;      // `@fn`, by the name of the function
  std::map<Symbol, Symbol> primitives;   // scalar primitives that `use` names, by their names here
  std::map<Symbol, Scope*> modules;      // by `mod` and `use`
  std::vector<Glob> globs;
  std::set<Symbol> missing;   // names that an import failed to bring: reported once, there
  bool missing_glob = false;  // the same for any name
  bool module = false;        // the top level of a file
  bool root = false;          // of the program: its families keep their names
  bool signature = false;     // of one call: names of the parameters' types belong to it
  bool broken = false;        // a condition on the call does not hold: there is no value
  std::map<Symbol, ExtentName> extents;                  // from type annotations
  std::map<Symbol, Definition*> extent_sources;          // annotations not looked at yet
  std::map<ast::StmtId, std::vector<ClauseOut>> tuples;  // one per name, elaborated together
  std::map<ast::StmtId, LeftSide> lefts;
  bool step = false;           // a block of a recurrence step: its locals are families
  std::set<Symbol> requested;  // locals that a request names
  std::set<Symbol> stepped;    // names that the block offsets, among them the recurrence's steps
};

// An access as written, for labels: Core nodes are shared and do not know all their places.
struct Use {
  FamilyId family;
  std::vector<TreeId> at;
  std::vector<CoreId> indices;  // the same, elaborated
  Span span;
};

// An operand as written, for warnings about indices at the wrong coordinate (axes.cc).
struct AxisSlot {
  Symbol coordinate;       // the name of the coordinate; invalid when it has none
  CoreId extent;           // of the coordinate
  Index* own = nullptr;    // the index in scope that has this name
  Index* index = nullptr;  // what stands there: an index alone, or
  int64_t offset = 0;      // one with a constant added
  Span span;
};
struct AxisRead {
  Symbol base;
  std::vector<AxisSlot> slots;
  bool self = false;          // of a family that the statement defines
  std::vector<Symbol> names;  // of all coordinates of the operand
  Span span;
  ast::StmtId function;  // the one being inlined
};

// The clause being elaborated.
struct Site {
  Site* outer = nullptr;
  Definition* definition = nullptr;
  std::string name;             // prefix of generated names
  std::vector<SiteSlot> slots;  // slots 0 …
  std::vector<Use> uses;
  std::vector<AxisRead> axes;
  std::vector<std::pair<FamilyId, core::Clause>> lifted;  // locals made into families
  std::set<Symbol> reported;                              // names already complained about
  Span span;                                              // the left side
  Span statement;
  Span value;   // the right side, without its `where`
  TreeId tree;  // the same
};

// ---- ranges ------------------------------------------------------------------------------------

// A range to be inferred, known by its two placeholders.
struct Unknown {
  ParamId lo, hi;
  Symbol name;
  Span span;
  bool left = false;
};

// An `assert` of a function that a call has to meet (contracts.cc).
struct Contract {
  CoreId cond;
  std::string message;
  Span call, written;
};

struct Lifted {
  FamilyId family;
  std::vector<core::Range> prefix;  // outside of these ranges the family is zero
};

// A function as a value.
struct Closure {
  ast::Fn fn;                   // a lambda has its parameters and its body, and no name
  ast::StmtId stmt;             // invalid for lambdas and primitives
  const Frame* home = nullptr;  // what its body sees
  std::optional<core::Op> primitive;
  ast::TypeId type;  // the function type of the parameter it was given to
  std::string name;  // for messages
};

struct Sema {
  const Program& program;
  const ast::Ast& ast;
  Diagnostics& diags;
  const FileLookup& files;
  const InputShapes& inputs;
  core::Module m;

  std::vector<Unknown> unknowns;               // ranges not known yet
  std::unordered_map<ParamId, CoreId> solved;  // placeholders that are known by now
  // Whether a node holds a placeholder, known or not; by node, and a node never changes.
  enum class Unsolved : uint8_t { NotLooked, No, Yes };
  mutable std::vector<Unsolved> unsolved;
  uint32_t placeholders = 0;
  std::deque<Scope> scopes;
  std::deque<Index> indices;
  std::deque<Site> sites;
  std::deque<Frame> frames;
  std::vector<Lifted> lifted;
  std::vector<Definition*> busy;          // being elaborated, outermost first
  std::vector<ast::StmtId> calls;         // functions being inlined; lambdas are invalid
  std::set<ast::StmtId> called;           // functions that some call was checked for
  std::map<ast::StmtId, bool> recursive;  // which functions call themselves, once asked
  std::map<ast::StmtId, core::FunctionId> functions;  // those of them that are called
  size_t inlined = 0;                                 // calls so far
  std::set<ast::StmtId> bad_functions;                // whose body was reported already
  std::set<std::pair<uint32_t, uint32_t>> warned;     // places of warnings
  std::unordered_map<FamilyId, Definition*> owner;    // of families the user named
  // Where a family's clauses were elaborated.
  std::unordered_map<FamilyId, std::vector<const Site*>> made_at;
  std::set<Symbol> reserved;                               // names that generated ones must avoid
  std::unordered_map<std::string, int> fresh;              // the next number to try behind a name
  std::map<ast::StmtId, std::set<Symbol>> function_names;  // free names of functions
  std::vector<std::vector<Definition*>> groups;  // definitions that read each other, by number
  // Of coordinates that a gated call restricts (decisions.md, 17), and the gate.
  std::vector<CoreId> gated_extents;
  Span gated_by;

  std::vector<Span> call_places;       // of the calls being inlined, outermost first
  std::vector<Contract> contracts;     // whose extents are not known yet
  std::vector<Symbol> constant_along;  // result coordinates that the last body did not spell
  size_t broken_contracts = 0;         // errors so far that are a call's fault, not the function's

  std::vector<std::map<Symbol, DType>> element_types;  // of the calls being inlined
  std::vector<Scope*> modules;                         // as in the program; the root is last

  Sema(const Program& p, const FileLookup& lookup, const InputShapes& given, Diagnostics& sink)
      : program(p), ast(p.ast), diags(sink), files(lookup), inputs(given) {}
  const ast::Expr& operator[](TreeId id) const { return ast.exprs[id]; }
};

}  // namespace ein::sema
