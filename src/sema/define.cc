// Definitions on demand: clauses that read no member of their recurrence group come first and give
// the group's headers (decision 14), then the others.
#include <fmt/format.h>

#include <algorithm>

#include "sema/sema.h"

namespace ein::sema {
namespace {

const ast::Let* let_of(const Sema& s, ast::StmtId id) {
  return std::get_if<ast::Let>(&s.ast[id].node);
}

ast::TypeId type_of(const Sema& s, const Definition& d) {
  for (ast::StmtId id : d.clauses) {
    const ast::Let* l = let_of(s, id);
    if (l && l->type) return l->type;
    if (!l && std::get<ast::Const>(s.ast[id].node).type) return std::get<ast::Const>(s.ast[id].node).type;
  }
  return {};
}

size_t spelled_slots(const Sema& s, const Definition& d) {
  size_t most = 0;
  for (ast::StmtId id : d.clauses) {
    if (const ast::Let* l = let_of(s, id)) most = std::max(most, l->slots.size());
  }
  return most;
}

bool reads_group(Sema& s, const Definition& d, ast::StmtId id) {
  if (!d.recurrent) return false;
  for (Symbol name : clause_names(s, *d.scope, s.ast[id])) {
    auto it = d.scope->values.find(name);
    if (it != d.scope->values.end() && it->second->group == d.group) return true;
  }
  return false;
}

// The type of a definition: written, or that of its clauses, or guessed through the recurrence.
std::optional<DType> decide_type(Sema& s, Definition& d) {
  if (ast::TypeId type = type_of(s, d)) return element_type(s, type);
  const ClauseOut* fixed = nullptr;
  bool any_float = false, any = false;
  for (const auto& out : d.outs) {
    if (!out || out->bad) continue;
    any = true;
    any_float |= out->body.typing == Typing::Float;
    if (out->body.typing == Typing::Fixed && !fixed) fixed = &*out;
  }
  if (fixed) return fixed->body.type;
  std::optional<Guess> guess;
  for (size_t i = 0; i < d.clauses.size() && !guess; ++i) {
    const ast::Let* l = let_of(s, d.clauses[i]);
    if (!d.outs[i] && l) guess = guess_type(s, d.scope->env, l->value, &d);
    if (guess && guess->typing != Typing::Fixed) {
      any_float |= guess->typing == Typing::Float;
      any = true;
      guess.reset();
    }
  }
  if (guess) return guess->type;
  if (!any) return std::nullopt;
  return any_float ? DType::F32 : DType::I32;
}

// Names and extents of all coordinates, from the clauses elaborated so far; false after an error.
bool merge_coords(Sema& s, Definition& d, std::vector<core::Coord>& coords) {
  size_t rank = spelled_slots(s, d);
  for (const auto& out : d.outs) {
    if (out && !out->bad) rank = std::max(rank, out->coords.size());
  }
  coords.resize(rank);
  for (size_t p = 0; p < rank; ++p) {  // a spelled name wins over one that a value brought along
    for (ast::StmtId id : d.clauses) {
      const ast::Let* l = let_of(s, id);
      if (!l || p >= l->slots.size() || coords[p].name) continue;
      if (l->slots[p].kind == ast::Slot::Kind::Index) coords[p].name = l->slots[p].name.symbol;
    }
    const ClauseOut* named = nullptr;
    for (const auto& out : d.outs) {
      if (!out || out->bad || p < out->left.size() || p >= out->coords.size()) continue;
      Symbol name = out->coords[p].name;
      if (!name) continue;
      if (named && named->coords[p].name != name) {
        s.diags
            .error(Code::E0403, fmt::format("clauses of {} disagree about coordinate {}",
                                            quoted(d.name.symbol), p))
            .primary(out->site->span, "here it is " + quoted(name))
            .label(named->site->span, "here it is " + quoted(named->coords[p].name));
        return false;
      }
      named = &*out;
      if (!coords[p].name) coords[p].name = name;
    }
  }
  return true;
}

// The extent of coordinate p: the highest end of any clause. Two ends that cannot be compared are
// settled by an entry constraint when one is constant (decision 13: a literal clause
// beside a range up to T asks for T >= 1).
bool decide_extent(Sema& s, Definition& d, size_t p, bool ranges_only, CoreId& extent) {
  struct End {
    CoreId hi;
    bool literal;
    Span span;
  };
  std::optional<End> best;
  for (const auto& out : d.outs) {
    if (!out || out->bad || p >= out->box.size()) continue;
    bool literal = p < out->left.size() && !out->left[p].index;
    if (literal && ranges_only) continue;
    End end{resolve(s, out->box[p].hi), literal, out->site->span};
    if (has_unsolved(s, end.hi)) continue;
    if (!best) {
      best = end;
      continue;
    }
    core::Facts facts = entry_facts(s);
    if (core::proves_le(s.m, end.hi, best->hi, facts)) continue;
    if (core::proves_le(s.m, best->hi, end.hi, facts)) {
      best = end;
      continue;
    }
    auto constant = [&](const End& e) { return e.literal || core::const_int(s.m, e.hi).has_value(); };
    if (!constant(end) && !constant(*best)) {
      s.diags
          .error(Code::E0403, fmt::format("clauses of {} end at {} and {}, which cannot be compared",
                                          quoted(d.name.symbol), show(s, best->hi),
                                          show(s, end.hi)))
          .primary(end.span, "ends at " + show(s, end.hi))
          .label(best->span, "ends at " + show(s, best->hi));
      return false;
    }
    if (constant(*best)) std::swap(*best, end);
    constrain(s, core::apply(s.m, core::Op::Le, {end.hi, best->hi}),
              fmt::format("{} has a clause that reaches {}, so {} must be at least {}",
                          quoted(d.name.symbol),
                          show(s, core::sub(s.m, end.hi, core::int_lit(s.m, 1))),
                          show(s, best->hi), show(s, end.hi)),
              end.span, best->span);
  }
  if (best) extent = best->hi;
  return true;
}

void make_family(Sema& s, Definition& d, std::vector<core::Coord> coords, DType type) {
  core::Family f;
  const Site* outer = d.scope->env.site;
  d.prefix = d.scope->env.depth;
  if (outer) {
    f.name = fresh_family_name(s, outer->name + "_" + text(d.name.symbol));
    f.generated = true;
  } else if (d.scope->frame.up) {  // a function's or block's local outside of any family
    f.name = fresh_family_name(s, text(d.name.symbol));
    f.generated = true;
  } else {
    f.name = d.name.symbol;
  }
  f.dtype = type;
  f.span = d.name.span;
  for (uint32_t i = 0; i < d.prefix; ++i) {
    f.coords.push_back({outer->slots[i].name, outer->slots[i].extent});
  }
  f.coords.insert(f.coords.end(), coords.begin(), coords.end());
  d.family = s.m.families.add(std::move(f));
  s.owner[d.family] = &d;
}

// Which left slots of the remaining clauses may fall back on an extent known from earlier ones.
std::vector<CoreId> fallbacks(Sema& s, Definition& d) {
  std::vector<CoreId> out(spelled_slots(s, d));
  for (size_t p = 0; p < out.size(); ++p) decide_extent(s, d, p, true, out[p]);
  return out;
}

void elaborate_one(Sema& s, Definition& d, size_t i, const std::vector<CoreId>& fallback) {
  ClauseOut out = elaborate_clause(s, d, d.clauses[i]);
  infer_ranges(s, out, fallback);
  d.outs[i] = std::move(out);
}

bool any_bad(const Definition& d) {
  return std::any_of(d.outs.begin(), d.outs.end(),
                     [](const auto& out) { return out && out->bad; });
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
      elaborate_one(s, d, i, fallbacks(s, d));
    }
  }
  if (!remain) return;
  if (any_bad(d)) {
    d.state = Definition::State::Bad;
    return;
  }
  if (slots == 0) return;  // `let x = x * 2`: found when it reads itself
  // Without a first clause the body must say its type without reading the group, as in
  // `if t == 0 { 1.0 } else { x[t-1] + 1.0 }`.
  auto type = decide_type(s, d);
  if (!type && !type_of(s, d)) {
    auto& e = s.diags.error(Code::E0403,
                            fmt::format("every clause of {} reads its own recurrence, so its type "
                                        "is not known", quoted(d.name.symbol)));
    e.primary(d.name.span, "");
    e.help("add a first clause, or a type: `let " + text(d.name.symbol) + "[…]: f32 = …`");
    d.state = Definition::State::Bad;
    return;
  }
  std::vector<core::Coord> coords;
  if (!type || !merge_coords(s, d, coords)) {
    d.state = Definition::State::Bad;
    return;
  }
  // A coordinate is known now if a clause gives it a range, or if all remaining clauses write theirs.
  for (size_t p = 0; p < coords.size(); ++p) {
    CoreId extent;
    if (!decide_extent(s, d, p, true, extent)) {
      d.state = Definition::State::Bad;
      return;
    }
    coords[p].extent = extent ? extent : p < slots ? d.extents[p] : CoreId{};
  }
  make_family(s, d, std::move(coords), *type);
  d.state = Definition::State::Header;
}

// The clause's body at the family's type, with a scalar clause stretched over trailing coordinates.
bool fit_clause(Sema& s, Definition& d, ClauseOut& out, const std::vector<core::Coord>& coords,
                DType type) {
  Env env = d.scope->env;
  if (ast::TypeId written = type_of(s, d); written && !fits(out.body, type)) {
    s.diags
        .error(Code::E0405, fmt::format("{} is annotated `{}`, its value is {}",
                                        quoted(d.name.symbol), name_of(type),
                                        show_value(s, out.body)))
        .primary(out.body.span, "this is " + show_value(s, out.body))
        .label(s.ast[written].span, "annotated here")
        .help(fmt::format("convert explicitly: `… as {}`", name_of(type)));
    return false;
  }
  if (!fits(out.body, type)) {
    s.diags
        .error(Code::E0403, fmt::format("{} is `{}`, this clause is {}", quoted(d.name.symbol),
                                        name_of(type), show_value(s, out.body)))
        .primary(out.body.span, "this is " + show_value(s, out.body))
        .label(d.name.span, fmt::format("`{}`", name_of(type)));
    return false;
  }
  out.body = adapt(s, env, out.body, type);
  if (out.otherwise) *out.otherwise = adapt(s, env, *out.otherwise, type);
  if (out.body.poison() || (out.otherwise && out.otherwise->poison())) return false;
  size_t own = out.box.size();
  if (own == coords.size()) return true;
  if (own != out.left.size()) {
    s.diags
        .error(Code::E0403, fmt::format("clauses of {} have {} and {} coordinates",
                                        quoted(d.name.symbol), coords.size(), own))
        .primary(out.site->span, fmt::format("{} here", own))
        .label(d.name.span, fmt::format("{} here", coords.size()));
    return false;
  }
  auto shift = [&](CoreId e) {
    std::vector<CoreId> with(out.body.depth);
    return core::substitute(s.m, e, with,
                            out.body.depth + static_cast<uint32_t>(coords.size() - own));
  };
  out.body.body = shift(out.body.body);
  if (out.otherwise) out.otherwise->body = shift(out.otherwise->body);
  if (out.gate) out.gate = shift(out.gate);
  for (size_t p = own; p < coords.size(); ++p) {
    out.coords.push_back(coords[p]);
    out.box.push_back({core::int_lit(s.m, 0), coords[p].extent});
  }
  return true;
}

// A local that stays an expression: under a binder, or a scalar that is cheap to repeat.
bool stays_inline(Sema& s, const Definition& d, const ClauseOut& out) {
  const Env& env = d.scope->env;
  if (!d.scope->frame.up) return false;
  bool under_binder = env.depth != (env.site ? env.site->slots.size() : 0);
  if (under_binder) return true;
  if (d.scope->families || !out.box.empty() || out.body.kind == Value::Kind::Table) return false;
  bool cheap = true;
  core::for_each_node(s.m, out.body.body, [&](CoreId e) {
    cheap &= !core::get_if<core::Reduce>(s.m, e) && !core::get_if<core::Request>(s.m, e);
  });
  return cheap && !out.gate;
}

bool inline_definition(Sema& s, Definition& d, DType type) {
  ClauseOut& out = *d.outs[0];
  if (d.outs.size() > 1) {
    unsupported(s, d.name.span, "locals with several clauses inside a reduction");
    return false;
  }
  Env env = d.scope->env;
  if (out.body.kind == Value::Kind::Table) {
    d.inlined = table_as(s, env, out.body, type, text(d.name.symbol));
    return !d.inlined->poison();
  }
  core::Facts facts = entry_facts(s);
  for (const core::Range& r : out.box) {
    if (core::proves_le(s.m, r.lo, core::int_lit(s.m, 0), facts)) continue;
    s.diags.error(Code::E0401, quoted(d.name.symbol) + " has a hole").primary(out.site->span, "");
    return false;
  }
  Value v = adapt(s, env, out.body, type);
  if (v.poison()) return false;
  if (out.gate) {
    CoreId no = out.otherwise ? adapt(s, env, *out.otherwise, type).body : zero(s, type);
    if (!no) return false;
    v.body = core::apply(s.m, core::Op::Select, {out.gate, v.body, no});
  }
  v.coords = out.coords;
  v.depth = env.depth;
  d.inlined = v;
  return true;
}

// The integer that a scalar stands for, so that it can bound ranges.
void note_constant(Sema& s, Definition& d) {
  if (d.outs.size() != 1 || !d.outs[0]->box.empty() || d.outs[0]->gate) return;
  const Value& v = d.outs[0]->body;
  if (v.kind != Value::Kind::Data || !is_int(v.type)) return;
  Env env = d.scope->env;
  CoreId e = as_index(s, env, v, {});
  if (!e || s.m[e].free != 0) return;
  bool data = false;
  core::for_each_node(s.m, e, [&](CoreId x) {
    data |= core::get_if<core::Access>(s.m, x) || core::get_if<core::Reduce>(s.m, x);
  });
  if (!data) d.constant = e;
}

bool finish_family(Sema& s, Definition& d) {
  std::optional<DType> type = d.family ? s.m[d.family].dtype : decide_type(s, d);
  if (!type) return false;
  note_constant(s, d);
  if (d.outs.size() == 1 && stays_inline(s, d, *d.outs[0]) && !d.family) {
    ast::TypeId written = type_of(s, d);
    if (written && dims_of(s, written)) {
      Env env = d.scope->env;
      if (!annotate(s, env, *d.scope, d.outs[0]->coords, written, d.outs[0]->body.span,
                    quoted(d.name.symbol))) {
        return false;
      }
    }
    return inline_definition(s, d, *type);
  }
  if (d.scope->frame.up && d.scope->env.depth !=
                               (d.scope->env.site ? d.scope->env.site->slots.size() : 0)) {
    unsupported(s, d.name.span, "locals with several clauses inside a reduction");
    return false;
  }
  std::vector<core::Coord> coords;
  if (!merge_coords(s, d, coords)) return false;
  for (size_t p = 0; p < coords.size(); ++p) {
    if (!decide_extent(s, d, p, false, coords[p].extent)) return false;
    if (!coords[p].extent) return false;
  }
  if (ast::TypeId written = type_of(s, d)) {
    Env env = d.scope->env;
    bool element_only = !dims_of(s, written) && spelled_slots(s, d) > 0;
    if (!element_only && !annotate(s, env, *d.scope, coords, written, d.outs[0]->body.span,
                                   quoted(d.name.symbol))) {
      return false;
    }
  }
  bool header = d.family.valid();
  if (!header) make_family(s, d, coords, *type);
  for (size_t p = 0; p < coords.size(); ++p) {
    CoreId before = s.m[d.family].coords[d.prefix + p].extent;
    if (header && p >= d.extents.size() && equal(s, before, coords[p].extent) == Truth::No) {
      s.diags.error(Code::E0403, fmt::format("clauses of {} disagree about the extent of coordinate {}",
                                             quoted(d.name.symbol), p))
          .primary(d.name.span, fmt::format("{} and {}", show(s, resolve(s, before)),
                                            show(s, coords[p].extent)));
      return false;
    }
    s.m.families[d.family].coords[d.prefix + p] = coords[p];
    if (p < d.extents.size()) {
      s.solved[core::get_if<core::ParamRef>(s.m, d.extents[p])->param] = coords[p].extent;
    }
  }
  const ClauseOut& first = *d.outs[0];
  if (first.body.kind == Value::Kind::Table) {
    Env env = d.scope->env;
    Value table = adapt(s, env, first.body, *type);
    if (table.poison()) return false;
    core::Family& f = s.m.families[d.family];
    f.kind = core::Family::Kind::Table;
    f.cells = table.cells;
    if (d.prefix > 0) {  // a table is closed: it needs no enclosing coordinates
      f.coords.erase(f.coords.begin(), f.coords.begin() + d.prefix);
      d.prefix = 0;
    }
    return true;
  }
  for (auto& out : d.outs) {
    if (!fit_clause(s, d, *out, coords, *type)) return false;
  }
  std::vector<core::Clause> clauses = disjoint(s, d, d.prefix, coords, *type);
  s.m.families[d.family].clauses = clauses;
  for (const auto& out : d.outs) s.made_at[d.family].push_back(out->site);
  if (Site* outer = d.scope->env.site; outer && d.prefix > 0) {
    // Evaluated only where the enclosing gates and conditions hold.
    CoreId cond = core::all_of(s.m, d.scope->env.conds);
    auto rank = static_cast<uint32_t>(s.m[d.family].coords.size());
    for (core::Clause& c : clauses) {
      if (cond) {
        CoreId here = core::substitute(s.m, cond, std::vector<CoreId>(d.prefix), rank);
        c.body = core::apply(s.m, core::Op::Select, {here, c.body, zero(s, *type)});
      }
      outer->lifted.push_back({d.family, c});
    }
    s.m.families[d.family].clauses = clauses;
    Box prefix;
    for (uint32_t i = 0; i < d.prefix; ++i) prefix.push_back(outer->slots[i].range);
    s.lifted.push_back({d.family, prefix});
  }
  return true;
}

void complete(Sema& s, Definition& d) {
  if (d.state == Definition::State::Bad || d.state == Definition::State::Done || d.finishing) return;
  d.finishing = true;
  if (d.state == Definition::State::Todo) d.state = Definition::State::Busy;
  s.busy.push_back(&d);
  std::vector<CoreId> fallback = fallbacks(s, d);
  for (size_t i = 0; i < d.clauses.size(); ++i) {
    if (!d.outs[i]) elaborate_one(s, d, i, fallback);
  }
  bool ok = d.state != Definition::State::Bad && !any_bad(d) && finish_family(s, d);
  s.busy.pop_back();
  d.state = ok ? Definition::State::Done : Definition::State::Bad;
}

}  // namespace

void define(Sema& s, Definition& d) {
  if (d.state != Definition::State::Todo || d.finishing) return;
  if (!d.recurrent) {
    d.finishing = true;
    d.state = Definition::State::Busy;
    s.busy.push_back(&d);
    begin(s, d);
    bool ok = !any_bad(d) && finish_family(s, d);
    s.busy.pop_back();
    d.state = ok ? Definition::State::Done : Definition::State::Bad;
    return;
  }
  std::vector<Definition*> members;
  for (Definition& other : d.scope->definitions) {
    if (other.group == d.group && other.state == Definition::State::Todo && other.outs.empty()) {
      members.push_back(&other);
    }
  }
  for (Definition* member : members) begin(s, *member);
  for (Definition* member : members) complete(s, *member);
}

Value read_definition(Sema& s, Env& env, Definition& d, Span span) {
  if (d.state == Definition::State::Todo) {
    bool started = !d.outs.empty();  // a member of a group whose headers are being fixed
    if (started) complete(s, d);
    else define(s, d);
  }
  if (d.state == Definition::State::Busy) {
    auto& e = s.diags.error(Code::E0203, quoted(d.name.symbol) + " depends on itself");
    e.primary(span, "read here");
    e.label(d.name.span, "while it is being defined");
    auto from = std::find(s.busy.begin(), s.busy.end(), &d);
    std::string chain;
    for (auto it = from; it != s.busy.end(); ++it) chain += quoted((*it)->name.symbol) + " → ";
    if (s.busy.end() - from > 1) e.note("the cycle: " + chain + quoted(d.name.symbol));
    e.help("scopes are unordered: the name means this definition on both sides");
    d.state = Definition::State::Bad;
    return {};
  }
  if (d.state == Definition::State::Bad) return {};
  if (d.inlined) {
    Value v = moved(s, *d.inlined, env.depth);
    v.span = span;
    return v;
  }
  return read_family(s, env, d.family, d.prefix, span);
}

}  // namespace ein::sema
