// Calls: scalar primitives, reductions, and functions, which are inlined at every call.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sema/coords.h"

namespace ein::sema {
namespace {

std::optional<core::Op> primitive_named(Symbol name) {
  static const std::map<std::string, core::Op> table = [] {
    std::map<std::string, core::Op> t;
#define EIN_OP(op, spelling, arity, cls)                                                         \
  if (core::OpClass::cls == core::OpClass::Arith || core::OpClass::cls == core::OpClass::Real) { \
    if (std::isalpha(static_cast<unsigned char>(spelling[0]))) t[spelling] = core::Op::op;       \
  }
#include "core/ops.def"
#undef EIN_OP
    return t;
  }();
  auto it = table.find(text(name));
  if (it == table.end()) return std::nullopt;
  return it->second;
}

Value wrong_count(Sema& s, const std::string& name, size_t want, size_t got, Span span) {
  s.diags
      .error(Code::E0205,
             fmt::format("`{}` takes {} argument{}, not {}", name, want, want == 1 ? "" : "s", got))
      .primary(span, "");
  return {};
}

Value unknown_function(Sema& s, Env& env, const ast::Name& name) {
  if (value_exists(env, name.symbol) || find_index(env, name.symbol)) {
    s.diags.error(Code::E0206, quoted(name.symbol) + " is not a function")
        .primary(name.span, "")
        .help("index a value with brackets: `" + text(name.symbol) + "[i]`");
    return {};
  }
  static const std::set<std::string> later = {"load", "save", "stop", "typeof", "eprint"};
  if (later.count(text(name.symbol))) return unsupported(s, name.span, quoted(name.symbol));
  auto& d = s.diags.error(Code::E0204, "unknown function " + quoted(name.symbol));
  d.primary(name.span, "");
  std::vector<std::string> names = function_names(env);
  for (const char* r : {"sum", "prod", "max", "min", "mean", "all", "any", "argmax", "argmin",
                        "extent", "shape", "len", "print", "assert"}) {
    names.push_back(r);
  }
#define EIN_OP(op, spelling, arity, cls) names.push_back(spelling);
#include "core/ops.def"
#undef EIN_OP
  std::string near = did_you_mean(text(name.symbol), names);
  if (near.empty()) return {};
  d.help("did you mean " + quoted(near) + "?");
  d.fix({"use " + quoted(near), {{name.span, near}}, false});
  return {};
}

Signature signature_of(Sema& s, const ast::Fn& fn) {
  Signature sig{fn, {}, {}, {}, {}, {}};
  spelled_names(s.ast, fn.body, sig.taken);
  for (const ast::FnCoord& c : fn.coords) sig.taken.insert(c.name.symbol);
  for (const ast::Param& p : fn.params) {
    sig.taken.insert(p.name.symbol);
    const auto* dims = p.type ? dims_of(s, p.type) : nullptr;
    for (size_t i = 0; dims && i < dims->size(); ++i) {
      const ast::Dim& d = (*dims)[i];
      if (d.extent) spelled_names(s.ast, d.extent, sig.taken);
      if (d.kind == ast::Dim::Kind::Pack) sig.taken.insert(d.name.symbol);
    }
  }
  return sig;
}

struct Renaming {
  std::map<Symbol, Symbol> back;  // shape name of the callee → coordinate name of the caller
  std::set<Symbol> callers;       // names that came in with untyped arguments
};

// One argument at the element type of its parameter.
bool adapt_argument(Sema& s, Env& env, const ast::Fn& fn, const ast::Param& param, Value& arg) {
  if (!param.type) return true;
  auto type = element_type(s, param.type);
  if (!type) return false;
  if (!fits(arg, *type)) {
    s.diags
        .error(Code::E0501,
               fmt::format("argument {} of `{}` is `{}`, found {}", quoted(param.name.symbol),
                           text(fn.name.symbol), name_of(*type), show_value(s, arg)))
        .primary(arg.span, "this is " + show_value(s, arg))
        .label(param.name.span, "declared here");
    return false;
  }
  arg = as_data(s, env, adapt(s, env, std::move(arg), *type));
  return !arg.poison();
}

// One argument against a type of plain shape names.
bool bind_shape(Sema& s, Env& env, Scope& scope, const ast::Fn& fn, const ast::Param& param,
                Value& arg, Renaming& names) {
  const auto* dims = param.type ? dims_of(s, param.type) : nullptr;
  if (!dims) {
    for (const core::Coord& c : arg.coords) names.callers.insert(c.name);
    return true;
  }
  std::vector<core::Coord> coords = arg.coords;
  for (core::Coord& c : coords) c.name = {};
  Env inside = env;
  inside.frame = &scope.frame;
  std::string what =
      fmt::format("argument {} of `{}`", quoted(param.name.symbol), text(fn.name.symbol));
  if (!annotate(s, inside, scope, coords, param.type, arg.span, what)) return false;
  for (size_t i = 0; i < coords.size(); ++i) {
    if (coords[i].name) names.back.try_emplace(coords[i].name, arg.coords[i].name);
  }
  arg.coords = std::move(coords);
  return true;
}

// Tensors given to parameters annotated as scalars: the call is made once per cell (decision 6).
bool map_over(Sema& s, Env& env, const ast::Fn& fn, std::vector<Value>& args, Span span,
              std::vector<core::Coord>& over) {
  std::vector<Value*> mapped;
  for (size_t i = 0; i < args.size(); ++i) {
    ast::TypeId type = fn.params[i].type;
    if (type && !dims_of(s, type) && !args[i].scalar()) mapped.push_back(&args[i]);
  }
  if (mapped.empty()) return true;
  if (!same_coords(s, env, mapped, span, over)) return false;
  uint32_t outside = env.depth;
  env.depth += static_cast<uint32_t>(over.size());
  for (Value* v : mapped) {
    std::vector<CoreId> at;
    for (uint32_t n = outside; n < env.depth; ++n) at.push_back(core::slot(s.m, n));
    v->body = cell(s, *v, at, env.depth);
    v->coords.clear();
    v->depth = env.depth;
  }
  return true;
}

bool check_result(Sema& s, Env& env, const ast::Fn& fn, Value& v,
                  const std::vector<core::Coord>& coords) {
  if (!fn.result) return true;
  auto type = element_type(s, fn.result);
  if (!type) return false;
  if (!fits(v, *type)) {
    s.diags
        .error(Code::E0501, fmt::format("the result of `{}` is `{}`, found {}",
                                        text(fn.name.symbol), name_of(*type), show_value(s, v)))
        .primary(v.span, "this is " + show_value(s, v))
        .label(s.ast[fn.result].span, "declared here");
    return false;
  }
  v = as_data(s, env, adapt(s, env, std::move(v), *type));
  if (v.poison()) return false;
  // A scalar result type on a mapped call: the coordinates are the arguments'.
  return !dims_of(s, fn.result) || check_result_coords(s, fn, v, coords);
}

// A result with the caller's coordinate names: a callee's names never appear in a caller's type.
Value caller_view(Sema& s, Env& env, Value v, const Renaming& names) {
  v = as_data(s, env, std::move(v));
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

// Every call is put in place, so functions that call others twice grow exponentially.
static bool call_fits(Sema& s, Span span) {
  constexpr size_t kMaxNested = 256;
  const size_t kMaxCalls = 10'000 + 20 * s.ast.exprs.size();
  if (s.calls.size() < kMaxNested && ++s.calls_made <= kMaxCalls) return true;
  bool nested = s.calls.size() >= kMaxNested;
  s.diags
      .error(Code::E0111,
             nested ? "calls nest too deeply here" : "the program makes too many calls")
      .primary(span, fmt::format("more than {} calls {}", nested ? kMaxNested : kMaxCalls,
                                 nested ? "inside each other"
                                        : "in all: functions that call others again and again"))
      .help("give intermediate results names with `let` at the top level");
  s.calls_made = 0;  // once per cause
  return false;
}

Value call_function(Sema& s, Env& caller, const ast::Fn& fn, ast::StmtId stmt, Scope& home,
                    std::vector<Value> args, Span span, const Bracketing* brackets) {
  if (args.size() != fn.params.size()) {
    return wrong_count(s, text(fn.name.symbol), fn.params.size(), args.size(), span);
  }
  if (std::find(s.calls.begin(), s.calls.end(), stmt) != s.calls.end()) {
    return unsupported(s, span, "recursive functions",
                       quoted(fn.name.symbol) + " calls itself; write a recurrence instead");
  }
  if (!call_fits(s, span)) return {};
  Env env = caller;
  for (size_t i = 0; i < args.size(); ++i) {
    Value& arg = args[i];
    const ast::Param& param = fn.params[i];
    if (arg.kind != Value::Kind::Tuple || param.type) arg = as_data(s, env, std::move(arg));
    if (arg.poison() || !adapt_argument(s, env, fn, param, arg)) return {};
  }
  std::vector<core::Coord> over;
  if (!map_over(s, env, fn, args, span, over)) return {};
  Scope& scope = s.scopes.emplace_back();
  scope.frame.up = &home.frame;
  scope.frame.function = true;
  scope.frame.scope = &scope;
  scope.env = env;
  Signature sig = signature_of(s, fn);
  if (!bind_brackets(s, sig, brackets, span)) return {};
  if (!match_signature(s, env, scope, sig, args, span)) return {};
  std::set<Symbol> requested = requested_names(s.ast, fn.body);
  bool bound = under_binder(env);
  Renaming names;
  for (size_t i = 0; i < args.size(); ++i) {
    const ast::Param& param = fn.params[i];
    Value arg = std::move(args[i]);
    if (!uses_coordinates(s, fn, param.type) && !bind_shape(s, env, scope, fn, param, arg, names)) {
      return {};
    }
    if (requested.count(param.name.symbol)) {  // a parameter is a fresh binding (decision 23)
      if (bound) return unsupported(s, span, "requests in functions called inside a reduction");
      arg = settle(s, env, std::move(arg));
      std::string base =
          (env.site ? env.site->name + "_" : text(fn.name.symbol) + "_") + text(param.name.symbol);
      FamilyId family = family_of(s, env, arg, base);
      if (!family) return {};
      std::vector<uint32_t> carries(env.depth);
      std::iota(carries.begin(), carries.end(), 0u);
      arg = read_family(s, env, family, carries, arg.span);
    }
    scope.frame.values.push_back({param.name, std::move(arg)});
  }
  for (const auto& [inside, outside] : sig.back) names.back.try_emplace(inside, outside);
  if (s.bad_functions.count(stmt)) return {};  // one error per cause, not per call
  size_t errors = s.diags.errors();
  Env inside = env;
  inside.frame = &scope.frame;
  inside.gates.clear();
  inside.shadow_ok = inside.in_slot = false;
  std::vector<core::Coord> coords;
  bool ok = result_coords(s, env, scope, sig, coords);
  s.calls.push_back(stmt);
  Value v = ok ? elaborate_body(s, inside, fn, coords) : Value{};
  s.calls.pop_back();
  ok = !v.poison() && check_result(s, env, fn, v, coords);
  if (s.diags.errors() > errors) s.bad_functions.insert(stmt);
  if (!ok) return {};
  auto out = [&](Value item) {
    item = caller_view(s, env, std::move(item), names);
    if (over.empty() || item.poison()) return item;
    item = moved(s, item, env.depth);
    item.coords.insert(item.coords.begin(), over.begin(), over.end());
    item.depth = caller.depth;
    return item;
  };
  for (Value& item : v.items) item = out(std::move(item));
  return v.kind == Value::Kind::Tuple ? v : out(std::move(v));
}

Value elaborate_call(Sema& s, Env& env, const ast::Call& call, Span span) {
  const ast::Path* path = as_path(s, call.callee);
  if (!path) return unsupported(s, s[call.callee].span, "calls of anything but a name");
  const ast::Name& name = path->parts[0];
  const std::string& spelled = text(name.symbol);
  ast::StmtId stmt;
  Scope* home = nullptr;
  const ast::Fn* fn = find_function(s, env, name.symbol, &stmt, &home);
  auto arguments = [&](bool& ok) {
    bool shadow = env.shadow_ok, slot = env.in_slot;
    env.shadow_ok = false;
    std::vector<Value> args;
    for (TreeId e : call.args) {
      args.push_back(elaborate(s, env, e));
      ok &= !args.back().poison();
    }
    env.shadow_ok = shadow;
    env.in_slot = slot;
    return args;
  };
  if (!fn) {
    auto reduction = reduction_named(name.symbol);
    if (reduction && call.has_brackets) {
      return elaborate_reduction(s, env, *reduction, call, span);
    }
    if (call.has_brackets) {
      if (primitive_named(name.symbol)) {
        s.diags.error(Code::E0206, quoted(spelled) + " takes no coordinates").primary(span, "");
        return {};
      }
      return unknown_function(s, env, name);
    }
    if (spelled == "extent" || spelled == "shape" || spelled == "len") {
      return elaborate_extent(s, env, call, span);
    }
    if (spelled == "uniform") return elaborate_random(s, env, core::Op::Uniform, call, span);
    if (spelled == "normal") return elaborate_random(s, env, core::Op::Normal, call, span);
    if (is_effect(name.symbol)) {
      s.diags.error(Code::E0207, quoted(spelled) + " is an effect, not a value")
          .primary(span, "")
          .help("effects stand at the top level");
      return {};
    }
    auto op = primitive_named(name.symbol);
    if (!op && reduction) {
      s.diags.error(Code::E0205, fmt::format("`{}` needs coordinates in brackets", spelled))
          .primary(span, "")
          .help(fmt::format("write `{}[i](…)`", spelled));
      return {};
    }
    if (!op) return unknown_function(s, env, name);
    bool ok = true;
    std::vector<Value> args = arguments(ok);
    if (args.size() != core::info(*op).arity) {
      return wrong_count(s, spelled, core::info(*op).arity, args.size(), span);
    }
    if (!ok) return {};
    return apply_pointwise(s, env, *op, std::move(args), span);
  }
  if (call.has_brackets) return elaborate_coordinate_call(s, env, call, *fn, stmt, *home, span);
  bool ok = true;
  std::vector<Value> args = arguments(ok);
  if (!ok) return {};
  return call_function(s, env, *fn, stmt, *home, std::move(args), span);
}

}  // namespace ein::sema
