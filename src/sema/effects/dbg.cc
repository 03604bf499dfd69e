// `dbg(e)`, `dbg(e, every = 100)`: the value, marked (reports.h).
#include <fmt/format.h>

#include "sema/builtins.h"
#include "sema/effects/effects.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/definition_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// The source of the argument on one line.
std::string written(const Sema& s, Span span) {
  constexpr size_t kLongest = 60;
  std::string out;
  if (!s.program.sources) return "…";
  for (char c : s.program.sources->text(span)) {
    bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (out.size() <= kLongest) return out;
  size_t cut = kLongest;
  while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0) == 0x80) --cut;
  return out.substr(0, cut) + "…";
}

// The arguments: one value, and `every`. False after an error.
bool take_arguments(Sema& s, Env& env, const ast::Call& call, Span span, Dbg& out) {
  size_t values = 0;
  for (size_t i = 0; i < call.args.size(); ++i) {
    Symbol name = i < call.names.size() ? call.names[i].symbol : Symbol{};
    if (!name) {
      ++values;
      continue;
    }
    if (text(name) != "every") {
      s.diags.error(Code::E0218, fmt::format("`dbg` has no argument {}", quoted(name)))
          .primary(call.names[i].span, "")
          .help("`dbg(e, every = 100)` reports each 100th step");
      return false;
    }
    Value v = elaborate(s, env, call.args[i]);
    if (v.poison()) return false;
    auto every = v.scalar() && v.kind == Value::Kind::Data && is_int(v.type)
                     ? core::const_int(s.m, v.body)
                     : std::nullopt;
    if (!every || *every < 1) {
      s.diags.error(Code::E0219, "`every` must be a whole number of steps, at least 1")
          .primary(s[call.args[i]].span, "")
          .help("write a number: `dbg(e, every = 100)`");
      return false;
    }
    out.every = *every;
  }
  if (values == 1) return true;
  s.diags.error(Code::E0205, fmt::format("`dbg` takes one value, not {}", values))
      .primary(span, "")
      .help("write `dbg(e)`, or `dbg(e, every = 100)` in a recurrence");
  return false;
}

// One number or array, marked. An array is reported whole, by a family that nothing else reads;
// where none can be made, its cells are reported where they are read.
Value mark(Sema& s, Env& env, Value v, Dbg dbg) {
  v = moved(s.m, v, env.depth);
  CoreId number = core::int_lit(s.m, static_cast<int64_t>(s.definitions.dbgs.size()));
  s.definitions.dbgs.push_back(std::move(dbg));
  Value marked = v;
  marked.body = core::apply(s.m, core::Op::Mark, {v.body, number}, v.span);
  if (v.scalar()) return marked;
  Value held = hold(s, env, marked, "dbg", true);
  if (held.poison()) return held;
  FamilyId family = whole_family(s.m, held);
  if (!family) return marked;
  Watched& watched = s.definitions.watched[family];
  watched.site = env.site;
  size_t carried = s.m[family].coords.size() - v.coords.size();
  for (uint32_t n = 0; n < env.depth && watched.carries.size() < carried; ++n) {
    if ((s.m[v.body].free >> n) & 1) watched.carries.push_back(n);
  }
  return v;
}

}  // namespace

Value elaborate_dbg(Sema& s, Env& env, const Builtin&, const ast::Call& call, Span span) {
  Dbg dbg{span, {}, 1};
  if (!take_arguments(s, env, call, span, dbg)) return {};
  TreeId arg = call.args[0];
  for (size_t i = 0; i < call.names.size(); ++i) {
    if (!call.names[i].symbol) arg = call.args[i];
  }
  Value v = elaborate(s, env, arg);
  if (v.poison()) return {};
  std::string name = written(s, s[arg].span);
  return map_leaves(v, [&](const Value& leaf, const std::string& path) {
    if (leaf.kind != Value::Kind::Data && leaf.kind != Value::Kind::Table) {
      s.diags.error(Code::E0502, "`dbg` reports numbers and arrays")
          .primary(s[arg].span, "this is " + show_value(s, leaf));
      return Value{};
    }
    Value one = settle(s, env, leaf);
    if (one.poison()) return one;
    dbg.text = name + path;
    return mark(s, env, std::move(one), dbg);
  });
}

bool report_statement(Sema& s, Env& env, TreeId e) {
  const auto* call = std::get_if<ast::Call>(&s[e].node);
  if (!call || !spells(s.ast, *call, Builtin::Id::Dbg) || find_callee(s, env, call->callee)) {
    return false;
  }
  Value v = elaborate(s, env, e);
  if (v.poison()) return true;
  for (const Value& leaf : leaves_of(v)) {
    const auto* marked = core::get_if<core::Apply>(s.m, leaf.body);
    if (!marked || marked->op != core::Op::Mark) continue;  // an array, which has its family
    if (under_binder(env)) {
      unsupported(s, s[e].span, "statements with `dbg` inside a reduction",
                  "put `dbg` around a value that is used");
      return true;
    }
    FamilyId family = family_of(s, env, leaf, "dbg");
    if (family) s.definitions.watched[family] = {env.site, enclosing_slots(env)};
  }
  return true;
}

}  // namespace ein::sema
