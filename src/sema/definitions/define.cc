// Definitions on demand: clauses that read no member of their recurrence group come first and give
// the group's headers (decisions.md, 14), then the others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sema/definitions/definitions.h"
#include "sema/names/attributes.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {

bool reads_group(Sema& s, const Definition& d, ast::StmtId id) {
  if (!d.recurrent) return false;
  for (Symbol name : clause_names(s, *d.scope, s.ast[id])) {
    auto it = d.scope->values.find(name);
    if (it != d.scope->values.end() && it->second->group == d.group) return true;
  }
  return false;
}

namespace {

// Which left slots of the remaining clauses may fall back on an extent known from earlier ones.
std::vector<CoreId> fallbacks(Sema& s, Definition& d) {
  std::vector<CoreId> out(spelled_slots(s, d));
  for (size_t p = 0; p < out.size(); ++p) decide_extent(s, d, p, true, out[p]);
  return out;
}

void elaborate_one(Sema& s, Definition& d, size_t i) {
  ClauseOut out = elaborate_clause(s, d, d.clauses[i]);
  if (out.leaves.empty()) infer_ranges(s, out, [&] { return fallbacks(s, d); });
  d.outs[i] = std::move(out);
}

bool any_bad(const Definition& d) {
  return std::any_of(d.outs.begin(), d.outs.end(), [](const auto& out) { return out && out->bad; });
}

// The left side of a clause with a type, as a suggestion: `let (l, d)[…]: (f32, f32)`.
std::string typed_left(const Sema& s, const Definition& d) {
  std::string name = text(d.name.symbol), type = "f32";
  const ast::Let* l = d.clauses.empty() ? nullptr : let_of(s.ast, d.clauses[0]);
  if (l && l->tuple) {
    std::vector<std::string> names;
    for (const ast::Name& n : l->names) names.push_back(text(n.symbol));
    name = fmt::format("({})", fmt::join(names, ", "));
    type = fmt::format("({})", fmt::join(std::vector<std::string>(names.size(), type), ", "));
  }
  return fmt::format("let {}[…]: {}", name, type);
}

// Elaborates the clauses that read no member and, when others remain, fixes the header.
void begin(Sema& s, Definition& d) {
  size_t slots = spelled_slots(s, d);
  d.outs.resize(d.clauses.size());
  while (d.extents.size() < slots) d.extents.push_back(placeholder(s));
  bool remain = false;
  for (size_t i = 0; i < d.clauses.size(); ++i) {
    if (reads_group(s, d, d.clauses[i])) {
      remain = true;
    } else {
      elaborate_one(s, d, i);
    }
  }
  if (!any_bad(d)) make_leaves(s, d);
  if (!d.leaves.empty()) {
    for (Definition* leaf : d.leaves) begin(s, *leaf);
    d.state = Definition::State::Header;
    return;
  }
  if (!remain) return;
  if (any_bad(d)) {
    d.state = Definition::State::Bad;
    return;
  }
  if (slots == 0) return;  // `let x = x * 2`: found when it reads itself
  if (under_binder(d.scope->env) && !carries_binders(s, d)) {
    unsupported(s, d.name.span, "recurrences inside a reduction whose range is not a full extent",
                "define it outside, with the reduced index as a coordinate");
    d.state = Definition::State::Bad;
    return;
  }
  // Without a first clause the body must say its type without reading the group, as in
  // `if t == 0 { 1.0 } else { x[t-1] + 1.0 }`.
  auto type = decide_type(s, d);
  if (!type && !type_of(s.ast, d)) {
    auto& e = s.diags.error(Code::E0403,
                            fmt::format("every clause of {} reads other cells of it, so its type "
                                        "is not known",
                                        quoted(d.name.symbol)));
    e.primary(d.name.span, "");
    const ast::Let* l = let_of(s.ast, d.clauses[0]);
    if (l && l->value && std::holds_alternative<ast::Record>(s[l->value].node)) {
      e.help(
          fmt::format("add a first clause, as in `let {}[0] = {{ … }};`, or the type of the record",
                      text(d.name.symbol)));
    } else {
      e.help("add a first clause, or a type: `" + typed_left(s, d) + " = …`");
    }
    d.state = Definition::State::Bad;
    return;
  }
  std::vector<core::Coord> coords;
  if (!type || !merge_coords(s, d, coords)) {
    d.state = Definition::State::Bad;
    return;
  }
  // A coordinate is known now if a clause gives it a range, or if all remaining clauses write
  // theirs.
  for (size_t p = 0; p < coords.size(); ++p) {
    CoreId extent;
    if (!decide_extent(s, d, p, true, extent) || (p < slots && !written_extent(s, d, p, extent))) {
      d.state = Definition::State::Bad;
      return;
    }
    coords[p].extent = extent ? extent : p < slots ? d.extents[p] : CoreId{};
  }
  make_family(s, d, std::move(coords), *type, readable_slots(s, d));
  d.state = Definition::State::Header;
}

// What is left to do for a definition whose clauses are elaborated.
bool finish(Sema& s, Definition& d) {
  bool ok = d.state != Definition::State::Bad && !any_bad(d) && finish_family(s, d);
  d.state = ok ? Definition::State::Done : Definition::State::Bad;
  if (ok) check_checkpoint(s, d);
  return ok;
}

void complete(Sema& s, Definition& d) {
  if (!d.leaves.empty()) {
    bool bad = d.state == Definition::State::Bad, done = !bad;
    for (Definition* leaf : d.leaves) {
      complete(s, *leaf);
      bad |= leaf->state == Definition::State::Bad;
      done &= leaf->state == Definition::State::Done;
    }
    if (bad || done) d.state = bad ? Definition::State::Bad : Definition::State::Done;
    return;
  }
  // An input belongs to a group when its extents depend on a value computed from it. That is
  // reported where the value is read.
  if (d.state == Definition::State::Bad || d.state == Definition::State::Done || d.finishing ||
      d.input)
    return;
  d.finishing = true;
  if (d.state == Definition::State::Todo) d.state = Definition::State::Busy;
  s.definitions.busy.push_back(&d);
  for (size_t i = 0; i < d.clauses.size(); ++i) {
    if (!d.outs[i]) elaborate_one(s, d, i);
  }
  finish(s, d);
  s.definitions.busy.pop_back();
}

bool any_known(const Definition& d) {
  return std::any_of(d.outs.begin(), d.outs.end(), [](const auto& out) { return out.has_value(); });
}

void complete_after_reads(Sema& s, Definition& d, std::set<Definition*>& visited) {
  if (d.state != Definition::State::Header || any_known(d)) return;
  if (!visited.insert(&d).second) return;
  for (ast::StmtId id : d.clauses) {
    for (Symbol name : clause_names(s, *d.scope, s.ast[id])) {
      auto it = d.scope->values.find(name);
      bool member = it != d.scope->values.end() && it->second->group == d.group;
      if (member) complete_after_reads(s, *it->second, visited);
    }
  }
  complete(s, d);
}

}  // namespace

void define(Sema& s, Definition& d) {
  if (d.state != Definition::State::Todo || d.finishing) return;
  if (!d.recurrent) {
    d.finishing = true;
    d.state = Definition::State::Busy;
    s.definitions.busy.push_back(&d);
    reject_until(s, d);
    begin(s, d);
    bool ok = true;
    for (Definition* leaf : d.leaves) ok &= finish(s, *leaf);
    if (d.leaves.empty()) {
      finish(s, d);
    } else {
      d.state = ok ? Definition::State::Done : Definition::State::Bad;
    }
    s.definitions.busy.pop_back();
    return;
  }
  std::vector<Definition*> members;
  for (Definition* other : s.names.groups[static_cast<size_t>(d.group)]) {
    if (other->state == Definition::State::Todo && other->outs.empty()) members.push_back(other);
  }
  begin_gated_recurrence(d.scope->env);
  find_ending(s, members);
  for (Definition* member : members) begin(s, *member);
  if (d.ending) make_flag(s, *d.ending);
  // Members without a first clause take ranges from what they read, so that is completed first.
  std::set<Definition*> visited;
  for (Definition* member : members) complete_after_reads(s, *member, visited);
  for (Definition* member : members) complete(s, *member);
  end_gated_recurrence(s, d.scope->env);
}

Value read_definition(Sema& s, Env& env, Definition& d, Span span) {
  if (d.state == Definition::State::Todo) {
    bool started = !d.outs.empty();  // a member of a group whose headers are being fixed
    if (started)
      complete(s, d);
    else
      define(s, d);
  }
  if (d.state == Definition::State::Busy) {
    auto& e = s.diags.error(Code::E0203, quoted(d.name.symbol) + " depends on itself");
    e.primary(span, "read here");
    e.label(d.name.span, "while it is being defined");
    auto from = std::find(s.definitions.busy.begin(), s.definitions.busy.end(), &d);
    std::string chain;
    for (auto it = from; it != s.definitions.busy.end(); ++it)
      chain += quoted((*it)->name.symbol) + " → ";
    if (s.definitions.busy.end() - from > 1) e.note("the cycle: " + chain + quoted(d.name.symbol));
    e.help(
        "the order of definitions does not matter, so the name means this definition on both "
        "sides");
    d.state = Definition::State::Bad;
    return {};
  }
  if (d.state == Definition::State::Bad) return {};
  if (!d.leaves.empty()) return read_leaves(s, env, d, span);
  if (d.input && !std::all_of(s.m[d.family].coords.begin(), s.m[d.family].coords.end(),
                              [](const core::Coord& c) { return c.extent.valid(); })) {
    s.diags
        .error(Code::E0203, fmt::format("the extents of {} depend on {}", quoted(d.name.symbol),
                                        quoted(d.name.symbol)))
        .primary(span, "read here")
        .label(d.name.span, "while its extents are being computed")
        .help("in the type of an input, a name that no `let` defines names the extent itself");
    d.state = Definition::State::Bad;
    return {};
  }
  if (d.inlined) {
    Value v = moved(s.m, *d.inlined, env.depth);
    v.span = span;
    return v;
  }
  return read_family(s.m, env, d.family, d.carries, span);
}

}  // namespace ein::sema
