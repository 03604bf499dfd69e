// What a call calls: a value, a function, a built-in function, a scalar primitive.
#include <fmt/format.h>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/calls/coords.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/state/meanings.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"

namespace ein::sema {

namespace {

// The arguments as they are written, or nullopt if one of them is wrong.
std::optional<std::vector<Value>> arguments_of(Sema& s, Env& env, const ast::Call& call) {
  bool shadow = env.shadow_ok, slot = env.in_slot, ok = true;
  env.shadow_ok = false;
  std::vector<Value> args;
  for (TreeId e : call.args) {
    args.push_back(elaborate(s, env, e));
    ok &= !args.back().poison();
  }
  env.shadow_ok = shadow;
  env.in_slot = slot;
  return ok ? std::optional(std::move(args)) : std::nullopt;
}

// `f(x)` where `f` is a local or an expression.
Value call_of_value(Sema& s, Env& env, const ast::Call& call, const Value& callee, Span span) {
  if (callee.poison()) return {};
  if (callee.kind != Value::Kind::Function) {
    s.diags.error(Code::E0206, show_value(s, callee) + " is not a function")
        .primary(s[call.callee].span, "called here");
    return {};
  }
  const Closure& f = *callee.function;
  if (call.has_brackets) {
    if (f.stmt) return elaborate_coordinate_call(s, env, call, f.fn, f.stmt, f.home, span);
    s.diags.error(Code::E0206, f.name + " takes no coordinates").primary(span, "");
    return {};
  }
  auto args = arguments_of(s, env, call);
  return args ? call_value(s, env, callee, call, std::move(*args), span) : Value{};
}

// `exp(x)`, `max(a, b, c)`: cell by cell.
Value call_of_op(Sema& s, Env& env, const ast::Call& call, core::Op op, Span span,
                 const std::string& spelled, bool reduction) {
  auto args = arguments_of(s, env, call);
  const size_t given = call.args.size();
  if (given == 1 && reduction && core::info(op).arity == 2) {
    s.diags.error(Code::E0205, fmt::format("`{}` takes 2 arguments, not 1", spelled))
        .primary(span, "")
        .help(fmt::format("to apply it to the cells of an array, give it an index: `{}[i](x[i])`",
                          spelled));
    return {};
  }
  // `min` and `max` take any number of arguments, from the left.
  const bool many = op == core::Op::Min || op == core::Op::Max;
  const size_t arity = core::info(op).arity;
  if (many ? given < 2 : given != arity) {
    std::string takes = many ? "at least 2 arguments" : count_of_arguments(arity, arity);
    s.diags.error(Code::E0205, fmt::format("`{}` takes {}, not {}", spelled, takes, given))
        .primary(span, "");
    return {};
  }
  if (!args) return {};
  if (!many) return apply_pointwise(s, env, op, std::move(*args), span);
  Value out = std::move((*args)[0]);
  for (size_t i = 1; i < given; ++i) {
    out = apply_pointwise(s, env, op, {std::move(out), std::move((*args)[i])}, span);
    if (!out.poison()) out.span = span;
  }
  return out;
}

// A name that no function of the program has.
Value call_of_primitive(Sema& s, Env& env, const ast::Call& call, ast::Name name, Span span) {
  const std::string& spelled = text(name.symbol);
  const Builtin* builtin = builtin_named(name.symbol);
  const bool reduction = builtin && builtin->kind == Builtin::Kind::Reduction;
  auto op = primitive_named(name.symbol);
  const bool names = builtin && takes_names(*builtin);
  if ((builtin || op) && !names && reject_names(s, call, quoted(spelled))) return {};
  if (reduction && call.has_brackets) return builtin->elaborate(s, env, *builtin, call, span);
  if (call.has_brackets) {
    if (!op) return unknown_function(s, env, name);
    s.diags.error(Code::E0206, quoted(spelled) + " takes no coordinates").primary(span, "");
    return {};
  }
  if (builtin && builtin->kind == Builtin::Kind::Value) {
    return builtin->elaborate(s, env, *builtin, call, span);
  }
  if (builtin && builtin->kind == Builtin::Kind::Effect) {
    s.diags.error(Code::E0207, quoted(spelled) + " is an effect, not a value")
        .primary(span, "")
        .help("effects must be statements at the top level, or in a function called from there");
    return {};
  }
  if (op) return call_of_op(s, env, call, *op, span, spelled, reduction);
  if (!reduction) return unknown_function(s, env, name);
  s.diags.error(Code::E0205, fmt::format("`{}` needs coordinates in brackets", spelled))
      .primary(span, "")
      .help(fmt::format("write `{}[i](x[i])`", spelled));
  return {};
}

}  // namespace

Value elaborate_call(Sema& s, Env& env, const ast::Call& call, Span span) {
  bool statement = env.effects;
  env.effects = false;
  const auto* path = std::get_if<ast::Path>(&s[call.callee].node);
  if (!path) return call_of_value(s, env, call, elaborate(s, env, call.callee), span);
  if (path->parts.size() == 1) {
    if (auto value = called_value(s, env, path->parts[0])) {
      return call_of_value(s, env, call, *value, span);
    }
  }
  const Function* fn = find_callee(s, env, call.callee);
  if (fn) note_definition(s, path->parts.back(), fn->fn->name.span);
  const bool far = path->parts.size() > 1;
  ast::Name name = path->parts.back();
  if (!fn) name.symbol = far ? primitive_at(s, env, *path) : primitive_called(env, name.symbol);
  if (!fn && !name.symbol) {
    function_at(s, env, *path, true);
    return {};
  }
  if (!far && ambiguous(s, env, name, true)) return {};
  if (!fn) return call_of_primitive(s, env, call, name, span);
  const Frame* home = &fn->home->frame;
  if (call.has_brackets) {
    env.effects = statement;
    return elaborate_coordinate_call(s, env, call, *fn->fn, fn->stmt, home, span);
  }
  auto args = arguments_of(s, env, call);
  if (!args) return {};
  auto all = arrange_arguments(s, env, *fn->fn, home, call.names, std::move(*args), span);
  if (!all) return {};
  env.effects = statement;
  return call_function(s, env, *fn->fn, fn->stmt, home, std::move(*all), span);
}

}  // namespace ein::sema
