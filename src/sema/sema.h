// The vocabulary of elaboration. Everything is a free function over Sema (state.h); each file below
// owns one concern.
#pragma once

#include "sema/state.h"

namespace ein::sema {

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
// The scalar primitive that a name stands for where no function has it: one that `use` gave another
// name, or itself. The same for a path, which leads to the module that exports them; invalid when
// it does not.
Symbol primitive_called(const Env& env, Symbol name);
Symbol primitive_at(Sema& s, const Env& env, const ast::Path& path);
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
// The conditions around this place as one, or none. Those from further out number the binders of
// the reductions in them from there; here they are numbered from this depth.
CoreId conditions(Sema& s, const Env& env);
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
// The slots around the current place, all of them.
std::vector<uint32_t> enclosing_slots(const Env& env);
// The value as a read of a family of its own, which carries all enclosing slots; poison after an
// error.
Value bound_to_family(Sema& s, Env& env, const Value& v, const std::string& name);
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
// `asked`: by `as`, which rounds what is too large to infinity; nothing else may lose a literal.
Value adapt(Sema& s, const Env& env, Value v, DType to, bool asked = false);
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
// The type that `f32` or the elements of `[f32; n]` are written with; nothing for any other type.
std::optional<DType> written_type(const Sema& s, ast::TypeId type);
const std::vector<ast::Dim>* dims_of(const Sema& s, ast::TypeId type);  // null for a scalar type
// The extent that one dimension of a type stands for. A name that is new in `scope` is bound to
// `actual`; arithmetic is solved for one new name. Invalid after an error.
CoreId dim_extent(Sema& s, Env& env, Scope& scope, const ast::Dim& dim, CoreId actual);
Symbol dim_name(const Sema& s, const ast::Dim& dim);
// Applies the dimensions of a type to coordinates, by position (decisions.md, 5); false after an
// error. `rename`: the type's names replace the value's, as `as` does.
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
// The end of a range with scalar integer inputs in it as params, which are known at entry.
CoreId as_extent(Sema& s, CoreId e);
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
// Adds what shows `v` to a text: strings and tuples as their parts. False after an error.
bool add_text(Sema& s, const Value& v, const std::string& format, Value& out);
std::optional<std::string> constant_text(const Value& v);  // none when it shows values
Value elaborate_typeof(Sema& s, Env& env, const ast::Call& call, Span span);
std::string type_text(const Sema& s, const Value& v);  // `[f32; b, class]`

// ---- join.cc -----------------------------------------------------------------------------------

struct Gate;
// `join[i]("{x[i]} " where …)`: `body` was elaborated in `env`, which has the binders.
Value join_text(Sema& s, Env& outer, Env& env, const std::vector<Index*>& binders, const Gate& gate,
                Value body, Span span);
// One string or the other, as a condition says when the program runs.
Value choose_text(Sema& s, Env& env, const Value& cond, const Value& yes, const Value& no,
                  Span span);
bool joins(const Value& text);

// ---- function_values.cc ------------------------------------------------------------------------

Value function_value(const Function& f, const Env& env, Span span);
Value lambda_value(Sema& s, Env& env, const ast::Lambda& lambda, Span span);
// The function of that name as a value; none when there is none.
Value primitive_value(core::Op op, const Env& env, const ast::Name& name);
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
  bool join = false;  // of strings: no ReduceOp
};
std::optional<Reduction> reduction_named(Symbol name);
Value elaborate_reduction(Sema& s, Env& env, Reduction op, const ast::Call& call, Span span);

// An outside gate whose names are bound by reductions further in, to which it is copied
// (decisions.md, 16).
struct PendingGate {
  const ast::Where* where = nullptr;
  std::set<Symbol> names;
  bool placed = false;
  std::vector<Symbol> open;  // left names that the body does not spell: they take what it carries
  std::set<Symbol> renamed;  // those that the gate uses: a call's coordinates (decisions.md, 17)
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

// ---- unknown_function.cc ------------------------------------------------------------------------

Value unknown_function(Sema& s, Env& env, const ast::Name& name);
// What to add for a function that is not in scope; empty: the library has none of that name.
std::string how_to_import(const Sema& s, Symbol function);

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
// A rule that is constant along coordinates of its function's result, which the function's body
// is not: reported, and false.
bool check_spread(Sema& s, const Function& rule, const ast::Fn& fn, const Value& tangent,
                  const std::vector<Symbol>& unspelled, Span span);
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
bool closed(const Sema& s, CoreId e);  // made of literals and extents alone
// A local that is a family although it stands inside a reduction: it has several clauses or is a
// recurrence, and carries the reduced indices as coordinates.
bool carries_binders(Sema& s, const Definition& d);
// Solves every unwritten range of the clause: the largest box in bounds (decisions.md, 9).
// `fallback[p]` is the extent that other clauses give left slot p, for an index that nothing in
// this clause bounds; invalid when unknown.
void infer_ranges(Sema& s, ClauseOut& clause,
                  const std::function<std::vector<CoreId>()>& fallbacks);

using Box = std::vector<core::Range>;
std::vector<Box> subtract(Sema& s, const Box& a, const Box& b);
bool provably_empty(Sema& s, const Box& box);
// Clauses with disjoint boxes that cover the coordinates; holes are reported (decisions.md, 11).
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

// `x` of `x` and `x[i]`; invalid for anything else.
TreeId named_base(const Sema& s, TreeId e);
Value elaborate_request(Sema& s, Env& env, const ast::Request& request, Span span);
bool is_effect(Symbol name);
// The pieces of a line that show a value; false after an error.
bool add_value(Sema& s, Env& env, const Value& v, const std::string& format,
               std::vector<core::Piece>& out);
void elaborate_effect(Sema& s, Env& env, const ast::Call& call, Span span);
void declare_inputs(Sema& s, Scope& scope);
void finish(Sema& s);

// ---- contracts.cc ------------------------------------------------------------------------------

// An `assert` among the statements of a block; false after an error.
bool check_contract(Sema& s, Env& env, const ast::Call& call, Span span);
void check_contracts(Sema& s);  // those that had to wait for extents

// ---- axes.cc: indices at the wrong coordinate ---------------------------------------------------

void note_axes(Sema& s, Env& env, TreeId base, const Value& value, const std::vector<TreeId>& at,
               Span span);
// When the statement has been read; `left` is its left side.
void warn_axes(Sema& s, const Site& site, const std::vector<Left>& left = {});

// ---- uncalled.cc -------------------------------------------------------------------------------

// Functions are checked where they are called; of the others, the names they spell.
void check_uncalled(Sema& s, Scope& module);

// ---- small helpers -----------------------------------------------------------------------------

inline std::string quoted(Symbol name) { return "`" + text(name) + "`"; }
// By value: std::quoted takes references, and must not be the better match.
inline std::string quoted(std::string name) { return "`" + std::move(name) + "`"; }
// Adds "did you mean", with a fix to be checked; false when nothing is near.
bool suggest(Diagnostic& d, const std::string& near, Span span);
const ast::Path* as_path(const Sema& s, TreeId e);  // a single name, or null
Symbol path_name(const Sema& s, TreeId e);          // invalid when `e` is not a single name

}  // namespace ein::sema
