// The state of elaboration and the vocabulary of its files. Everything is a free function over
// Sema; each file below owns one concern.
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

// A literal, an index or an extent has no type of its own: it adapts to the type it meets
// (decisions 19, 20). While it adapts, its body is computed in i64 or f64.
enum class Typing : uint8_t { Fixed, Int, Float };

struct Closure;

struct TextPart {
  std::string text;
  std::optional<size_t> item;  // the value shown here instead of text
  std::string format;
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
  Span division;  // where two integer literals were divided, if the value is made of that

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
  bool function = false;    // indices further out belong to the caller
  bool rule = false;        // of an `@fn`: `@x` is the tangent of its parameter x
  bool slots_only = false;  // indices of a lifted argument: seen only alone in a slot (decision 1)
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
  bool shadow_ok = false;           // in an index slot or a comparison (decision 2)
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
  std::map<Symbol, Scope*> modules;      // by `mod` and `use`
  std::vector<Glob> globs;
  std::set<Symbol> missing;   // names that an import failed to bring: reported once, there
  bool missing_glob = false;  // the same for any name
  bool module = false;        // the top level of a file
  bool root = false;          // of the program: its families keep their names
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

// The clause being elaborated.
struct Site {
  Site* outer = nullptr;
  Definition* definition = nullptr;
  std::string name;             // prefix of generated names
  std::vector<SiteSlot> slots;  // slots 0 …
  std::vector<Use> uses;
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
  std::vector<CoreId> gated_extents;  // of coordinates that a gated call restricts (decision 17)
  Span gated_by;                      // the gate

  std::vector<std::map<Symbol, DType>> element_types;  // of the calls being inlined
  std::vector<Scope*> modules;                         // as in the program; the root is last

  Sema(const Program& p, const FileLookup& lookup, const InputShapes& given, Diagnostics& sink)
      : program(p), ast(p.ast), diags(sink), files(lookup), inputs(given) {}
  const ast::Expr& operator[](TreeId id) const { return ast.exprs[id]; }
};

// ---- names.cc: scopes and lookup ---------------------------------------------------------------

struct Found {
  enum class Kind : uint8_t { None, Index, Value, Extent } kind = Kind::None;
  Index* index = nullptr;
  Value value;
};
void declare(Sema& s, Scope& scope, const std::vector<ast::StmtId>& stmts);
Index* find_index(const Env& env, Symbol name);
// The same for a name alone in an index slot, where lifted coordinates are seen too.
Index* find_slot_index(const Env& env, Symbol name);
Definition* find_definition(const Env& env, Symbol name);
const Function* find_function(const Env& env, Symbol name);  // null when there is none
// The same for what stands before the parentheses of a call; a path may lead to a module.
const Function* find_callee(Sema& s, const Env& env, TreeId callee);
bool value_exists(const Env& env, Symbol name);
Found lookup(Sema& s, Env& env, ast::Name name, bool skip_indices = false);
std::optional<CoreId> find_extent(Sema& s, const Env& env, Symbol name);
std::vector<std::string> value_names(const Env& env);
std::vector<std::string> function_names(const Env& env);
void report_unknown(Sema& s, Env& env, ast::Name name);

// ---- imports.cc: names of other modules ---------------------------------------------------------

void import(Sema& s, Scope& scope, ast::StmtId id);  // a `use` or `mod`
// An exported item by its path.
const Function* function_at(Sema& s, const Env& env, const ast::Path& path, bool report);
Definition* value_at(Sema& s, const Env& env, const ast::Path& path);
// What the globs of one scope bring for a name that nothing closer defines.
const Function* glob_function(const Scope& scope, Symbol name);
Definition* glob_value(const Scope& scope, Symbol name);
// An import that was reported should have brought the name.
bool import_failed(const Env& env, Symbol name);
// Reports the name when two globs bring it; true when it did.
bool ambiguous(Sema& s, const Env& env, ast::Name name, bool function);

// ---- free.cc: free names of trees --------------------------------------------------------------

std::set<Symbol> free_names(const ast::Ast& ast, TreeId e);
// Every node below `e`, blocks included; for questions that do not depend on scopes.
void for_each_tree(const ast::Ast& ast, TreeId e, const std::function<void(TreeId)>& f);
// Names that a `let` or `const` of `scope` reads, directly and through functions of the scope.
std::set<Symbol> clause_names(Sema& s, const Scope& scope, const ast::Stmt& stmt);
// Where a forgotten sum over `name` belongs in `e`: around the term that has it.
TreeId sum_body(const ast::Ast& ast, TreeId e, Symbol name);
std::set<Symbol> reduced_names(const ast::Ast& ast, TreeId e);    // bound by reductions inside
std::set<Symbol> requested_names(const ast::Ast& ast, TreeId e);  // operands of requests
std::set<Symbol> stepped_names(const ast::Ast& ast,
                               TreeId e);  // in index expressions such as `t - 1`
void find_groups(Sema& s, Scope& scope);
// Functions of `scope` that the body of another one calls or names.
std::set<ast::StmtId> named_functions(const Sema& s, const Scope& scope, ast::StmtId function);

// ---- values.cc ---------------------------------------------------------------------------------

Value data(const Env& env, DType type, CoreId body, Span span);
Value untyped_int(const Env& env, CoreId body, Span span);
// The scalar at the given indices, for use at `depth`.
CoreId cell(Sema& s, const Value& v, const std::vector<CoreId>& at, uint32_t depth);
Value moved(Sema& s, const Value& v, uint32_t depth);
// A common coordinate list for operands of a pointwise operation; reports and returns false when
// they differ. Scalars fit everything.
bool same_coords(Sema& s, const Env& env, std::vector<Value*> values, Span span,
                 std::vector<core::Coord>& out);
// Operands moved to one depth with one coordinate list, ready for a builder.
std::vector<CoreId> aligned(Sema& s, const Env& env, const std::vector<Value>& values, size_t rank);
// The family of which `v` is a whole-value read, with its prefix; invalid when it is anything else.
FamilyId whole_family(const Sema& s, const Value& v);
// The coordinates and the box of a value, with every unwritten range in it solved.
ClauseOut ranges_of(Sema& s, Env& env, const Value& v);
// A family that holds the value; the name is made fresh. Invalid after an error.
FamilyId family_of(Sema& s, Env& env, const Value& v, const std::string& name);
// The whole family at the current place; its first coordinates are the given enclosing slots.
Value read_family(Sema& s, const Env& env, FamilyId family, const std::vector<uint32_t>& carries,
                  Span span);
std::string show_coords(const Sema& s, const std::vector<core::Coord>& coords);
std::string show(const Sema& s, CoreId extent);
std::string show_value(const Sema& s, const Value& v);  // "`f32` over [b, class]"

// ---- types.cc ----------------------------------------------------------------------------------

std::optional<DType> scalar_type(Symbol name);
DType default_type(const Value& v);
// Converts or reports. `what` names the other side in messages.
Value adapt(Sema& s, const Env& env, Value v, DType to);
bool fits(const Value& v, DType to);  // without an error
// Brings operands to one type; reports when they differ.
bool same_type(Sema& s, const Env& env, std::vector<Value*> values, Span span);
// True, and reported, for a tuple, a function or a string.
bool reject_non_data(Sema& s, const Value& v);
bool reject_untyped_empty(Sema& s, const Value& v);      // the same for `[]` that met no type
Value settle(Sema& s, const Env& env, Value v);          // default type, tables become families
Value as_data(Sema& s, const Env& env, Value v);         // tables become families
Value without_tables(Sema& s, const Env& env, Value v);  // the same, in tuples too
Value table_as(Sema& s, const Env& env, const Value& v, DType type, const std::string& name);
CoreId zero(Sema& s, DType type);  // false for bool

// ---- annotations.cc ----------------------------------------------------------------------------

std::optional<DType> element_type(Sema& s, ast::TypeId type);  // reported when it is not a scalar
// `T` in `x: [T; n]`: a capitalised name, bound to a type by each call of the function.
bool is_type_parameter(const Sema& s, ast::TypeId type);
const std::vector<ast::Dim>* dims_of(const Sema& s, ast::TypeId type);  // null for a scalar type
// The extent that one dimension of a type stands for. A name that is new in `scope` is bound to
// `actual`; arithmetic is solved for one new name. Invalid after an error.
CoreId dim_extent(Sema& s, Env& env, Scope& scope, const ast::Dim& dim, CoreId actual);
Symbol dim_name(const Sema& s, const ast::Dim& dim);
// Applies the dimensions of a type to coordinates, by position (decision 5); false after an error.
// `rename`: the type's names replace the value's, as `as` does.
bool annotate(Sema& s, Env& env, Scope& scope, std::vector<core::Coord>& coords, ast::TypeId type,
              Span value, const std::string& what, bool rename = false);
bool any_rank(const Sema& s, ast::TypeId type);  // `[f32; *]`

// ---- guess.cc ----------------------------------------------------------------------------------

// The element type of an expression without elaborating it; for recurrences that start from bare
// literals. `self` is the definition whose type is wanted.
struct Guess {
  Typing typing = Typing::Int;
  DType type = DType::I32;
};
std::optional<Guess> guess_type(Sema& s, Env& env, TreeId e, const Definition* self);

// ---- extents.cc --------------------------------------------------------------------------------

CoreId placeholder(Sema& s);
core::Range unknown_range(Sema& s, ast::Name name, bool left);
bool is_placeholder(ParamId p);
bool has_unsolved(const Sema& s, CoreId e);
CoreId resolve(Sema& s, CoreId e);
core::Range resolve(Sema& s, core::Range r);
core::Facts entry_facts(const Sema& s);
enum class Truth : uint8_t { Yes, No, Open };
Truth equal(Sema& s, CoreId a, CoreId b);
void constrain(Sema& s, CoreId cond, std::string message, Span first, Span second);
CoreId least(Sema& s, CoreId a, CoreId b);
CoreId greatest(Sema& s, CoreId a, CoreId b);

// ---- expr.cc, operators.cc ---------------------------------------------------------------------

Value elaborate(Sema& s, Env& env, TreeId e);
Value elaborate_in_slot(Sema& s, Env& env, TreeId e);
CoreId elaborate_index(Sema& s, Env& env, TreeId e);  // i64; invalid after an error
CoreId as_index(Sema& s, const Env& env, const Value& v, TreeId e);
bool elaborate_range(Sema& s, Env& env, TreeId e, core::Range& out);
Value condition(Sema& s, Env& env, TreeId e);  // bool, reported otherwise
Value apply_unary(Sema& s, Env& env, core::Op op, Value a, Span span);
Value apply_binary(Sema& s, Env& env, core::Op op, Value a, Value b, Span span, Span op_span);
Value apply_pointwise(Sema& s, Env& env, core::Op op, std::vector<Value> args, Span span);
Value select(Sema& s, Env& env, Value cond, Value yes, Value no, Span span);
Value elaborate_cast(Sema& s, Env& env, const ast::Cast& cast, Span span);
Value elaborate_array(Sema& s, Env& env, TreeId e);
Value unsupported(Sema& s, Span span, const std::string& what, const std::string& help = {});
// Core numbers at most core::kMaxSlots indices; a derivative needs those of two definitions.
bool too_many_indices(Sema& s, size_t count, Span span);
Value zero_like(Sema& s, const Env& env, const Value& v);

// ---- tuples.cc ---------------------------------------------------------------------------------

Value elaborate_tuple(Sema& s, Env& env, const ast::Tuple& tuple, Span span);
Value elaborate_field(Sema& s, Env& env, const ast::Field& field, Span span);
const ast::TupleType* tuple_type(const Sema& s, ast::TypeId type);  // null for any other
bool is_text_type(const Sema& s, ast::TypeId type);
// The value of a `let` that is a tuple, a function or a string: what it computes becomes families.
// Invalid after an error.
std::optional<Value> hold_value(Sema& s, Env& env, Value v, ast::TypeId type, Scope& scope,
                                const std::string& name);

// ---- text.cc -----------------------------------------------------------------------------------

Value elaborate_text(Sema& s, Env& env, const ast::StrLit& str, Span span);
Value plain_text(const Env& env, std::string text, Span span);
std::optional<std::string> constant_text(const Value& v);  // none when it shows values
Value elaborate_typeof(Sema& s, Env& env, const ast::Call& call, Span span);
std::string type_text(const Sema& s, const Value& v);  // `[f32; b, class]`

// ---- function_values.cc ------------------------------------------------------------------------

Value function_value(const Function& f, const Env& env, Span span);
Value lambda_value(Sema& s, Env& env, const ast::Lambda& lambda, Span span);
// The function of that name as a value; none when there is none.
std::optional<Value> named_function(Sema& s, const Env& env, const ast::Name& name);
// What a call of `name` calls, if that is a value; innermost scopes first.
std::optional<Value> called_value(Sema& s, Env& env, const ast::Name& name);
Value call_value(Sema& s, Env& env, const Value& f, std::vector<Value> args, Span span);
// A function given where the type `fn(f32) -> f32` is written; poison after an error.
Value fit_function(Sema& s, const Value& v, ast::TypeId type, const std::string& what);

// ---- match.cc ----------------------------------------------------------------------------------

Value elaborate_match(Sema& s, Env& env, const ast::Match& match, Span span);

// ---- access.cc ---------------------------------------------------------------------------------

Value elaborate_base(Sema& s, Env& env, TreeId base);  // of an access: never an index
Value elaborate_access(Sema& s, Env& env, const ast::Index& index, Span span);
Value elaborate_extent(Sema& s, Env& env, const ast::Call& call, Span span);
void note_use(Sema& s, Env& env, const Value& base, const std::vector<TreeId>& at,
              const std::vector<CoreId>& indices, Span span);

// ---- reduce.cc, gates.cc -----------------------------------------------------------------------

struct Reduction {
  core::ReduceOp op;
  bool mean = false;
};
std::optional<Reduction> reduction_named(Symbol name);
Value elaborate_reduction(Sema& s, Env& env, Reduction op, const ast::Call& call, Span span);

// An outside gate whose names are bound by reductions further in (decision 16).
struct PendingGate {
  const ast::Where* where = nullptr;
  std::set<Symbol> names;
  bool placed = false;
  std::vector<Symbol> open;  // left names that the body does not spell: they take what it carries
  std::set<Symbol> renamed;  // those of them that the gate uses (decision 17)
};
struct Gate {
  CoreId cond;                 // invalid: none; scalar gates only
  std::optional<Value> whole;  // a gate that carries coordinates itself
  bool poison = false;
};
// Evaluates the items in order; bindings go to `frame`, which `env` must already point to.
Gate elaborate_items(Sema& s, Env& env, Frame& frame, const std::vector<ast::WhereItem>& items);
struct Gated {
  Value body;
  std::optional<Value> gate;
  std::optional<Value> otherwise;
};
Gated split_gate(Sema& s, Env& env, TreeId e);  // the outermost `where` kept apart
Value elaborate_where(Sema& s, Env& env, TreeId e);

// ---- functions.cc ------------------------------------------------------------------------------

Value elaborate_call(Sema& s, Env& env, const ast::Call& call, Span span);
struct Bracketing;  // what stands in the brackets of a call (coords.h)
// `home`: what the body sees. `stmt` is invalid for a lambda.
Value call_function(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                    std::vector<Value> args, Span span, const Bracketing* brackets = nullptr);
std::optional<core::Op> primitive_named(Symbol name);
bool is_builtin(Symbol name);  // something that a call means without any definition

// ---- rules.cc: `@fn` --------------------------------------------------------------------------

void check_rules(Sema& s, Scope& scope);  // against their functions, when the scope is declared
// The rule of a function, if it has one and derivatives are asked for; null inside the rule itself.
const Function* rule_of(const Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home);
// The value of a call together with what its rule says.
Value with_rule(Sema& s, Env& env, const Function& rule, Value value, Value tangent, Span span);
Value elaborate_tangent(Sema& s, Env& env, const ast::Request& request, Span span);

// ---- recursion.cc ------------------------------------------------------------------------------

// Directly, or through other functions of its scope.
bool calls_itself(Sema& s, const Scope& scope, ast::StmtId function);
// Whether a recursive function has a signature of scalars; reported when it does not.
bool scalar_signature(Sema& s, const ast::Fn& fn, const Scope& scope, Span call);
// A call with arguments of the parameters' types: a node of Core, not an inlined body.
Value call_recursive(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                     const std::vector<Value>& args, Span span);

// ---- random.cc ---------------------------------------------------------------------------------

Value elaborate_random(Sema& s, Env& env, core::Op op, const ast::Call& call, Span span);

// ---- files.cc ----------------------------------------------------------------------------------

Value elaborate_load(Sema& s, Env& env, const ast::Call& call, Span span);
void elaborate_save(Sema& s, Env& env, const ast::Call& call, Span span);
// `let W = load(…)` names the loaded family itself: W is its binding, not a copy of it.
FamilyId loaded_family(const Sema& s, const Definition& d);  // invalid when `d` is not that
void adopt_load(Sema& s, Definition& d, FamilyId loaded, std::vector<core::Coord> coords);

// ---- define.cc, clause.cc, boxes.cc, locals.cc -------------------------------------------------

void define(Sema& s, Definition& d);
Value read_definition(Sema& s, Env& env, Definition& d, Span span);
ClauseOut elaborate_clause(Sema& s, Definition& d, ast::StmtId stmt);
bool closed(Sema& s, CoreId e);  // made of literals and extents alone
// A local that is a family although it stands inside a reduction: it has several clauses or is a
// recurrence, and carries the reduced indices as coordinates.
bool carries_binders(Sema& s, const Definition& d);
// Solves every unwritten range of the clause (decision 9). `fallback[p]` is the extent that other
// clauses give left slot p, for an index that nothing in this clause bounds; invalid when unknown.
void infer_ranges(Sema& s, ClauseOut& clause,
                  const std::function<std::vector<CoreId>()>& fallbacks);

using Box = std::vector<core::Range>;
std::vector<Box> subtract(Sema& s, const Box& a, const Box& b);
bool provably_empty(Sema& s, const Box& box);
// Clauses with disjoint boxes that cover the coordinates; holes are reported (decision 11).
std::vector<core::Clause> disjoint(Sema& s, const Definition& d,
                                   const std::vector<core::Coord>& coords, DType type);
// Inside a reduction that binds slots the enclosing clause does not have.
inline bool under_binder(const Env& env) {
  return env.depth != (env.site ? env.site->slots.size() : 0);
}
Value elaborate_block(Sema& s, Env& env, const ast::Block& block, Span span);
// The scope of a block with its statements defined.
Scope& open_block(Sema& s, Env& env, const ast::Block& block);
// The body of a function called as a statement: its statements in order, its value too.
void elaborate_procedure(Sema& s, Env& env, const ast::Block& block);
void elaborate_statement(Sema& s, const Env& env, TreeId value);
// Does what a statement does; false when that is nothing.
bool perform(Sema& s, const Env& env, TreeId value);
Symbol fresh_family_name(Sema& s, const std::string& base);

// ---- requests.cc, effects.cc, inputs.cc, finish.cc ---------------------------------------------

Value elaborate_request(Sema& s, Env& env, const ast::Request& request, Span span);
bool is_effect(Symbol name);
void elaborate_effect(Sema& s, Env& env, const ast::Call& call, Span span);
void declare_inputs(Sema& s, Scope& scope);
void finish(Sema& s);

// ---- uncalled.cc -------------------------------------------------------------------------------

// Functions are checked where they are called; of the others, the names they spell.
void check_uncalled(Sema& s, Scope& module);

// ---- small helpers -----------------------------------------------------------------------------

inline std::string quoted(Symbol name) { return "`" + text(name) + "`"; }
inline std::string quoted(const std::string& name) { return "`" + name + "`"; }
const ast::Path* as_path(const Sema& s, TreeId e);  // a single name, or null
Symbol path_name(const Sema& s, TreeId e);          // invalid when `e` is not a single name

}  // namespace ein::sema
