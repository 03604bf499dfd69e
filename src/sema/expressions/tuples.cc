// Tuples, and `let`s whose value is not one family: a tuple, a function, a string.
#include <fmt/format.h>

#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// Made of literals and extents alone: cheaper to repeat than to store, and usable in ranges.
bool constant(Sema& s, const Env& env, const Value& v) {
  if (!v.scalar() || s.m[v.body].free != 0) return false;
  bool data = false;
  core::for_each_node(s.m, v.body, [&](CoreId e) {
    data |= core::get_if<core::Access>(s.m, e) || core::get_if<core::Reduce>(s.m, e) ||
            core::get_if<core::Request>(s.m, e) ||
            (core::get_if<core::Call>(s.m, e) && !env.scalar_body);
  });
  return !data;
}

std::optional<Value> disagrees(Sema& s, const Value& v, ast::TypeId type, const std::string& name) {
  s.diags.error(Code::E0405, fmt::format("{} does not match its type", quoted(name)))
      .primary(v.span, "this is " + show_value(s, v))
      .label(s.ast[type].span, "annotated here");
  return std::nullopt;
}

std::optional<Value> hold_data(Sema& s, Env& env, Value v, ast::TypeId type, Scope& scope,
                               const std::string& name, bool own) {
  if (type) {
    auto element = element_type(s, type);
    if (!element) return std::nullopt;
    if (!fits(v, *element)) return disagrees(s, v, type, name);
    v = adapt(s, env, std::move(v), *element);
  }
  v = settle(s, env, std::move(v));
  if (v.poison()) return std::nullopt;
  if (type && !annotate(s, env, scope, v.coords, type, v.span, quoted(name))) return std::nullopt;
  bool fixed = constant(s, env, v) || whole_family(s.m, v);
  if (fixed && !(own && is_float(v.type) && !under_binder(env))) return v;
  if (under_binder(env)) {
    ClauseOut out = ranges_of(s, env, v);
    return out.bad ? std::nullopt : std::optional(v);
  }
  v = bound_to_family(s, env, v, env.site ? env.site->name + "_" + name : name);
  return v.poison() ? std::nullopt : std::optional(v);
}

}  // namespace

Value elaborate_tuple(Sema& s, Env& env, const ast::Tuple& tuple, Span span) {
  Value out;
  out.kind = Value::Kind::Tuple;
  out.depth = env.depth;
  out.span = span;
  bool ok = true;
  for (TreeId e : tuple.items) {
    out.items.push_back(elaborate(s, env, e));
    ok &= !out.items.back().poison();
  }
  return ok ? out : Value{};
}

std::optional<Value> hold_value(Sema& s, Env& env, Value v, ast::TypeId type, Scope& scope,
                                const std::string& name, bool own) {
  if (v.poison()) return std::nullopt;
  if (v.one()) return hold_data(s, env, std::move(v), type, scope, name, own);
  if (v.kind == Value::Kind::Function) {
    if (type) v = fit_function(s, v, type, quoted(name));
    return v.poison() ? std::nullopt : std::optional(v);
  }
  const ast::TupleType* tuple = tuple_type(s.ast, type);
  bool texts = v.kind == Value::Kind::Text && is_text_type(s.ast, type);
  bool fits = tuple && fit_fields(*tuple, v);
  if (type && !texts && !fits) return disagrees(s, v, type, name);
  for (size_t i = 0; i < v.items.size(); ++i) {
    std::string part = v.record() ? text(v.fields[i]) : std::to_string(i);
    auto item = hold_value(s, env, std::move(v.items[i]), fits ? tuple->items[i] : ast::TypeId{},
                           scope, fmt::format("{}_{}", name, part), v.record());
    if (!item) return std::nullopt;
    v.items[i] = std::move(*item);
  }
  return v;
}

}  // namespace ein::sema
