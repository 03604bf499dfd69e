// Tuples, and `let`s whose value is not one family: a tuple, a function, a string.
#include <fmt/format.h>

#include <algorithm>

#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
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

// Cells of an array as they are, at addresses that no data decides: `layers[l - 1].w`.
bool is_view(const Sema& s, const Value& v) {
  const auto* read = v.kind == Value::Kind::Data && v.typing == Typing::Fixed
                         ? core::get_if<core::Access>(s.m, v.body)
                         : nullptr;
  return read && std::none_of(read->at.begin(), read->at.end(), [&](CoreId e) {
           bool computed = false;
           core::for_each_node(s.m, e, [&](CoreId x) {
             computed |= core::get_if<core::Access>(s.m, x) || core::get_if<core::Reduce>(s.m, x) ||
                         core::get_if<core::Call>(s.m, x);
           });
           return computed;
         });
}

std::optional<Value> hold_data(Sema& s, Env& env, Value v, ast::TypeId type, Scope& scope,
                               const std::string& name, Held how) {
  if (type) {
    auto element = element_type(s, type);
    if (!element) return std::nullopt;
    if (!fits(v, *element)) return disagrees(s, v, type, name);
    v = adapt(s, env, std::move(v), *element);
  }
  v = settle(s, env, std::move(v));
  if (v.poison()) return std::nullopt;
  if (type && !annotate(s, env, scope, v.coords, type, v.span, quoted(name))) return std::nullopt;
  // A layer of a network is read where it is: a copy of its weights in every step takes longer
  // than the step.
  if (how == Held::View && !v.scalar() && is_view(s, v)) return v;
  bool fixed = constant(s, env, v) || whole_family(s.m, v);
  if (fixed && !(how != Held::Plain && is_float(v.type) && !under_binder(env))) return v;
  if (under_binder(env)) {
    ClauseOut out = ranges_of(s, env, v);
    return out.bad ? std::nullopt : std::optional(v);
  }
  v = bound_to_local(s, env, v, scope, env.site ? env.site->name + "_" + name : name);
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

Value elaborate_part(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  auto number = [&](size_t i) -> std::optional<size_t> {
    const auto* lit =
        i < call.args.size() ? std::get_if<ast::IntLit>(&s[call.args[i]].node) : nullptr;
    return lit ? std::optional(static_cast<size_t>(lit->value)) : std::nullopt;
  };
  auto k = number(1), n = number(2);
  if (!b.takes(call.args.size()) || !k || !n || *k >= *n) {
    s.diags.error(Code::E0205, "`part` takes a value and two numbers, as in `part(x, 0, 2)`")
        .primary(span, "")
        .help(
            "`part(x, k, n)` is part k of a tuple of n values, or x itself when it is not a tuple; "
            "`part(x, k, n, y)` is y when x is `()`");
    return {};
  }
  Value v = elaborate(s, env, call.args[0]);
  if (is_nothing(v) && call.args.size() == 4) return elaborate(s, env, call.args[3]);
  if (v.poison() || v.kind != Value::Kind::Tuple) return v;
  if (v.items.size() == *n) return v.items[*k];
  Span place = s.calls.places.empty() ? v.span : s.calls.places.front();
  if (!s.warned.insert({place.begin, place.end}).second) return {};  // for another part
  Symbol name = path_name(s.ast, call.args[0]);
  auto& d = s.diags.error(Code::E0502,
                          fmt::format("{} has {} parts where {} are needed",
                                      name ? quoted(name) : "the tuple", v.items.size(), *n));
  d.primary(place, "");
  d.label(span, "one part for each");
  d.help("give one value for all, or a tuple with one for each");
  return {};
}

Value elaborate_given(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags.error(Code::E0205, "`given` takes one argument, as in `given(bias)`")
        .primary(span, "")
        .help(
            "`given(x)` is false when x is `()`, the default of an argument that may be left out");
    return {};
  }
  Value v = elaborate(s, env, call.args[0]);
  if (v.poison()) return {};
  return data(env, DType::Bool, core::bool_lit(s.m, !is_nothing(v)), span);
}

std::optional<Value> hold_value(Sema& s, Env& env, Value v, ast::TypeId type, Scope& scope,
                                const std::string& name, Held how) {
  if (v.poison()) return std::nullopt;
  if (v.one()) return hold_data(s, env, std::move(v), type, scope, name, how);
  if (v.kind == Value::Kind::Function) {
    if (type) v = fit_function(s, v, type, quoted(name));
    return v.poison() ? std::nullopt : std::optional(v);
  }
  const ast::TupleType* tuple = tuple_type(s.ast, type);
  bool texts = v.kind == Value::Kind::Text && is_text_type(s.ast, type);
  if (v.kind == Value::Kind::Texts && is_texts_type(s.ast, type)) {
    bool ok = annotate(s, env, scope, v.coords, type, v.span, quoted(name));
    return ok ? std::optional(v) : std::nullopt;
  }
  bool fits = tuple && fit_fields(*tuple, v);
  if (type && !texts && !fits) return disagrees(s, v, type, name);
  for (size_t i = 0; i < v.items.size(); ++i) {
    std::string part = v.record() ? text(v.fields[i]) : std::to_string(i);
    auto item = hold_value(s, env, std::move(v.items[i]), fits ? tuple->items[i] : ast::TypeId{},
                           scope, fmt::format("{}_{}", name, part),
                           v.record() && how == Held::Plain ? Held::Own : how);
    if (!item) return std::nullopt;
    v.items[i] = std::move(*item);
  }
  return v;
}

}  // namespace ein::sema
