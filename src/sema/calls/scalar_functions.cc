// Scalar functions stay functions. A call of `sigmoid` is one node of Core, so derivatives read as
// calls too and the work of a body is done once, not at every call. A function is scalar when its
// text says so: it computes a number from its parameters with arithmetic, `if`, `let` and calls of
// scalar functions. It becomes a function of Core when a call gives it real numbers. All other
// calls are inlined (functions.cc).
#include <algorithm>

#include "base/match.h"
#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {

Symbol function_name(const Sema& s, const std::string& base) {
  for (int n = 0;; ++n) {
    Symbol name = intern(n == 0 ? base : base + "_" + std::to_string(n));
    bool taken = std::any_of(s.m.functions.begin(), s.m.functions.end(),
                             [&](const core::Function& f) { return f.name == name; });
    if (!taken && !is_builtin(name)) return name;
  }
}

CoreId foreign_node(const Sema& s, CoreId body) {
  CoreId out, reduction;
  core::for_each_node(s.m, body, [&](CoreId e) {
    const core::Node& n = s.m[e].node;
    bool foreign =
        std::holds_alternative<core::Access>(n) || std::holds_alternative<core::Request>(n) ||
        std::holds_alternative<core::ParamRef>(n) || std::holds_alternative<core::Slot>(n);
    if (foreign && !out) out = e;
    if (std::holds_alternative<core::Reduce>(n) && !reduction) reduction = e;
  });
  return reduction ? reduction : out;
}

namespace {

bool is_scalar_function(Sema& s, const Function& f);

// Whether a body is made of scalars alone, as far as its text tells.
class ScalarText {
 public:
  ScalarText(Sema& s, const Frame* home) : s_(s) { env_.frame = home; }

  bool holds(TreeId e, std::set<Symbol> names) {
    return match(
        s_[e].node, [](const ast::IntLit&) { return true; },
        [](const ast::FloatLit&) { return true; }, [](const ast::BoolLit&) { return true; },
        [&](const ast::Path& n) { return n.parts.size() == 1 && name(n.parts[0].symbol, names); },
        [&](const ast::Unary& n) { return holds(n.arg, names); },
        [&](const ast::Binary& n) { return holds(n.lhs, names) && holds(n.rhs, names); },
        [&](const ast::Cast& n) { return !dims_of(s_.ast, n.type) && holds(n.arg, names); },
        [&](const ast::If& n) {
          return n.else_block && holds(n.cond, names) && holds(n.then_block, names) &&
                 holds(n.else_block, names);
        },
        [&](const ast::Block& n) { return block(n, names); },
        [&](const ast::Call& n) { return call(n, names); }, [](const auto&) { return false; });
  }

 private:
  // A parameter or local, or a constant of the module.
  bool name(Symbol symbol, const std::set<Symbol>& names) {
    if (names.count(symbol)) return true;
    const auto& values = env_.frame->scope->values;
    auto it = values.find(symbol);
    if (it == values.end()) return false;
    const std::vector<ast::StmtId>& clauses = it->second->clauses;
    return clauses.size() == 1 && std::get_if<ast::Const>(&s_.ast[clauses[0]].node);
  }

  bool block(const ast::Block& n, std::set<Symbol>& names) {
    for (ast::StmtId id : n.stmts) {
      const auto* let = std::get_if<ast::Let>(&s_.ast[id].node);
      if (!let || let->tuple || let->has_slots || !let->value) return false;
      if (let->type && dims_of(s_.ast, let->type)) return false;
      if (!s_.ast[id].attributes.empty() || !holds(let->value, names)) return false;
      names.insert(let->names[0].symbol);
    }
    return n.value && holds(n.value, names);
  }

  bool call(const ast::Call& n, const std::set<Symbol>& names) {
    const auto* path = std::get_if<ast::Path>(&s_[n.callee].node);
    if (n.has_brackets || !path) return false;
    if (path->parts.size() == 1 && names.count(path->parts[0].symbol)) return false;
    for (TreeId a : n.args) {
      if (!holds(a, names)) return false;
    }
    if (const Function* f = find_callee(s_, env_, n.callee)) return is_scalar_function(s_, *f);
    Symbol name = path->parts.size() > 1 ? primitive_at(s_, env_, *path)
                                         : primitive_called(env_, path->parts[0].symbol);
    const Builtin* builtin = name ? builtin_named(name) : nullptr;
    return name && (primitive_named(name) || (builtin && builtin->id == Builtin::Id::Dbg));
  }

  Sema& s_;
  Env env_;
};

bool is_scalar_type_text(const Sema& s, ast::TypeId type) {
  return !type || std::holds_alternative<ast::NamedType>(s.ast[type].node);
}

bool is_scalar_function(Sema& s, const Function& f) {
  if (!f.stmt || !f.home || !f.home->module || f.fn->rule || !f.fn->coords.empty()) return false;
  auto [it, fresh] =
      s.calls.scalar.try_emplace(f.stmt, false);  // one that comes back to itself is not
  if (!fresh) return it->second;
  if (!is_scalar_type_text(s, f.fn->result)) return false;
  std::set<Symbol> names;
  for (const ast::Param& p : f.fn->params) {
    if (!is_scalar_type_text(s, p.type)) return false;
    names.insert(p.name.symbol);
  }
  ScalarText reader(s, &f.home->frame);
  bool out = std::all_of(f.fn->params.begin(), f.fn->params.end(), [&](const ast::Param& p) {
    return !p.value || reader.holds(p.value, {});
  });
  out = out && reader.holds(f.fn->body, names);
  return s.calls.scalar[f.stmt] = out;
}

bool is_literal(const Sema& s, const Value& v) {
  return core::get_if<core::FloatLit>(s.m, v.body) || core::get_if<core::IntLit>(s.m, v.body);
}

bool is_real(const Value& v) { return v.typing == Typing::Fixed && is_float(v.type); }

// Known only when the program runs; a function of what is known now is computed now.
bool is_variable(const Sema& s, CoreId e) {
  if (s.m[e].free != 0) return true;
  bool found = false;
  core::for_each_node(s.m, e, [&](CoreId x) {
    const core::Node& n = s.m[x].node;
    found |= std::holds_alternative<core::Access>(n) || std::holds_alternative<core::Reduce>(n) ||
             std::holds_alternative<core::Request>(n) || std::holds_alternative<core::Call>(n) ||
             std::holds_alternative<core::Arg>(n);
  });
  return found;
}

// The arguments: real numbers, at least one of them not known yet, and literals, which adapt to
// what they meet inside and so belong to the instance. Arrays all have the same coordinates.
bool suits(const Sema& s, const std::vector<Value>& args, std::vector<core::Coord>& coords) {
  bool variable = false;
  for (const Value& v : args) {
    if (v.kind != Value::Kind::Data) return false;
    if (!is_real(v) && !(v.scalar() && is_literal(s, v))) return false;
    variable |= is_real(v) && (!v.scalar() || is_variable(s, v.body));
    if (v.scalar()) continue;
    bool same = coords.empty() || coords.size() == v.coords.size();
    for (size_t i = 0; same && i < coords.size(); ++i) {
      same = coords[i].name == v.coords[i].name && coords[i].extent == v.coords[i].extent;
    }
    if (!same) return false;
    coords = v.coords;
  }
  return variable;
}

// What distinguishes one instance of a function from another.
std::vector<uint64_t> instance_key(const std::vector<Value>& args) {
  std::vector<uint64_t> out;
  for (const Value& v : args) {
    uint64_t type = static_cast<uint64_t>(v.type) << 8 | static_cast<uint64_t>(v.typing);
    out.push_back(is_real(v) ? type : type | (uint64_t{v.body.v} + 1) << 32);
  }
  return out;
}

// The function that the body becomes; invalid when it is none, or after an error.
core::FunctionId make_instance(Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                               const std::vector<Value>& args) {
  core::Function f;
  f.span = fn.name.span;
  Env env;
  std::vector<Value> values;
  for (size_t k = 0; k < args.size(); ++k) {
    Value v = args[k];
    if (is_real(v)) {
      const ast::Name& name = fn.params[k].name;
      auto n = static_cast<uint32_t>(f.params.size());
      v = data(env, v.type, core::argument(s.m, n, v.type, name.span), name.span);
      f.params.push_back({name.symbol, v.type});
    }
    values.push_back(std::move(v));
  }
  Value v = elaborate_scalar_body(s, fn, stmt, home, std::move(values));
  if (v.poison() || v.kind != Value::Kind::Data || !v.scalar()) return {};
  if (fn.result) {
    auto type = element_type(s, fn.result);
    if (!type || !fits(v, *type)) return {};
    v = as_data(s, env, adapt(s, env, std::move(v), *type));
  }
  if (v.poison() || !is_real(v) || foreign_node(s, v.body)) return {};
  f.name = function_name(s, text(fn.name.symbol));
  f.result = v.type;
  f.body = v.body;
  return s.m.functions.add(std::move(f));
}

}  // namespace

Value elaborate_scalar_body(Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                            std::vector<Value> values) {
  Scope& scope = s.names.scopes.emplace_back();
  scope.frame.up = home;
  scope.frame.function = true;
  scope.frame.scope = &scope;
  Env env;
  env.frame = &scope.frame;
  env.scalar_body = &fn;
  scope.env = env;
  for (size_t k = 0; k < values.size(); ++k) {
    scope.frame.values.push_back({fn.params[k].name, std::move(values[k])});
  }
  s.calls.stack.push_back(stmt);
  Value v = elaborate(s, env, fn.body);
  s.calls.stack.pop_back();
  return v;
}

std::optional<Value> call_scalar(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt,
                                 const Frame* home, const std::vector<Value>& args, Span span) {
  if (!stmt || !home || !home->scope || s.calls.bad.count(stmt)) return std::nullopt;
  if (!is_scalar_function(s, {&fn, stmt, home->scope})) return std::nullopt;
  std::vector<core::Coord> coords;
  if (!suits(s, args, coords)) return std::nullopt;
  auto [it, fresh] = s.calls.instances.try_emplace({stmt, instance_key(args)});
  if (fresh) {
    size_t errors = s.diags.errors();
    s.calls.places.push_back(span);
    core::FunctionId made = make_instance(s, fn, stmt, home, args);
    s.calls.places.pop_back();
    if (s.diags.errors() > errors) {
      s.calls.bad.insert(stmt);
      return Value{};
    }
    it->second = made;
  }
  if (!it->second) return std::nullopt;
  std::vector<Value> reals;
  std::copy_if(args.begin(), args.end(), std::back_inserter(reals), is_real);
  std::vector<CoreId> cells = aligned(s.m, env, reals, coords.size());
  DType type = s.m.functions[it->second].result;
  Value out = data(env, type, core::call(s.m, it->second, std::move(cells), span), span);
  out.coords = std::move(coords);
  return out;
}

}  // namespace ein::sema
