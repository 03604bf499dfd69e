// Functions that call themselves. They cannot be inlined, so they are functions of Core: their
// signatures are written and made of scalars, and their bodies read nothing but their parameters.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {

bool calls_itself(Sema& s, const Scope& scope, ast::StmtId function) {
  auto [it, fresh] = s.calls.recursive.try_emplace(function, false);
  if (!fresh) return it->second;
  std::set<ast::StmtId> seen;
  std::vector<ast::StmtId> todo{function};
  while (!todo.empty() && !seen.count(function)) {
    ast::StmtId at = todo.back();
    todo.pop_back();
    for (ast::StmtId next : named_functions(s, scope, at)) {
      if (seen.insert(next).second) todo.push_back(next);
    }
  }
  return s.calls.recursive[function] = seen.count(function) > 0;
}

namespace {

// A type such as `i32`: neither a tensor nor a type parameter, a tuple, a string or a function.
bool is_scalar_type(const Sema& s, ast::TypeId type) {
  auto scalar = dims_of(s.ast, type) ? std::nullopt : written_type(s.ast, type);
  return scalar && *scalar != DType::Str;
}

void report_foreign(Sema& s, const ast::Fn& fn, CoreId e) {
  const core::Expr& x = s.m[e];
  std::string what = "reads something other than its parameters", help;
  if (const auto* a = std::get_if<core::Access>(&x.node)) {
    auto owner = s.definitions.owner.find(a->family);
    const std::string name =
        owner == s.definitions.owner.end() ? "" : text(owner->second->name.symbol);
    if (!name.empty()) what = fmt::format("reads {}", quoted(name));
    help = a->at.empty()
               ? fmt::format("pass {} as a parameter", name.empty() ? "the value" : quoted(name))
               : "pass the cell as a parameter, or write a recurrence instead";
  } else if (std::holds_alternative<core::Reduce>(x.node)) {
    what = "contains a reduction";
    help = "write a recurrence instead";
  } else if (std::holds_alternative<core::ParamRef>(x.node)) {
    what = "reads an extent";
    help = "pass it as a parameter";
  }
  auto& d = s.diags.error(Code::E0216,
                          fmt::format("{} calls itself, but {}", quoted(fn.name.symbol), what));
  if (x.span.valid()) {
    d.primary(x.span, "a recursive function computes a scalar from its parameters only");
    d.label(fn.name.span, "recursive");
  } else {
    d.primary(fn.name.span, "a recursive function computes a scalar from its parameters only");
  }
  if (!help.empty()) d.help(help);
}

// The body as a scalar of the function's result type; invalid after an error.
CoreId elaborate_recursive_body(Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                                core::FunctionId id) {
  Env env;
  std::vector<Value> values;
  for (uint32_t k = 0; k < fn.params.size(); ++k) {
    DType type = s.m.functions[id].params[k].type;
    Span place = fn.params[k].name.span;
    values.push_back(data(env, type, core::argument(s.m, k, type, place), place));
  }
  Value v = elaborate_scalar_body(s, fn, stmt, home, std::move(values));
  if (v.poison() || reject_non_data(s, v)) return {};
  DType result = s.m.functions[id].result;
  if (!v.scalar() || !fits(v, result)) {
    s.diags
        .error(v.scalar() ? Code::E0501 : Code::E0405,
               fmt::format("the result of {} must be `{}`, found {}", quoted(fn.name.symbol),
                           name_of(result), show_value(s, v)))
        .primary(v.span, "this is " + show_value(s, v))
        .label(s.ast[fn.result].span, "declared here");
    return {};
  }
  v = as_data(s, env, adapt(s, env, std::move(v), result));
  if (v.poison()) return {};
  if (CoreId foreign = foreign_node(s, v.body)) {
    report_foreign(s, fn, foreign);
    return {};
  }
  return v.body;
}

}  // namespace

bool scalar_signature(Sema& s, const ast::Fn& fn, const Scope& scope, Span call) {
  std::string name = quoted(fn.name.symbol);
  if (!scope.module) {
    unsupported(s, call, "recursive functions inside a block",
                fmt::format("define {} at the top level", name));
    return false;
  }
  auto report = [&](const std::string& what, Span at, const std::string& label,
                    const std::string& help) {
    static const char* note =
        "a function that calls itself is compiled once for all calls, so its types must be written";
    s.diags.error(Code::E0216, fmt::format("{} calls itself, but {}", name, what))
        .primary(at, label)
        .label(call, "called here")
        .note(note)
        .help(help);
    return false;
  };
  ast::StmtId key;  // one report per function, not per call
  for (const auto& [symbol, f] : scope.functions) {
    if (f.fn == &fn) key = f.stmt;
  }
  if (key && s.calls.bad.count(key)) return false;
  bool ok = true;
  if (!fn.coords.empty()) {
    ok = report("it takes coordinates", fn.name.span, "recursive",
                "a recursive function takes scalars; write a recurrence instead");
  }
  for (const ast::Param& p : fn.params) {
    if (!ok || (p.type && is_scalar_type(s, p.type))) continue;
    const std::string param = text(p.name.symbol);
    ok = p.type ? report(fmt::format("its parameter {} is not a scalar", quoted(param)),
                         s.ast[p.type].span, "not a scalar type",
                         "a recursive function takes scalars; write a recurrence instead")
                : report(fmt::format("its parameter {} has no type", quoted(param)), p.name.span,
                         "no type", fmt::format("write the scalar type: `{}: i32`", param));
  }
  if (ok && (!fn.result || !is_scalar_type(s, fn.result))) {
    ok = fn.result
             ? report("its result is not a scalar", s.ast[fn.result].span, "not a scalar type",
                      "a recursive function returns one scalar; write a recurrence instead")
             : report("its result has no type", fn.name.span, "no result type",
                      "write the scalar type after the parameters: `-> i32`");
  }
  if (!ok && key) s.calls.bad.insert(key);
  return ok;
}

Value call_recursive(Sema& s, Env& env, const ast::Fn& fn, ast::StmtId stmt, const Frame* home,
                     const std::vector<Value>& args, Span span) {
  if (s.calls.bad.count(stmt)) return {};
  auto [it, fresh] = s.calls.functions.try_emplace(stmt);
  if (fresh) {
    core::Function f;
    f.name = function_name(s, text(fn.name.symbol));
    for (const ast::Param& p : fn.params) {
      f.params.push_back({p.name.symbol, *element_type(s, p.type)});
    }
    f.result = *element_type(s, fn.result);
    f.recursive = true;
    f.span = fn.name.span;
    core::FunctionId id = it->second = s.m.functions.add(std::move(f));
    CoreId body = elaborate_recursive_body(s, fn, stmt, home, id);
    if (!body) {
      s.calls.bad.insert(stmt);
      return {};
    }
    s.m.functions[id].body = body;
  }
  core::FunctionId id = s.calls.functions[stmt];
  std::vector<CoreId> with;
  for (const Value& v : args) with.push_back(moved(s.m, v, env.depth).body);
  return data(env, s.m.functions[id].result, core::call(s.m, id, std::move(with), span), span);
}

}  // namespace ein::sema
