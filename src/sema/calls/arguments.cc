// Which argument of a call is for which parameter: `f(x, k, padding = (1, 1))` gives arguments by
// position, then by name, and the parameters that are left have their defaults. Everything after
// this sees one value for each parameter.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
#include "sema/state/meanings.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

Span declaration(const ast::Fn& fn) { return fn.signature.valid() ? fn.signature : fn.name.span; }

std::string called(const ast::Fn& fn) {
  return fn.signature.valid() ? quoted(fn.name.symbol) : text(fn.name.symbol);  // a lambda
}

// `conv2d[h, w](x, kernel, stride = …)`, in one line whatever the declaration is like.
std::string signature_text(const ast::Fn& fn) {
  std::vector<std::string> coords, params;
  for (const ast::FnCoord& c : fn.coords) {
    coords.push_back((c.pack ? ".." : "") + text(c.name.symbol));
  }
  for (const ast::Param& p : fn.params) {
    params.push_back(text(p.name.symbol) + (p.value ? " = …" : ""));
  }
  return fmt::format("{}{}({})", text(fn.name.symbol),
                     coords.empty() ? "" : fmt::format("[{}]", fmt::join(coords, ", ")),
                     fmt::join(params, ", "));
}

Diagnostic& wrong_argument(Sema& s, const ast::Fn& fn, Span place, const std::string& message) {
  return s.diags.error(Code::E0218, message)
      .primary(place, "")
      .label(declaration(fn), "the parameters")
      .note(fmt::format("the signature is `{}`", signature_text(fn)));
}

void unknown_parameter(Sema& s, const ast::Fn& fn, const ast::Name& name) {
  auto& d = wrong_argument(s, fn, name.span,
                           fmt::format("{} has no parameter {}", called(fn), quoted(name.symbol)));
  std::vector<std::string> names;
  for (const ast::Param& p : fn.params) names.push_back(text(p.name.symbol));
  const std::string& word = text(name.symbol);
  if (!fn.coords.empty() && (word == "dim" || word == "axis")) {
    d.help(fmt::format("name the coordinate in brackets: `{}[j](x)`", text(fn.name.symbol)));
  } else if (!suggest(d, did_you_mean(word, names), name.span)) {
    d.help("to compare two values in an argument, write `==`");
  }
}

void report_missing(Sema& s, const ast::Fn& fn, const std::vector<std::optional<Value>>& given,
                    size_t got, bool named, Span span) {
  size_t fewest = 0;
  std::vector<std::string> missing;
  for (size_t k = 0; k < given.size(); ++k) {
    fewest += !fn.params[k].value;
    if (!given[k] && !fn.params[k].value) missing.push_back(quoted(fn.params[k].name.symbol));
  }
  std::string message = named ? fmt::format("the call of {} gives no argument for {}", called(fn),
                                            fmt::join(missing, ", "))
                              : fmt::format("{} takes {}, not {}", called(fn),
                                            count_of_arguments(fewest, given.size()), got);
  auto& d = s.diags.error(Code::E0205, message);
  d.primary(span, "").label(declaration(fn), "the function");
  if (named || fewest != given.size()) {
    d.note(fmt::format("the signature is `{}`", signature_text(fn)));
  }
}

// A default means the same wherever the call stands: it sees what surrounds the function alone.
Value default_value(Sema& s, const Env& caller, const ast::Param& param, const Frame* home) {
  if (s.calls.bad_defaults.count(param.value)) return {};
  Env env = caller;
  env.frame = home;
  env.gates.clear();
  env.shadow_ok = env.in_slot = env.effects = false;
  return elaborate(s, env, param.value);
}

bool is_constant(const Sema& s, const Definition& d) {
  return std::holds_alternative<ast::Const>(s.ast[d.clauses[0]].node);
}

// The first name in a default that is neither a constant nor a function.
void check_default(Sema& s, const Env& env, const ast::Fn& fn, const ast::Param& param) {
  std::set<Symbol> names = free_names(s.ast, param.value);
  for_each_tree(s.ast, param.value, [&](TreeId e) {
    Symbol name = path_name(s.ast, e);
    if (!name || !names.count(name)) return;
    const Definition* d = find_definition(env, name);
    if (d ? is_constant(s, *d) : find_function(env, name) || is_builtin(name)) return;
    if (import_failed(env, name)) return;
    names.erase(name);  // one message for each name
    s.calls.bad_defaults.insert(param.value);
    auto other = std::find_if(fn.params.begin(), fn.params.end(),
                              [&](const ast::Param& p) { return p.name.symbol == name; });
    bool is_parameter = other != fn.params.end();
    auto& report = s.diags.error(
        Code::E0219, fmt::format("the default of {} reads {}{}", quoted(param.name.symbol),
                                 is_parameter ? "the parameter " : "", quoted(name)));
    report.primary(s[e].span, d || is_parameter ? "not a constant" : "no constant has this name");
    if (is_parameter) report.label(other->name.span, "known only in a call");
    if (d) report.label(d->name.span, "defined here");
    report.help("a default is made of literals, functions and `const`s");
  });
}

}  // namespace

std::string count_of_arguments(size_t fewest, size_t most) {
  if (fewest != most) return fmt::format("{} to {} arguments", fewest, most);
  return fmt::format("{} argument{}", most, most == 1 ? "" : "s");
}

std::optional<std::vector<Value>> arrange_arguments(Sema& s, const Env& env, const ast::Fn& fn,
                                                    const Frame* home,
                                                    const std::vector<ast::Name>& names,
                                                    std::vector<Value> args, Span span) {
  std::vector<std::optional<Value>> given(fn.params.size());
  Span named;
  for (size_t i = 0; i < args.size(); ++i) {
    const ast::Name name = names.empty() ? ast::Name{} : names[i];
    size_t k = i;
    if (name.symbol) {
      auto it = std::find_if(fn.params.begin(), fn.params.end(),
                             [&](const ast::Param& p) { return p.name.symbol == name.symbol; });
      if (it == fn.params.end()) {
        unknown_parameter(s, fn, name);
        return std::nullopt;
      }
      k = static_cast<size_t>(it - fn.params.begin());
      named = name.span;
      note_definition(s, name, it->name.span);
    } else if (named.valid()) {
      wrong_argument(s, fn, args[i].span, "an argument without a name follows one with a name")
          .label(named, "this has a name")
          .help("arguments by position come first");
      return std::nullopt;
    }
    if (k >= given.size()) {
      report_missing(s, fn, given, args.size(), false, span);
      return std::nullopt;
    }
    if (given[k]) {
      wrong_argument(s, fn, name.span,
                     fmt::format("{} is given twice to {}", quoted(name.symbol), called(fn)))
          .label(given[k]->span, "first given here");
      return std::nullopt;
    }
    given[k] = std::move(args[i]);
  }
  std::vector<Value> out;
  for (size_t k = 0; k < given.size(); ++k) {
    if (!given[k] && !fn.params[k].value) {
      report_missing(s, fn, given, args.size(), named.valid(), span);
      return std::nullopt;
    }
    out.push_back(given[k] ? *given[k] : default_value(s, env, fn.params[k], home));
    if (out.back().poison()) return std::nullopt;
  }
  return out;
}

void check_defaults(Sema& s, Scope& scope) {
  for (const auto& [name, f] : scope.functions) {
    if (f.home != &scope) continue;  // imported
    const ast::Param* first = nullptr;
    for (const ast::Param& p : f.fn->params) {
      if (p.value) {
        if (!first) first = &p;
        if (!s.calls.bad_defaults.count(p.value)) check_default(s, scope.env, *f.fn, p);
      } else if (first && s.warned.insert({p.name.span.begin, p.name.span.end}).second) {
        s.diags
            .error(Code::E0219, fmt::format("{} has no default, but {} before it has one",
                                            quoted(p.name.symbol), quoted(first->name.symbol)))
            .primary(p.name.span, "needs a default")
            .label(first->name.span, "has a default")
            .help("parameters that must be given come first");
        break;
      }
    }
  }
}

}  // namespace ein::sema
