// Calls of functions that are values: lambdas, functions by name, primitives.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// The definition may turn out to be a function when it is elaborated.
bool looks_like_function(const Sema& s, const Definition& d) {
  if (d.clauses.size() != 1) return false;
  const auto* let = std::get_if<ast::Let>(&s.ast[d.clauses[0]].node);
  if (!let || let->has_slots || !let->value) return false;
  return std::holds_alternative<ast::Lambda>(s[let->value].node) ||
         std::holds_alternative<ast::Path>(s[let->value].node);
}

// One argument or the result against a type inside a function type: the element type, and the
// number of coordinates. Shape names say nothing there.
bool fit_part(Sema& s, Env& env, Value& v, ast::TypeId type, const std::string& what) {
  if (!type || std::holds_alternative<ast::ErrorType>(s.ast[type].node)) return true;
  if (std::holds_alternative<ast::FnType>(s.ast[type].node)) {
    v = fit_function(s, v, type, what);
    return !v.poison();
  }
  const ast::TupleType* tuple = tuple_type(s.ast, type);
  bool shaped = tuple && fit_fields(*tuple, v);
  for (size_t i = 0; shaped && i < v.items.size(); ++i) {
    if (!fit_part(s, env, v.items[i], tuple->items[i], what)) return false;
  }
  if (shaped || (is_text_type(s.ast, type) && v.kind == Value::Kind::Text)) return true;
  auto element = tuple || is_text_type(s.ast, type) ? std::nullopt : element_type(s, type);
  const auto* dims = dims_of(s.ast, type);
  bool any = dims && std::any_of(dims->begin(), dims->end(), [](const ast::Dim& d) {
               return d.kind == ast::Dim::Kind::Pack || d.kind == ast::Dim::Kind::AnyRank;
             });
  bool rank = !dims || any || dims->size() == v.coords.size();  // a scalar type maps over tensors
  if (element && fits(v, *element) && rank) {
    v = as_data(s, env, adapt(s, env, std::move(v), *element));
    return !v.poison();
  }
  s.diags.error(Code::E0501, fmt::format("{} does not match its type", what))
      .primary(v.span, "this is " + show_value(s, v))
      .label(s.ast[type].span, "the function type says this");
  return false;
}

}  // namespace

std::optional<Value> called_value(Sema& s, Env& env, const ast::Name& name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    for (auto it = f->values.rbegin(); it != f->values.rend(); ++it) {
      if (it->first.symbol != name.symbol) continue;
      if (it->second.kind == Value::Kind::Function) return it->second;
      if (it->second.poison()) return Value{};
    }
    if (!f->scope) continue;
    if (f->scope->functions.count(name.symbol)) return std::nullopt;
    auto it = f->scope->values.find(name.symbol);
    if (it == f->scope->values.end()) continue;
    // A value with the name of a built-in function is called only if it is visibly a function.
    if (is_builtin(name.symbol) && !looks_like_function(s, *it->second)) continue;
    if (!looks_like_function(s, *it->second) && find_function(env, name.symbol)) continue;
    Value v = read_definition(s, env, *it->second, name.span);
    if (v.kind == Value::Kind::Function || v.poison()) return v;
  }
  return std::nullopt;
}

Value call_value(Sema& s, Env& env, const Value& f, const ast::Call& call, std::vector<Value> args,
                 Span span) {
  const Closure& c = *f.function;
  const auto* type = c.type ? std::get_if<ast::FnType>(&s.ast[c.type].node) : nullptr;
  // A function type has no names, whatever the parameters of the function that is passed are called.
  if ((type || c.primitive) && reject_names(s, call, c.name)) return {};
  size_t most = type ? type->params.size() : arity(c), fewest = type ? most : least_arity(c);
  if (args.size() > most || (call.names.empty() && args.size() < fewest)) {
    s.diags
        .error(Code::E0205, fmt::format("{} takes {}, not {}", c.name,
                                        count_of_arguments(fewest, most), args.size()))
        .primary(span, "called here")
        .label(c.fn.name.span.valid() ? c.fn.name.span : f.span, "the function");
    return {};
  }
  for (size_t i = 0; type && i < args.size(); ++i) {
    std::string what = fmt::format("argument {} of {}", i, c.name);
    if (!fit_part(s, env, args[i], type->params[i], what)) return {};
  }
  Value v;
  if (c.primitive) {
    v = apply_pointwise(s, env, *c.primitive, std::move(args), span);
  } else if (auto all =
                 arrange_arguments(s, env, c.fn, c.home, call.names, std::move(args), span)) {
    v = call_function(s, env, c.fn, c.stmt, c.home, std::move(*all), span);
  }
  if (v.poison() || !type) return v;
  return fit_part(s, env, v, type->result, "the result of " + c.name) ? v : Value{};
}

}  // namespace ein::sema
