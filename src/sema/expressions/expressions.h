// Expressions: operators, accesses, reductions and their gates, tuples, strings, tables, functions
// as values, requests. `elaborate` itself is in state/on_demand.h.
#pragma once

#include <set>

#include "sema/builtins.h"
#include "sema/state/state.h"

namespace ein::sema {

// ---- expr.cc, operators.cc ---------------------------------------------------------------------

Value elaborate_in_slot(Sema& s, Env& env, TreeId e);
bool elaborate_range(Sema& s, Env& env, TreeId e, core::Range& out);
Value condition(Sema& s, Env& env, TreeId e);  // bool, reported otherwise
Value apply_unary(Sema& s, Env& env, core::Op op, Value a, Span span);
Value unary_plus(Sema& s, Value a, Span span);  // the number itself
Value apply_binary(Sema& s, Env& env, core::Op op, Value a, Value b, Span span, Span op_span);
// `x in 0..10`, `x in [1, 2]`; `set` is a range, or an array along one coordinate.
Value elaborate_in(Sema& s, Env& env, Value x, TreeId set, Span span);
// Whether `x` lies in a range.
Value within(Sema& s, Env& env, const Value& x, Value lo, Value hi, bool inclusive, Span span);
Value apply_pointwise(Sema& s, Env& env, core::Op op, std::vector<Value> args, Span span);
Value select(Sema& s, Env& env, Value cond, Value yes, Value no, Span span);
Value elaborate_cast(Sema& s, Env& env, const ast::Cast& cast, Span span);
// `v as type`, part by part for a tuple; `tree` is `v` as written, if it is one expression.
Value convert(Sema& s, Env& env, Value v, ast::TypeId type, TreeId tree, Span span);
Value zero_like(Sema& s, const Env& env, const Value& v);

// ---- tables.cc, tuples.cc, match.cc ------------------------------------------------------------

Value elaborate_array(Sema& s, Env& env, TreeId e);
// An array of these cells, row-major.
Value array_of(Sema& s, Env& env, const std::vector<int64_t>& shape, std::vector<Value> cells,
               Span span);
Value elaborate_comprehension(Sema& s, Env& env, const ast::Comprehension& n, Span span);
Value elaborate_tuple(Sema& s, Env& env, const ast::Tuple& tuple, Span span);
// `part(x, k, n)`: part k of a tuple of n, or a value that stands for all of them. A fourth argument
// is taken in the place of `()`.
Value elaborate_part(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
// `given(x)`: whether an argument whose default is `()` was given. An `if` that asks this has only
// the arm that it takes.
Value elaborate_given(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
// The value of a `let` that is a tuple, a function or a string: what it computes becomes families.
// Invalid after an error.
enum class Held : uint8_t {
  Plain,
  Own,  // floats always get a family of their own, so that a derivative by the part is a derivative
        // by this binding (decisions.md, 23)
  View,  // a local that no derivative names: parts of other arrays stay where they are
};
std::optional<Value> hold_value(Sema& s, Env& env, Value v, ast::TypeId type, Scope& scope,
                                const std::string& name, Held how = Held::Plain);
Value elaborate_match(Sema& s, Env& env, const ast::Match& match, Span span);

// ---- records.cc --------------------------------------------------------------------------------

Value elaborate_record(Sema& s, Env& env, const ast::Record& record, Span span);
Value elaborate_field(Sema& s, Env& env, const ast::Field& field, Span span);
// Two operands of which at least one is a record.
Value record_binary(Sema& s, Env& env, core::Op op, const Value& a, const Value& b, Span span,
                    Span op_span);
Value select_records(Sema& s, Env& env, const Value& cond, const Value& yes, const Value& no,
                     Span span);
// Reports that `what`, as in "the arms need", records with the same fields; poison.
Value different_fields(Sema& s, const std::string& what, const Value& a, const Value& b, Span span);

// ---- text.cc -----------------------------------------------------------------------------------

Value elaborate_text(Sema& s, Env& env, const ast::StrLit& str, Span span);
Value plain_text(const Env& env, std::string text, Span span);
// Adds what shows `v` to a text: strings and tuples as their parts. False after an error.
bool add_text(Sema& s, const Value& v, const std::string& format, Value& out);
std::optional<std::string> constant_text(const Value& v);  // none when it shows values
Value elaborate_typeof(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
// `coordinate(x, 0)`: the name of a coordinate, as a string; `-1` is the last one.
Value elaborate_coordinate(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
std::string type_text(const Sema& s, const Value& v);  // `[f32; b, class]`

// ---- join.cc -----------------------------------------------------------------------------------

struct Gate;
// `join[i]("{x[i]} " where …)`: `body` was elaborated in `env`, which has the binders.
Value join_text(Sema& s, Env& outer, Env& env, const std::vector<Index*>& binders, const Gate& gate,
                Value body, Span span);
// One string or the other, as a condition says when the program runs.
Value choose_text(Sema& s, Env& env, const Value& cond, const Value& yes, const Value& no,
                  Span span);
// The string of an array of strings that `which` counts.
Value pick_text(Sema& s, Env& env, const Value& texts, const Value& which, Span span);
// Whether two strings are equal, if they are fixed or choices between fixed ones; nothing otherwise.
std::optional<Value> same_text(Sema& s, Env& env, const Value& a, const Value& b, Span span);
bool joins(const Value& text);

// ---- function_values.cc ------------------------------------------------------------------------

Value function_value(const Function& f, const Env& env, Span span);
Value lambda_value(Sema& s, Env& env, const ast::Lambda& lambda, Span span);
Value primitive_value(core::Op op, const Env& env, const ast::Name& name);
// The function of that name as a value; none when there is none.
std::optional<Value> named_function(Sema& s, const Env& env, const ast::Name& name);
size_t arity(const Closure& function);
size_t least_arity(const Closure& function);  // without the parameters that have defaults
// A function given where the type `fn(f32) -> f32` is written; poison after an error.
Value fit_function(Sema& s, const Value& v, ast::TypeId type, const std::string& what);

// ---- access.cc ---------------------------------------------------------------------------------

Value elaborate_access(Sema& s, Env& env, const ast::Index& index, Span span);
// `base` with the indices of an access; of a record, every part of it.
Value access_value(Sema& s, Env& env, const Value& base, const ast::Index& index, Span span);
// `extent`, `len` and `shape`.
Value elaborate_extent(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
void note_use(Sema& s, Env& env, const Value& base, const std::vector<TreeId>& at,
              const std::vector<CoreId>& indices, Span span);

// ---- axes.cc: indices at the wrong coordinate --------------------------------------------------

void note_axes(Sema& s, Env& env, TreeId base, const Value& value, const std::vector<TreeId>& at,
               Span span);
// When the statement has been read; `left` is its left side.
void warn_axes(Sema& s, const Site& site, const std::vector<Left>& left = {});

// ---- reduce.cc, random.cc ----------------------------------------------------------------------

Value elaborate_reduction(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
// `uniform` and `normal`.
Value elaborate_random(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);

// ---- matrices.cc -------------------------------------------------------------------------------

Value elaborate_matrix_factor(Sema& s, Env& env, const Builtin& b, const ast::Call& call,
                              Span span);

// ---- reshape.cc --------------------------------------------------------------------------------

Value elaborate_reshape(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);

// ---- mean.cc -----------------------------------------------------------------------------------

// `mean` from its sum over `cells`: divided by how many cells that visits. `written[k]`: the range of
// binder k is written, not inferred.
CoreId mean_of(Sema& s, const Env& env, CoreId sum, const core::Reduce& cells,
               const std::vector<bool>& written, Span span);
// A mean that counts its cells, which is what mean_of makes under a gated call; null for any other
// expression.
struct Mean {
  const core::Reduce* sum = nullptr;
  const core::Reduce* count = nullptr;  // of ones, over the same cells
};
Mean as_mean(const core::Module& m, const core::Expr& e);
CoreId quotient(core::Module& m, CoreId sum, CoreId count, DType type, Span span);

// ---- gates.cc ----------------------------------------------------------------------------------

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

// ---- requests.cc -------------------------------------------------------------------------------

Value elaborate_request(Sema& s, Env& env, const ast::Request& request, Span span);

}  // namespace ein::sema
