// The family of a definition: its clauses at one type and rank, disjoint; locals lifted out of the
// clause they stand in, or kept as expressions.
#include <fmt/format.h>

#include <algorithm>

#include "sema/definitions/definitions.h"
#include "sema/expressions/expressions.h"
#include "sema/names/attributes.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/range_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// The clause's body at the family's type, with a scalar clause stretched over trailing coordinates.
bool fit_clause(Sema& s, Definition& d, ClauseOut& out, const std::vector<core::Coord>& coords,
                DType type) {
  Env env = d.scope->env;
  bool fitting = fits(out.body, type);
  if (ast::TypeId written = fitting ? ast::TypeId{} : type_of(s.ast, d); written) {
    s.diags
        .error(Code::E0405,
               fmt::format("{} is annotated as `{}`, but its value is {}", quoted(d.name.symbol),
                           name_of(type), show_value(s, out.body)))
        .primary(out.body.span, "this is " + show_value(s, out.body))
        .label(s.ast[written].span, "annotated here")
        .help(fmt::format("convert explicitly: `… as {}`", name_of(type)));
    return false;
  }
  if (!fitting) {
    s.diags
        .error(Code::E0403, fmt::format("{} is `{}`, but this clause is {}", quoted(d.name.symbol),
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
        .error(Code::E0403,
               fmt::format("clauses of {} have different numbers of coordinates: {} and {}",
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

// The slots of enclosing clauses that the bodies, or the conditions around them, read.
uint64_t slots_read(Sema& s, const Definition& d) {
  uint64_t free = 0;
  auto add = [&](CoreId e) {
    if (e) free |= s.m[e].free;
  };
  for (CoreId cond : d.scope->env.conds) add(cond);
  for (const auto& out : d.outs) {
    if (out->body.kind != Value::Kind::Data) continue;
    add(out->body.body);
    add(out->gate);
    if (out->otherwise) add(out->otherwise->body);
  }
  return free & ((uint64_t{1} << d.scope->env.depth) - 1);
}

bool reads_binder(Sema& s, const Definition& d) {
  const Env& env = d.scope->env;
  return (slots_read(s, d) >> (env.site ? env.site->slots.size() : 0)) != 0;
}

// A local that stays an expression: it reads the index of a reduction around it, or it is a scalar
// that is cheap to repeat.
bool stays_inline(Sema& s, const Definition& d, const ClauseOut& out) {
  const Env& env = d.scope->env;
  if (d.scope->module) return false;
  if (env.scalar_body) return out.box.empty() && out.body.kind != Value::Kind::Table;
  if (reads_binder(s, d)) return true;
  if (out.body.kind == Value::Kind::Table || !out.box.empty()) return false;
  bool family = d.scope->step || d.scope->requested.count(d.name.symbol);
  if (family && !under_binder(env)) return false;
  // A long chain of locals would be copied again at every link.
  constexpr size_t kMaxInlined = 256;
  bool cheap = true;
  size_t nodes = 0;
  core::for_each_node(s.m, out.body.body, [&](CoreId e) {
    cheap &= !core::get_if<core::Reduce>(s.m, e) && !core::get_if<core::Request>(s.m, e);
    ++nodes;
  });
  return cheap && !out.gate && (nodes <= kMaxInlined || under_binder(env));
}

bool inline_definition(Sema& s, Definition& d, DType type) {
  ClauseOut& out = *d.outs[0];
  Env env = d.scope->env;
  if (out.body.kind == Value::Kind::Table) {
    d.inlined = table_as(s, env, out.body, type, text(d.name.symbol));
    return !d.inlined->poison();
  }
  core::Facts facts = facts_at_entry(s.m);
  for (const core::Range& r : out.box) {
    if (core::proves_le(s.m, r.lo, core::int_lit(s.m, 0), facts)) continue;
    s.diags.error(Code::E0401, quoted(d.name.symbol) + " has a hole").primary(out.site->span, "");
    return false;
  }
  Value v = adapt(s, env, out.body, type);
  if (v.poison()) return false;
  if (out.gate) {
    CoreId no = out.otherwise ? adapt(s, env, *out.otherwise, type).body : zero(s.m, type);
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
  if (e && closed(s.m, e)) d.constant = e;
}

// Slots of the enclosing clause that become coordinates of a local: those it reads. One that a
// request names also keeps the steps, because it is another binding at every step
// (decisions.md, 23).
std::vector<uint32_t> needed_slots(Sema& s, const Definition& d) {
  if (d.outs[0]->body.kind == Value::Kind::Table) return {};
  uint64_t free = slots_read(s, d);
  if (d.scope->step && d.scope->requested.count(d.name.symbol)) free |= d.scope->env.site->steps;
  std::vector<uint32_t> slots;
  for (uint32_t n = 0; n < slots_around(d.scope->env).size(); ++n) {
    if ((free >> n) & 1) slots.push_back(n);
  }
  return slots;
}

// Clauses of a local: evaluated only where the enclosing gates and conditions hold, and renumbered
// from the enclosing clause's slots to the family's own coordinates.
void lift(Sema& s, Definition& d, std::vector<core::Clause> clauses, CoreId cond, DType type) {
  Site& outer = *d.scope->env.site;
  auto prefix = d.scope->env.depth;
  auto carried = static_cast<uint32_t>(d.carries.size());
  auto own = static_cast<uint32_t>(s.m[d.family].coords.size()) - carried;
  std::vector<CoreId> with(prefix + own);
  for (uint32_t k = 0; k < carried; ++k) with[d.carries[k]] = core::slot(s.m, k);
  for (uint32_t p = 0; p < own; ++p) with[prefix + p] = core::slot(s.m, carried + p);
  Box ranges, enclosing(prefix);
  const std::vector<SiteSlot> around = slots_around(d.scope->env);
  for (uint32_t slot : d.carries) ranges.push_back(around[slot].range);
  for (uint32_t n = 0; n < prefix && n < around.size(); ++n) enclosing[n] = around[n].range;
  for (core::Clause& c : clauses) {
    if (cond) {
      CoreId here = core::substitute(s.m, cond, std::vector<CoreId>(prefix), prefix + own);
      c.body = core::apply(s.m, core::Op::Select, {here, c.body, zero(s.m, type)});
    }
    core::Clause inside = c;  // as seen from the enclosing clause, for its range inference
    inside.box.insert(inside.box.begin(), enclosing.begin(), enclosing.end());
    outer.lifted.push_back(std::move(inside));
    c.body = core::substitute(s.m, c.body, with, carried + own);
    c.box.insert(c.box.begin(), ranges.begin(), ranges.end());
  }
  s.m.families[d.family].clauses = std::move(clauses);
  s.definitions.lifted.push_back({d.family, ranges});
}

// `let p = { w: … };` at the top level: the user names the families of its parts, as `p.w`.
void name_parts(Sema& s, const Definition& d) {
  const std::vector<FilePart> members = file_parts(s.ast, record_type(s.ast, d));
  size_t part = 0;
  map_leaves(*d.inlined, [&](const Value& leaf, const std::string& path) {
    FamilyId family = whole_family(s.m, leaf);
    // An integer, or another name for an array, is a value of the program too.
    if ((!family || !s.m[family].generated) && leaf.kind == Value::Kind::Data) {
      Env env = d.scope->env;
      Value own = settle(s, env, leaf);
      family = own.typing == Typing::Fixed
                   ? family_of(s, env, own, text(d.name.symbol) + as_suffix(path))
                   : FamilyId{};
    }
    if (family) {
      s.m.families[family].generated = false;
      s.m.families[family].path = text(d.name.symbol) + path;
      if (part < members.size()) s.m.families[family].member = members[part].name;
    }
    ++part;
    return leaf;
  });
}

}  // namespace

namespace {

// The slots that names in a chain of frames depend on: those of its indices, and those in values
// passed to functions. The caller's frames are not in the chain of a function's body.
struct Reach {
  const Sema& s;
  uint64_t slots = 0;
  std::set<const Frame*> seen = {};

  void expr(CoreId e) {
    if (e) slots |= s.m[e].free;
  }

  void value(const Value& v) {
    uint64_t below = (uint64_t{1} << v.depth) - 1;  // above are its own coordinates
    if (v.body) slots |= s.m[v.body].free & below;
    for (CoreId e : v.cells) slots |= s.m[e].free & below;
    for (const Value& item : v.items) value(item);
    if (v.function) frames(v.function->home);
  }

  void frames(const Frame* frame) {
    for (; frame && seen.insert(frame).second; frame = frame->up) {
      for (const Index* index : frame->indices) slots |= uint64_t{1} << index->slot;
      for (const auto& [name, v] : frame->values) value(v);
      if (frame->scope) scope(*frame->scope);
    }
  }

  void scope(const Scope& inner) {
    if (inner.module) return;  // nothing around it has slots, and it may be long
    for (CoreId cond : inner.env.conds) expr(cond);
    for (const Definition& other : inner.definitions) {
      if (other.inlined) value(*other.inlined);
      for (uint32_t slot : other.carries) slots |= uint64_t{1} << slot;
    }
    // A local that a request names is another one at every step, whether it reads the step or not.
    if (inner.step && !inner.requested.empty()) slots |= inner.env.site->steps;
  }
};

}  // namespace

std::vector<uint32_t> readable_slots(const Sema& s, const Definition& d) {
  const Env& env = d.scope->env;
  if (env.depth == 0) return {};
  Reach reach{s};
  for (CoreId cond : env.conds) reach.expr(cond);
  reach.frames(env.frame);
  std::vector<uint32_t> out;
  for (uint32_t n = 0; n < env.depth; ++n) {
    if ((reach.slots >> n) & 1) out.push_back(n);
  }
  return out;
}

bool carries_binders(Sema& s, const Definition& d) {
  const Env& env = d.scope->env;
  if (d.scope->module || !under_binder(env)) return false;
  if (!d.recurrent && d.clauses.size() < 2) return false;
  size_t known = (env.site ? env.site->slots.size() : 0) + env.binders.size();
  if (known != env.depth) return false;
  return std::all_of(env.binders.begin(), env.binders.end(), [&](const SiteSlot& b) {
    return closed(s.m, resolve(s, b.range.lo)) && closed(s.m, resolve(s, b.range.hi));
  });
}

void place_clauses(Sema& s, Definition& d, std::vector<core::Clause> clauses, DType type) {
  if (d.scope->env.depth > 0) {
    lift(s, d, std::move(clauses), conditions(s.m, d.scope->env), type);
  } else {
    s.m.families[d.family].clauses = std::move(clauses);
  }
  gate_family(s, d.scope->env, d.family);
}

void make_family(Sema& s, Definition& d, std::vector<core::Coord> coords, DType type,
                 std::vector<uint32_t> carries) {
  core::Family f;
  const Site* outer = d.scope->env.site;
  d.carries = std::move(carries);
  std::string base = as_suffix(text(d.name.symbol));  // `s.a` is a leaf: a family `s_a`
  if (outer) {
    f.name = fresh_family_name(s.names, outer->name + "_" + base);
    f.generated = true;
  } else if (!d.scope->root) {  // of a function, a block or another module
    f.name = fresh_family_name(s.names, base);
    f.generated = true;
  } else {
    f.name = d.whole ? fresh_family_name(s.names, base) : d.name.symbol;
    if (d.whole) f.path = text(d.name.symbol);
  }
  f.dtype = type;
  f.checkpoint = checkpoint_wish(s, d);
  f.span = d.name.span;
  const std::vector<SiteSlot> around = slots_around(d.scope->env);
  for (uint32_t slot : d.carries) {
    // A coordinate with a literal slot has no name, but printing needs one.
    Symbol name = around[slot].name ? around[slot].name : intern("i");
    f.coords.push_back({name, around[slot].extent});
  }
  f.coords.insert(f.coords.end(), coords.begin(), coords.end());
  d.family = s.m.families.add(std::move(f));
  s.definitions.owner[d.family] = &d;
}

namespace {

// A definition of one scalar stays an expression; its written type still counts.
bool finish_inline(Sema& s, Definition& d, DType type) {
  ast::TypeId written = type_of(s.ast, d);
  if (written && dims_of(s.ast, written)) {
    Env env = d.scope->env;
    if (!annotate(s, env, *d.scope, d.outs[0]->coords, written, d.outs[0]->body.span,
                  quoted(d.name.symbol))) {
      return false;
    }
  }
  return inline_definition(s, d, type);
}

// Where this definition stands, it may be an array.
bool may_be_array(Sema& s, const Definition& d) {
  if (const ast::Fn* fn = d.scope->env.scalar_body; fn && !d.scope->module) {
    s.diags
        .error(Code::E0216, fmt::format("{} calls itself, but {} in it is not a scalar",
                                        quoted(fn->name.symbol), quoted(d.name.symbol)))
        .primary(d.name.span, "an array")
        .label(fn->name.span, "recursive")
        .help("a recursive function computes one scalar from scalars; write a recurrence instead");
    return false;
  }
  if (!d.scope->module && reads_binder(s, d) && !carries_binders(s, d)) {
    unsupported(
        s, d.name.span,
        "local arrays with several clauses inside a reduction whose range is not a full extent",
        "define it outside, with the reduced index as a coordinate");
    return false;
  }
  return true;
}

// The coordinates and extents on which its clauses and its written type agree; nullopt: they do
// not, or some are not known.
std::optional<std::vector<core::Coord>> agreed_coords(Sema& s, Definition& d) {
  std::vector<core::Coord> coords;
  if (!merge_coords(s, d, coords)) return std::nullopt;
  for (size_t p = 0; p < coords.size(); ++p) {
    if (!decide_extent(s, d, p, false, coords[p].extent)) return std::nullopt;
    if (!coords[p].extent) return std::nullopt;
  }
  ast::TypeId written = type_of(s.ast, d);
  if (!written) return coords;
  // The type of an array of records is that of one of its cells.
  size_t spelled = spelled_slots(s, d);
  if (!d.whole && !dims_of(s.ast, written) && spelled > 0) return coords;  // an element's type
  auto first = static_cast<ptrdiff_t>(d.whole ? std::min(spelled, coords.size()) : 0);
  std::vector<core::Coord> typed(coords.begin() + first, coords.end());
  Env env = d.scope->env;
  if (!annotate(s, env, *d.scope, typed, written, d.outs[0]->body.span, quoted(d.name.symbol))) {
    return std::nullopt;
  }
  coords.resize(static_cast<size_t>(first));
  coords.insert(coords.end(), typed.begin(), typed.end());
  return coords;
}

// The header of a recurrence came from clauses that do not read it, and reads were made with its
// rank: the others must agree, and then settle its coordinates.
bool settle_header(Sema& s, Definition& d, const std::vector<core::Coord>& coords, bool read) {
  size_t carried = d.carries.size();
  if (size_t known = s.m[d.family].coords.size() - carried; known != coords.size()) {
    auto& e = s.diags.error(
        Code::E0403, fmt::format("clauses of {} have different numbers of coordinates: {} and {}",
                                 quoted(d.name.symbol), known, coords.size()));
    for (const auto& out : d.outs) {
      std::string says = fmt::format("{} here", out->box.size());
      if (out->box.size() == coords.size() && e.labels.empty()) {
        e.primary(out->site->span, says);
      } else if (out->box.size() == known && e.labels.size() < 2) {
        e.label(out->site->span, says);
      }
    }
    e.help("give the first clause of the recurrence all the coordinates");
    return false;
  }
  for (size_t p = 0; p < coords.size(); ++p) {
    CoreId before = s.m[d.family].coords[carried + p].extent;
    if (read && p >= d.extents.size() && equal(s, before, coords[p].extent) == Truth::No) {
      s.diags
          .error(Code::E0403,
                 fmt::format("clauses of {} disagree about the extent of coordinate {}",
                             quoted(d.name.symbol), p))
          .primary(d.name.span, fmt::format("{} and {}", show(s, resolve(s, before)),
                                            show(s, coords[p].extent)));
      return false;
    }
    s.m.families[d.family].coords[carried + p] = coords[p];
    if (p < d.extents.size()) {
      s.ranges.solved[core::get_if<core::ParamRef>(s.m, d.extents[p])->param] = coords[p].extent;
    }
  }
  return true;
}

bool finish_table(Sema& s, Definition& d, DType type) {
  Env env = d.scope->env;
  Value table = adapt(s, env, d.outs[0]->body, type);
  if (table.poison()) return false;
  core::Family& f = s.m.families[d.family];
  f.kind = core::Family::Kind::Table;
  f.cells = table.cells;
  return true;
}

// Ranges that end at another spelling of the extent, equal to it at entry, end at the extent itself:
// what is printed has explicit ranges, and its clauses must be seen to end together before
// anything else shows that the two are equal.
void end_at_extents(Sema& s, ClauseOut& out, const std::vector<core::Coord>& coords) {
  for (size_t p = 0; p < std::min(out.box.size(), coords.size()); ++p) {
    CoreId& hi = out.box[p].hi;
    if (resolve(s, hi) != coords[p].extent && equal(s, hi, coords[p].extent) == Truth::Yes) {
      hi = coords[p].extent;
    }
  }
}

// The clauses, made to fit and put into the family.
bool finish_clauses(Sema& s, Definition& d, const std::vector<core::Coord>& coords, DType type) {
  for (auto& out : d.outs) {
    if (!fit_clause(s, d, *out, coords, type)) return false;
    end_at_extents(s, *out, coords);
    repeat_when_ended(s, d, *out);
  }
  if (!finish_flag(s, d, coords)) return false;
  std::vector<core::Clause> clauses = disjoint(s, d, coords, type);
  for (const auto& out : d.outs) s.definitions.made_at[d.family].push_back(out->site);
  place_clauses(s, d, std::move(clauses), type);
  return true;
}

}  // namespace

bool finish_family(Sema& s, Definition& d) {
  if (d.outs.size() == 1 && d.outs[0] && !d.outs[0]->body.one()) {
    Env env = d.scope->env;
    bool view = !d.scope->root && !d.scope->requested.count(d.name.symbol);
    d.inlined = hold_value(s, env, d.outs[0]->body, type_of(s.ast, d), *d.scope,
                           text(d.name.symbol), view ? Held::View : Held::Plain);
    if (d.inlined && d.inlined->record() && d.scope->root) name_parts(s, d);
    return d.inlined.has_value();
  }
  std::optional<DType> type = d.family ? s.m[d.family].dtype : decide_type(s, d);
  if (!type) return false;
  note_constant(s, d);
  if (d.outs.size() == 1 && stays_inline(s, d, *d.outs[0]) && !d.family) {
    return finish_inline(s, d, *type);
  }
  if (!may_be_array(s, d)) return false;
  auto coords = agreed_coords(s, d);
  if (!coords) return false;
  bool header = d.family.valid();
  if (FamilyId loaded = header ? FamilyId{} : loaded_family(s, d)) {
    if (!fit_clause(s, d, *d.outs[0], *coords, *type)) return false;
    adopt_load(s, d, loaded, *coords);
    return true;
  }
  uint64_t carried_slots = 0;
  for (uint32_t slot : d.carries) carried_slots |= uint64_t{1} << slot;
  if (header && (slots_read(s, d) & ~carried_slots) != 0) {
    unsupported(s, d.name.span, "recurrences that read an index through a function value",
                "define it outside the function, with the index as a coordinate");
    return false;
  }
  if (!header) make_family(s, d, *coords, *type, needed_slots(s, d));
  if (!settle_header(s, d, *coords, header)) return false;
  const Value& first = d.outs[0]->body;
  if (first.kind == Value::Kind::Table) return finish_table(s, d, *type);
  // `const HALF = 0.5;` adapts like the literal it stands for; a `let` fixes its type.
  bool literal = !let_of(s.ast, d.clauses[0]) && !type_of(s.ast, d) && first.scalar();
  Value untyped = literal ? first : Value{};
  if (!finish_clauses(s, d, *coords, *type)) return false;
  if (untyped.typing != Typing::Fixed) d.inlined = untyped;
  return true;
}

}  // namespace ein::sema
