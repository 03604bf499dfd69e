// Functions as values: lambdas, functions by name, scalar primitives. A call inlines them like any
// other function, so nothing after sema knows of them.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/state/meanings.h"
#include "sema/state/name_state.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

// The frames that a lambda sees, kept for its later calls.
const Frame* keep(Sema& s, const Frame* frame) {
  if (!frame) return nullptr;
  const Frame* up = keep(s, frame->up);
  Frame& copy = s.names.frames.emplace_back(*frame);
  copy.up = up;
  return &copy;
}

Value value_of(Closure closure, const Env& env, Span span) {
  Value v;
  v.kind = Value::Kind::Function;
  v.depth = env.depth;
  v.span = span;
  v.function = std::make_shared<const Closure>(std::move(closure));
  return v;
}

}  // namespace

Value function_value(const Function& f, const Env& env, Span span) {
  Closure c;
  c.fn = *f.fn;
  c.stmt = f.stmt;
  c.home = &f.home->frame;
  c.name = quoted(f.fn->name.symbol);
  return value_of(std::move(c), env, span);
}

Value lambda_value(Sema& s, Env& env, const ast::Lambda& lambda, Span span) {
  Closure c;
  for (const ast::LambdaParam& p : lambda.params) {
    for (const ast::Param& other : c.fn.params) {
      if (other.name.symbol != p.name.symbol || text(p.name.symbol) == "_") continue;
      s.diags.error(Code::E0202, quoted(p.name.symbol) + " is the name of two parameters")
          .primary(p.name.span, "again here")
          .label(other.name.span, "first here");
      return {};
    }
    c.fn.params.push_back({p.name, p.type});
  }
  c.fn.name = {intern("the lambda"), span};
  c.fn.body = lambda.body;
  c.home = keep(s, env.frame);
  c.name = "the lambda";
  return value_of(std::move(c), env, span);
}

Value primitive_value(core::Op op, const Env& env, const ast::Name& name) {
  Closure c;
  c.primitive = op;
  c.name = quoted(name.symbol);
  return value_of(std::move(c), env, name.span);
}

std::optional<Value> named_function(Sema& s, const Env& env, const ast::Name& name) {
  if (const Function* f = find_function(env, name.symbol)) {
    if (ambiguous(s, env, name, true)) return Value{};
    note_definition(s, name, f->fn->name.span);
    return function_value(*f, env, name.span);
  }
  if (auto op = primitive_named(primitive_called(env, name.symbol))) {
    return primitive_value(*op, env, name);
  }
  if (reduction_named(name.symbol)) {
    s.diags.error(Code::E0206, quoted(name.symbol) + " is not a value")
        .primary(name.span, "a reduction needs coordinates in brackets")
        .help(fmt::format("wrap it, as in `|x| {}[i](x[i])`", text(name.symbol)));
    return Value{};
  }
  return std::nullopt;
}

Value fit_function(Sema& s, const Value& v, ast::TypeId type, const std::string& what) {
  const auto* fn = std::get_if<ast::FnType>(&s.ast[type].node);
  if (v.kind != Value::Kind::Function || !fn) {
    s.diags
        .error(Code::E0501,
               fmt::format("{} must be {}, found {}", what,
                           fn ? "a function" : "a value, not a function", show_value(s, v)))
        .primary(v.span, "this is " + show_value(s, v))
        .label(s.ast[type].span, "declared here");
    return {};
  }
  size_t n = arity(*v.function);
  if (fn->params.size() > n || fn->params.size() < least_arity(*v.function)) {
    s.diags
        .error(Code::E0501, fmt::format("{} takes {} argument{}, but its type says {}", what, n,
                                        n == 1 ? "" : "s", fn->params.size()))
        .primary(v.span, "this function")
        .label(s.ast[type].span, "declared here");
    return {};
  }
  Closure c = *v.function;
  c.type = type;
  Value out = v;
  out.function = std::make_shared<const Closure>(std::move(c));
  return out;
}

size_t arity(const Closure& c) {
  return c.primitive ? core::info(*c.primitive).arity : c.fn.params.size();
}

size_t least_arity(const Closure& c) {
  if (c.primitive) return arity(c);
  return static_cast<size_t>(std::count_if(c.fn.params.begin(), c.fn.params.end(),
                                           [](const ast::Param& p) { return !p.value; }));
}

}  // namespace ein::sema
