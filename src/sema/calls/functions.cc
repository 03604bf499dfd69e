// Functions, which are inlined at every call.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sema/calls/calls.h"
#include "sema/calls/coords.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// The number of inlined calls is bounded by the size of the source, 20 for every node of its tree:
// a small program cannot expand without end, and a large one may make as many calls as it needs.
constexpr size_t kMaxCallDepth = 128;
constexpr size_t kCallsPerStep = 20'000, kNodesPerStep = 1'000;

bool expands_too_far(Sema& s, const ast::Fn& fn, Span span) {
  bool deep = s.calls.stack.size() >= kMaxCallDepth;
  size_t written = s.ast.exprs.size() - s.program.prelude_nodes;
  size_t limit = kCallsPerStep * (1 + written / kNodesPerStep);
  if (!deep && s.calls.inlined < limit) return false;
  if (s.calls.inlined > limit) return true;  // reported
  s.calls.inlined = limit + 1;
  s.diags
      .error(Code::E0215, deep ? fmt::format("calls are nested more than {} deep", kMaxCallDepth)
                               : fmt::format("the program expands to more than {} calls", limit))
      .primary(span, "this call")
      .label(fn.name.span, "of this function")
      .note("every call is compiled separately, including the calls inside the called function")
      .help("name intermediate results with `let`, or write a recurrence");
  return true;
}

// The names of extents and packs in a type, nested ones too.
void take_names(const ast::Ast& ast, ast::TypeId type, std::set<Symbol>& taken) {
  if (!type) return;
  if (const ast::TupleType* tuple = tuple_type(ast, type)) {
    for (ast::TypeId item : tuple->items) take_names(ast, item, taken);
  }
  const auto* dims = dims_of(ast, type);
  for (size_t i = 0; dims && i < dims->size(); ++i) {
    const ast::Dim& d = (*dims)[i];
    if (d.extent) spelled_names(ast, d.extent, taken);
    if (d.kind == ast::Dim::Kind::Pack) taken.insert(d.name.symbol);
  }
}

Signature signature_of(Sema& s, const ast::Fn& fn) {
  Signature sig{fn, {}, {}, {}, {}, {}};
  spelled_names(s.ast, fn.body, sig.taken);
  for (const ast::FnCoord& c : fn.coords) sig.taken.insert(c.name.symbol);
  for (const ast::Param& p : fn.params) {
    sig.taken.insert(p.name.symbol);
    take_names(s.ast, p.type, sig.taken);
  }
  return sig;
}

struct Renaming {
  std::map<Symbol, Symbol> back;  // shape name of the callee → coordinate name of the caller
  std::set<Symbol> callers;       // names that came in with untyped arguments
};

std::string record_text(const ast::TupleType& type) {
  std::vector<Symbol> fields;
  for (const ast::Name& n : type.names) fields.push_back(n.symbol);
  return "a record with " + show_fields(fields);
}

// One value, an argument or the result, at the element type that is written for it.
bool fit_value(Sema& s, Env& env, const std::string& what, ast::TypeId type, Span declared,
               Value& v) {
  if (!type) {
    v = without_tables(s, env, std::move(v));
    return !v.poison();
  }
  if (std::holds_alternative<ast::FnType>(s.ast[type].node)) {
    v = fit_function(s, v, type, what);
    return !v.poison();
  }
  const ast::TupleType* tuple = tuple_type(s.ast, type);
  if (tuple && fit_fields(*tuple, v)) {
    for (size_t i = 0; i < v.items.size(); ++i) {
      std::string item = field_name(v, i) + " of " + what;
      if (!fit_value(s, env, item, tuple->items[i], declared, v.items[i])) return false;
      if (!v.items[i].one() || v.items[i].scalar() || dims_of(s.ast, tuple->items[i])) continue;
      s.diags.error(Code::E0405, item + " must be a scalar, as its type says")
          .primary(v.items[i].span, "this is " + show_value(s, v.items[i]))
          .label(s.ast[tuple->items[i]].span, "declared here");
      return false;
    }
    return true;
  }
  bool text_type = is_text_type(s.ast, type);
  if (text_type && v.kind == Value::Kind::Text) return true;
  const bool texts_type = is_texts_type(s.ast, type);
  if (texts_type && v.kind == Value::Kind::Texts) return true;
  std::string wanted = tuple && !tuple->names.empty() ? record_text(*tuple)
                       : tuple      ? fmt::format("a tuple of {} values", tuple->items.size())
                       : text_type  ? "a string"
                       : texts_type ? "an array of strings"
                                    : "";
  if (wanted.empty()) {
    auto element = element_type(s, type);
    if (!element) return false;
    if (fits(v, *element)) {
      v = as_data(s, env, adapt(s, env, std::move(v), *element));
      return !v.poison();
    }
    wanted = fmt::format("`{}`", name_of(*element));
  }
  s.diags.error(Code::E0501, fmt::format("{} must be {}, found {}", what, wanted, show_value(s, v)))
      .primary(v.span, "this is " + show_value(s, v))
      .label(declared, "declared here");
  return false;
}

// `bias: [T; o] = ()`: the type says what is given, if anything is.
bool may_be_left_out(const Sema& s, const ast::Param& param) {
  const auto* tuple = param.value ? std::get_if<ast::Tuple>(&s[param.value].node) : nullptr;
  return tuple && tuple->items.empty();
}

// One argument against a type of plain shape names; a part whose type names coordinates is matched
// already.
bool bind_shape(Sema& s, Env& env, Scope& scope, const ast::Fn& fn, const std::string& what,
                ast::TypeId type, Value& arg, Renaming& names) {
  if (is_nothing(arg) || uses_coordinates(s, fn, type)) return true;
  const ast::TupleType* tuple = tuple_type(s.ast, type);
  for (size_t i = 0; i < arg.items.size(); ++i) {
    ast::TypeId item = tuple ? tuple->items[i] : ast::TypeId{};
    std::string part = field_name(arg, i) + " of " + what;
    if (!bind_shape(s, env, scope, fn, part, item, arg.items[i], names)) { return false; }
  }
  const auto* dims = type ? dims_of(s.ast, type) : nullptr;
  if (!dims || any_rank(s.ast, type)) {
    for (const core::Coord& c : arg.coords) names.callers.insert(c.name);
    return true;
  }
  auto pack = [](const ast::Dim& dim) { return dim.kind == ast::Dim::Kind::Pack; };
  if (arg.scalar() && !dims->empty() && std::none_of(dims->begin(), dims->end(), pack)) {
    s.diags
        .error(Code::E0405, fmt::format("{} has {} coordinate{}, but the call passes a single cell",
                                        what, dims->size(), dims->size() == 1 ? "" : "s"))
        .primary(arg.span, "this is a single cell")
        .label(s.ast[type].span, "declared here")
        .help("to pass a whole row, leave out its index: `f(x[r])` instead of `f(x[r, k])`");
    return false;
  }
  std::vector<core::Coord> coords = arg.coords;
  for (core::Coord& c : coords) c.name = {};
  Env inside = env;
  inside.frame = &scope.frame;
  if (!annotate(s, inside, scope, coords, type, arg.span, what)) return false;
  for (size_t i = 0; i < coords.size(); ++i) {
    if (coords[i].name) names.back.try_emplace(coords[i].name, arg.coords[i].name);
  }
  arg.coords = std::move(coords);
  return true;
}

// Parts of an argument that were made elsewhere are reported where the call passes them.
void place_parts(Value& arg) {
  for (Value& part : arg.items) {
    bool within = part.span.file == arg.span.file && part.span.begin >= arg.span.begin &&
                  part.span.end <= arg.span.end;
    if (!within) part.span = arg.span;
    place_parts(part);
  }
}

// The type parameters of one call, known while it lasts. Arguments that have a type decide; those
// that adapt (a literal, an index) only count when there is no other.
class ElementTypes {
 public:
  ElementTypes(Sema& s, const ast::Fn& fn, std::vector<Value>& args) : s_(s) {
    std::vector<Argument> parts;
    for (size_t i = 0; i < args.size(); ++i) {
      add_arguments(s.ast, fn.params[i].type, args[i], "", parts);
    }
    std::map<Symbol, DType> bound;
    for (bool fixed : {true, false}) {
      for (const Argument& part : parts) {
        ast::TypeId type = part.type;
        const Value& v = *part.value;
        if (!type || !is_type_parameter(s.ast, type) || v.poison() || !v.one()) continue;
        if ((v.typing == Typing::Fixed) != fixed) continue;
        if (const auto* t = std::get_if<ast::TensorType>(&s.ast[type].node)) type = t->elem;
        bound.try_emplace(std::get<ast::NamedType>(s.ast[type].node).name.symbol, default_type(v));
      }
    }
    s_.calls.element_types.push_back(std::move(bound));
  }
  ~ElementTypes() { s_.calls.element_types.pop_back(); }
  ElementTypes(const ElementTypes&) = delete;
  ElementTypes& operator=(const ElementTypes&) = delete;

 private:
  Sema& s_;
};

// Tensors given to parameters annotated as scalars: the call is made once per cell
// (decisions.md, 6).
bool map_over(Sema& s, Env& env, const ast::Fn& fn, std::vector<Value>& args, Span span,
              std::vector<core::Coord>& over) {
  std::vector<Value*> mapped;
  for (size_t i = 0; i < args.size(); ++i) {
    ast::TypeId type = fn.params[i].type;
    if (type && !dims_of(s.ast, type) && !args[i].scalar()) mapped.push_back(&args[i]);
  }
  if (mapped.empty()) return true;
  if (!same_coords(s, env, mapped, span, over)) return false;
  uint32_t outside = env.depth;
  env.depth += static_cast<uint32_t>(over.size());
  for (const core::Coord& c : over) {
    env.binders.push_back({c.name, {core::int_lit(s.m, 0), c.extent}, c.extent});
  }
  for (Value* v : mapped) {
    std::vector<CoreId> at;
    for (uint32_t n = outside; n < env.depth; ++n) at.push_back(core::slot(s.m, n));
    v->body = cell(s.m, *v, at, env.depth);
    v->coords.clear();
    v->depth = env.depth;
  }
  return true;
}

// The coordinates of a result, and of the fields of a tuple.
bool check_shape(Sema& s, Env& env, Scope& scope, const Signature& sig, ast::TypeId type, Value& v,
                 const std::vector<core::Coord>& coords) {
  if (const ast::TupleType* tuple = tuple_type(s.ast, type)) {
    for (size_t i = 0; i < v.items.size(); ++i) {
      std::vector<core::Coord> own;
      if (!result_coords(s, env, scope, sig, tuple->items[i], own)) return false;
      if (!check_shape(s, env, scope, sig, tuple->items[i], v.items[i], own)) return false;
    }
    return true;
  }
  // In a rule `0.0` stands for no tangent, at every address.
  const auto* lit =
      v.kind == Value::Kind::Data ? core::get_if<core::FloatLit>(s.m, v.body) : nullptr;
  if (sig.fn.rule && lit && lit->value == 0 && v.scalar()) return true;
  // A scalar result type on a mapped call: the coordinates are the arguments'.
  if (!type || !dims_of(s.ast, type) || any_rank(s.ast, type)) return true;
  return check_result_coords(s, sig.fn, type, v, coords);
}

bool check_result(Sema& s, Env& env, Scope& scope, const Signature& sig, Value& v,
                  const std::vector<core::Coord>& coords, bool generic) {
  const ast::Fn& fn = sig.fn;
  if (!fn.result) return true;
  std::string what = fmt::format("the result of `{}`", text(fn.name.symbol));
  Span declared = s.ast[fn.result].span;
  if (fn.rule) {  // the tangent of an integer is a float
    v = without_tables(s, env, std::move(v));
    if (v.poison()) return false;
    // A tuple that meets another kind of value is reported by with_rule.
    const ast::TupleType* tuple = tuple_type(s.ast, fn.result);
    bool parts = v.kind == Value::Kind::Tuple;
    if (parts != (tuple != nullptr) || (tuple && !fit_fields(*tuple, v))) return true;
    return check_shape(s, env, scope, sig, fn.result, v, coords);
  }
  if (!fit_value(s, env, what, fn.result, declared, v)) return false;
  if (v.one() && !v.scalar() && !dims_of(s.ast, fn.result) && !generic) {
    s.diags.error(Code::E0405, what + " must be a scalar, as its type says")
        .primary(v.span, "this is " + show_value(s, v))
        .label(declared, "declared here");
    return false;
  }
  return check_shape(s, env, scope, sig, fn.result, v, coords);
}

// A result with the caller's coordinate names: a callee's names never appear in a caller's type.
Value caller_view(Sema& s, Env& env, Value v, const Renaming& names) {
  v = without_tables(s, env, std::move(v));
  for (core::Coord& c : v.coords) {
    auto it = names.back.find(c.name);
    if (it != names.back.end()) {
      c.name = it->second;
    } else if (!names.callers.count(c.name)) {
      c.name = {};
    }
  }
  return v;
}

}  // namespace

std::optional<std::vector<Symbol>> result_names(Sema& s, Env& env, const ast::Fn& fn,
                                                const Frame* home, std::vector<Value> args,
                                                const Bracketing& brackets, Span span) {
  if (!fn.result || !dims_of(s.ast, fn.result) || args.size() != fn.params.size())
    return std::nullopt;
  Scope& scope = s.names.scopes.emplace_back();
  scope.frame.up = home;
  scope.frame.function = true;
  scope.frame.scope = &scope;
  scope.signature = true;
  scope.env = env;
  Signature sig = signature_of(s, fn);
  if (!bind_brackets(s, sig, &brackets, span)) return std::nullopt;
  if (!match_signature(s, env, scope, sig, args, span)) return std::nullopt;
  Renaming names;
  for (size_t i = 0; i < args.size(); ++i) {
    const ast::Param& param = fn.params[i];
    if (!bind_shape(s, env, scope, fn, quoted(param.name.symbol), param.type, args[i], names)) {
      return std::nullopt;
    }
  }
  for (const auto& [inside, outside] : sig.back) names.back.try_emplace(inside, outside);
  std::vector<core::Coord> coords;
  if (!result_coords(s, env, scope, sig, fn.result, coords)) return std::nullopt;
  std::vector<Symbol> out;
  for (const core::Coord& c : coords) {
    auto it = names.back.find(c.name);
    out.push_back(it == names.back.end() ? Symbol{} : it->second);
  }
  return out;
}

namespace {

// Whether a value is an array, or a tuple of arrays, that reads no slot from `depth` on.
bool fixed_above(const core::Module& m, const Value& v, uint32_t depth) {
  if (v.kind == Value::Kind::Tuple) {
    return std::all_of(v.items.begin(), v.items.end(),
                       [&](const Value& item) { return fixed_above(m, item, depth); });
  }
  if (v.kind != Value::Kind::Data) return false;
  uint64_t around = m[v.body].free & ((uint64_t{1} << v.depth) - 1);
  return (around >> depth) == 0;
}

// A function with derivatives in it makes families of its parameters, so no reduction may be around
// it. A call whose arguments do not depend on the reduced indices is made outside.
bool belongs_outside(const Sema& s, const ast::Fn& fn, const Frame* home,
                     const std::vector<Value>& args, uint32_t depth) {
  if (!home || !home->scope || !home->scope->module) return false;
  return !requested_names(s.ast, fn.body).empty() &&
         std::all_of(args.begin(), args.end(),
                     [&](const Value& v) { return fixed_above(s.m, v, depth); });
}

// A call that is inlined: which function, from where, and in which scope its free names are looked up.
struct Call {
  const ast::Fn& fn;
  ast::StmtId stmt;  // invalid for a lambda
  const Frame* home;
  Span span;
  const Bracketing* brackets;
};

// Nothing: the function may not be called here, which was reported. True: it calls itself.
std::optional<bool> calls_itself_here(Sema& s, const Call& call, const std::vector<Value>& args) {
  const bool recursive =
      call.stmt && call.home && call.home->scope && calls_itself(s, *call.home->scope, call.stmt);
  if (recursive) {
    if (!scalar_signature(s, call.fn, *call.home->scope, call.span)) return std::nullopt;
    return true;
  }
  // A function that takes a function may come again through it, as in `twice(|v| twice(f, v), x)`;
  // whether that ends is left to the bound on calls.
  bool higher = std::any_of(args.begin(), args.end(),
                            [](const Value& v) { return v.kind == Value::Kind::Function; });
  const std::vector<ast::StmtId>& stack = s.calls.stack;
  if (call.stmt && !higher && !call.fn.rule &&
      std::find(stack.begin(), stack.end(), call.stmt) != stack.end()) {
    unsupported(s, call.span, "recursive functions",
                quoted(call.fn.name.symbol) + " calls itself; write a recurrence instead");
    return std::nullopt;
  }
  return false;
}

// A value that keeps the rule of its function beside it. `spread` are the coordinates of the value
// that the function's body does not spell; the rule must not spell them either.
Value keep_rule(Sema& s, Env& caller, const Call& call, const Function& rule,
                std::vector<Value> args, const std::vector<Symbol>& spread, Value v) {
  if (v.poison()) return v;
  // Its body is closed by the coordinates of the function's result (decisions.md, 27).
  ast::Fn body = *rule.fn;
  body.result = call.fn.result;
  // The rule may call any function, also those being inlined: only rules count as recursion.
  std::vector<ast::StmtId> calls = s.calls.stack;
  std::erase_if(s.calls.stack,
                [&](ast::StmtId id) { return !id || !std::get<ast::Fn>(s.ast[id].node).rule; });
  Value tangent = call_function(s, caller, body, rule.stmt, call.home, std::move(args), call.span,
                                call.brackets);
  s.calls.stack = std::move(calls);
  std::vector<Symbol> unspelled = std::exchange(s.calls.constant_along, {});
  std::erase_if(unspelled, [&](Symbol name) {
    return std::find(spread.begin(), spread.end(), name) != spread.end();
  });
  if (tangent.poison() || !check_spread(s, rule, call.fn, tangent, unspelled, call.span)) return {};
  return with_rule(s, caller, rule, std::move(v), std::move(tangent), call.span);
}

bool fit_arguments(Sema& s, Env& env, const ast::Fn& fn, std::vector<Value>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const ast::Param& param = fn.params[i];
    if (args[i].poison()) return false;
    if (is_nothing(args[i]) && may_be_left_out(s, param)) continue;
    if (!fit_value(s, env, argument_of(fn, param), param.type, param.name.span, args[i]))
      return false;
  }
  return true;
}

// An argument by which the body differentiates: a parameter is a fresh binding (decisions.md, 23).
Value fresh_binding(Sema& s, Env& env, const Call& call, Symbol param, const Value& arg) {
  if (under_binder(env)) {
    return unsupported(s, call.span, "derivatives in functions called inside a reduction",
                       "define the result of the call before, with the reduced index as a "
                       "coordinate: `let y[i] = f(x[i]);`");
  }
  std::string base = (env.site ? env.site->name : text(call.fn.name.symbol)) + "_" + text(param);
  return map_leaves(arg, [&](const Value& leaf, const std::string& path) {
    if (!leaf.one()) return leaf;
    Value one = settle(s, env, leaf);
    return one.poison() ? one : bound_to_family(s, env, one, base + as_suffix(path));
  });
}

// Puts the arguments into `scope` under the names of the parameters.
bool bind_arguments(Sema& s, Env& env, Scope& scope, const Call& call, std::vector<Value> args,
                    Renaming& names) {
  std::set<Symbol> requested = requested_names(s.ast, call.fn.body);
  for (size_t i = 0; i < args.size(); ++i) {
    const ast::Param& param = call.fn.params[i];
    Value arg = std::move(args[i]);
    if (!bind_shape(s, env, scope, call.fn, argument_of(call.fn, param), param.type, arg, names))
      return false;
    if (requested.count(param.name.symbol)) {
      arg = fresh_binding(s, env, call, param.name.symbol, arg);
      if (arg.poison()) return false;
    }
    scope.frame.values.push_back({param.name, std::move(arg)});
  }
  return true;
}

// The value of the body, and the coordinates of it that the body does not spell.
Value value_of_body(Sema& s, const Env& caller, Env& env, Scope& scope, const Call& call,
                    const Signature& sig, const Renaming& names, std::vector<Symbol>& spread) {
  Env inside = env;
  inside.frame = &scope.frame;
  inside.gates.clear();
  inside.shadow_ok = inside.in_slot = false;
  std::vector<core::Coord> coords;
  bool ok = result_coords(s, env, scope, sig, call.fn.result, coords);
  s.calls.stack.push_back(call.stmt);
  s.calls.places.push_back(call.span);
  Value v;
  const auto* block = std::get_if<ast::Block>(&s[call.fn.body].node);
  if (caller.effects && block) {
    elaborate_procedure(s, inside, *block);
    ok = false;
  }
  if (ok) v = elaborate_body(s, inside, call.fn, coords);
  spread = std::exchange(s.calls.constant_along, {});
  s.calls.stack.pop_back();
  s.calls.places.pop_back();
  if (v.poison() || !check_result(s, env, scope, sig, v, coords, !names.callers.empty())) return {};
  return v;
}

// A result, and the parts of a tuple, as the caller sees them; `over` are the coordinates of arrays
// that the call was mapped over.
Value result_for_caller(Sema& s, Env& caller, Env& env, const Renaming& names,
                        const std::vector<core::Coord>& over, Span span, Value v) {
  for (Value& part : v.items) {
    part = result_for_caller(s, caller, env, names, over, span, std::move(part));
  }
  if (v.kind == Value::Kind::Function && !over.empty()) {
    s.diags.error(Code::E0502, "a call that maps over whole arrays cannot return a function")
        .primary(span, "")
        .label(v.span, "this is a function");
    return {};
  }
  if (v.kind == Value::Kind::Text && joins(v) && !over.empty()) {
    s.diags.error(Code::E0502, "a call that maps over whole arrays cannot join strings")
        .primary(span, "")
        .label(v.span, "this joins strings")
        .help("index the argument: `join[i](f(x[i]))`");
    return {};
  }
  if (!v.one()) return v;
  v = caller_view(s, env, std::move(v), names);
  if (over.empty() || v.poison()) return v;
  v = moved(s.m, v, env.depth);
  v.coords.insert(v.coords.begin(), over.begin(), over.end());
  v.depth = caller.depth;
  return v;
}

// The call with its body in place. The arguments fit the types of the parameters.
Value inline_body(Sema& s, Env& caller, Env& env, const Call& call, std::vector<Value> args,
                  const std::vector<core::Coord>& over, std::vector<Symbol>& spread) {
  Scope& scope = s.names.scopes.emplace_back();
  scope.frame.up = call.home;
  scope.frame.function = call.stmt.valid();  // a lambda sees the indices around it
  scope.frame.rule = call.fn.rule;
  scope.frame.scope = &scope;
  scope.signature = true;
  scope.env = env;
  Signature sig = signature_of(s, call.fn);
  if (!bind_brackets(s, sig, call.brackets, call.span)) return {};
  if (!match_signature(s, env, scope, sig, args, call.span)) return {};
  Renaming names;
  if (!bind_arguments(s, env, scope, call, std::move(args), names)) return {};
  for (const auto& [inside, outside] : sig.back) names.back.try_emplace(inside, outside);
  if (call.stmt && s.calls.bad.count(call.stmt)) return {};  // one error per cause, not per call
  auto faults = [&] { return s.diags.errors() - s.calls.broken_contracts; };
  size_t errors = faults();
  Value v = value_of_body(s, caller, env, scope, call, sig, names, spread);
  if (call.stmt && faults() > errors) s.calls.bad.insert(call.stmt);
  if (v.poison()) return {};
  v = result_for_caller(s, caller, env, names, over, call.span, std::move(v));
  if (call.fn.rule) s.calls.constant_along = spread;  // for the comparison with its function
  return v;
}

}  // namespace

Value call_function(Sema& s, Env& caller, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                    std::vector<Value> args, Span span, const Bracketing* brackets) {
  EIN_CHECK(args.size() == fn.params.size(), "arguments that are not arranged");
  for (Value& arg : args) place_parts(arg);
  if (under_binder(caller)) {
    Env outside = outside_reductions(s.m, caller);
    if (belongs_outside(s, fn, home, args, outside.depth)) {
      for (Value& arg : args) arg = moved(s.m, arg, outside.depth);
      Value v = call_function(s, outside, fn, stmt, home, std::move(args), span, brackets);
      return moved(s.m, v, caller.depth);
    }
  }
  if (stmt) s.calls.called.insert(stmt);
  if (expands_too_far(s, fn, span)) return {};
  s.calls.inlined++;
  const Call call{fn, stmt, home, span, brackets};
  std::optional<bool> recursive = calls_itself_here(s, call, args);
  if (!recursive) return {};
  const Function* rule = rule_of(s, fn, stmt, home);
  std::vector<Value> given = rule ? args : std::vector<Value>{};
  Env env = caller;
  env.effects = false;
  ElementTypes types(s, fn, args);
  if (!fit_arguments(s, env, fn, args)) return {};
  std::vector<core::Coord> over;
  if (!map_over(s, env, fn, args, span, over)) return {};
  Value v;
  std::vector<Symbol> spread;  // coordinates of the result that the body does not spell
  if (*recursive) {
    v = call_recursive(s, env, fn, stmt, home, args, span);
    v.coords = over;
    v.depth = caller.depth;
  } else if (auto called =
                 brackets ? std::nullopt : call_scalar(s, env, fn, stmt, home, args, span)) {
    v = std::move(*called);
    v.coords.insert(v.coords.begin(), over.begin(), over.end());
    v.depth = caller.depth;
  } else {
    v = inline_body(s, caller, env, call, std::move(args), over, spread);
  }
  if (v.poison() || !rule) return v;
  return keep_rule(s, caller, call, *rule, std::move(given), spread, std::move(v));
}

}  // namespace ein::sema
