// `assert` in the body of a function that gives a value: a condition over extents and constants
// that every call has to meet. It is decided when compiling where that is possible; otherwise it is
// checked once, at entry, like every other condition between extents (decisions.md, 13).
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/expressions/expressions.h"
#include "sema/ranges/ranges.h"
#include "sema/state/call_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// Integers of every type as the i64 that extents are.
CoreId over_extents(Sema& s, const Env& env, CoreId e) {
  const core::Expr x = s.m[e];
  if (is_int(x.type)) {
    CoreId index = as_index(s, env, data(env, x.type, e, x.span), {});
    return index ? as_extent(s, index) : e;
  }
  const auto* apply = std::get_if<core::Apply>(&x.node);
  if (!apply || x.type != DType::Bool) return e;
  return core::map_children(s.m, e, [&](CoreId part) { return over_extents(s, env, part); });
}

// The message with extents in the place of the values it shows.
std::string message_of(Sema& s, const Env& env, const Value& text) {
  std::string out;
  for (const TextPart& p : text.parts) {
    if (!p.item) {
      out += p.text;
      continue;
    }
    const Value& v = text.items[*p.item];
    bool whole = v.kind == Value::Kind::Data && v.scalar() &&
                 (v.typing == Typing::Int || (v.typing == Typing::Fixed && is_int(v.type)));
    CoreId e = whole ? over_extents(s, env, v.body) : CoreId{};
    out += e && closed(s.m, e) ? show(s, resolve(s, e)) : "…";
  }
  return out;
}

bool of_library(const Sema& s, FileId file) {
  return std::any_of(s.program.modules.begin(), s.program.modules.end(), [&](const ModuleTree& m) {
    return m.file == file && m.name.rfind("std/", 0) == 0;
  });
}

// The call that the user wrote: the innermost one outside of the library.
Span place_of_call(const Sema& s) {
  for (auto it = s.calls.places.rbegin(); it != s.calls.places.rend(); ++it) {
    if (!of_library(s, it->file)) return *it;
  }
  return s.calls.places.empty() ? Span{} : s.calls.places.front();
}

// False when the condition cannot hold, which is reported.
bool decide(Sema& s, const Contract& c) {
  CoreId cond = resolve(s, c.cond);
  core::Facts facts = facts_at_entry(s.m);
  if (core::proves(s.m, cond, facts)) return true;
  if (!core::refutes(s.m, cond, facts)) {
    constrain(s, cond, c.message, c.call, c.written);
    return true;
  }
  Span place = c.call.valid() ? c.call : c.written;
  if (!s.warned.insert({place.begin, place.end}).second) return false;  // one error per call
  auto& d = s.diags.error(Code::E0317, c.message).primary(place, "");
  if (c.call.valid()) d.label(c.written, "does not hold for this call");
  ++s.calls.broken_contracts;
  return false;
}

}  // namespace

bool check_contract(Sema& s, Env& env, const ast::Call& call, Span span) {
  if (reject_names(s, call, "`assert`")) return false;
  if (!spelled_builtin(s.ast, call)->takes(call.args.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format("`assert` takes one or two arguments, not {}", call.args.size()))
        .primary(span, "");
    return false;
  }
  Value v = condition(s, env, call.args[0]);
  if (v.poison()) return false;
  CoreId cond = v.scalar() ? over_extents(s, env, v.body) : CoreId{};
  if (!cond || !closed(s.m, cond)) {
    s.diags.error(Code::E0207, "`assert` in a block checks extents and constants, not values")
        .primary(s[call.args[0]].span, "depends on values")
        .help(
            "effects belong at the top level, or in functions called from there as statements: "
            "move this `assert` there");
    return false;
  }
  Contract c;
  c.cond = cond;
  c.call = place_of_call(s);
  c.written = span;
  c.message = "a condition of the function does not hold";
  if (call.args.size() == 2) {
    Value message = elaborate(s, env, call.args[1]);
    if (message.poison()) return false;
    if (message.kind != Value::Kind::Text) {
      s.diags.error(Code::E0502, "the message of `assert` must be a string")
          .primary(s[call.args[1]].span, "this is " + show_value(s, message));
      return false;
    }
    c.message = message_of(s, env, message);
  }
  if (!has_unsolved(s, resolve(s, cond))) return decide(s, c);
  s.calls.contracts.push_back(std::move(c));
  return true;
}

void check_contracts(Sema& s) {
  for (const Contract& c : std::vector<Contract>(std::move(s.calls.contracts))) decide(s, c);
}

}  // namespace ein::sema
