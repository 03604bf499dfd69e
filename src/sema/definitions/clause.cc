// One clause: its left side, its right side, and how the two meet: by name where the right side
// spells coordinates, by position where it does not (decisions.md, 3).
#include <fmt/format.h>

#include <algorithm>

#include "sema/definitions/definitions.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

TreeId until_of(const Sema& s, ast::StmtId stmt) {
  const ast::Let* l = let_of(s.ast, stmt);
  return l ? l->until : TreeId{};
}

TreeId value_of(const Sema& s, ast::StmtId stmt) {
  if (const auto* l = std::get_if<ast::Let>(&s.ast[stmt].node)) return l->value;
  return std::get<ast::Const>(s.ast[stmt].node).value;
}

}  // namespace

namespace {

// A range or literal on the left must be known before any cell is computed.
bool check_closed(Sema& s, CoreId e, Span span) {
  if (closed(s.m, e)) return true;
  s.diags.error(Code::E0309, "a range on the left depends on values")
      .primary(span, "")
      .help("a range on the left is made of literals and extents; use `where` for the rest");
  return false;
}

// Rejects `let y[i, j in 0..i]`: left indices are not in scope in left ranges. If `i` is also an
// extent or a value, it means that and is fine.
bool check_independent(Sema& s, const Env& env, const std::vector<LeftSlot>& slots,
                       const ast::Slot& slot) {
  for (Symbol name : free_names(s.ast, slot.range)) {
    if (find_index(env, name) || value_exists(env, name) || find_extent(s, env, name)) continue;
    for (const LeftSlot& other : slots) {
      if (other.name != name) continue;
      s.diags
          .error(Code::E0309,
                 fmt::format("the range of {} depends on {}, another index on the left",
                             quoted(slot.name.symbol), quoted(name)))
          .primary(s[slot.range].span, "")
          .label(other.slot->span, "the other index")
          .help("an array is rectangular: give the full range and mask it, as in `… where j < i`");
      return false;
    }
  }
  return true;
}

bool bind_left(Sema& s, Env& env, Frame& frame, const LeftSide& left_side, ClauseOut& out) {
  if (left_side.bad) return false;
  frame.packs = left_side.packs;
  const std::vector<LeftSlot>& slots = left_side.slots;
  std::set<Symbol> names;
  if (!slots.empty() && too_many_indices(s, env.depth + slots.size(), slots.back().slot->span)) {
    return false;
  }
  for (const LeftSlot& left : slots) {
    const ast::Slot& slot = *left.slot;
    core::Range range;
    Index* index = nullptr;
    if (slot.kind == ast::Slot::Kind::Literal) {
      range.lo = elaborate_index(s, env, slot.at);
      if (range.lo) range.lo = as_extent(s, range.lo);
      if (!range.lo || !check_closed(s, range.lo, slot.span)) return false;
      if (auto c = core::const_int(s.m, range.lo); c && *c < 0) {
        s.diags.error(Code::E0306, fmt::format("there is no cell {}", *c))
            .primary(slot.span, "cells are numbered from 0");
        return false;
      }
      range.hi = core::add(s.m, range.lo, core::int_lit(s.m, 1));
    } else {
      if (!names.insert(left.name).second) {
        s.diags.error(Code::E0202, quoted(left.name) + " appears twice on the left")
            .primary(slot.span, "");
        return false;
      }
      index = &s.names.indices.emplace_back();
      index->name = left.name;
      index->span = slot.name.span;
      if (!slot.name.made && slot.kind == ast::Slot::Kind::Index) index->named = slot.name.span;
      index->slot = env.depth + static_cast<uint32_t>(out.box.size());
      index->left = true;
      index->inferred = !slot.range;
      if (slot.range) {
        if (!check_independent(s, env, slots, slot)) return false;
        if (!elaborate_range(s, env, slot.range, range)) return false;
        if (!check_closed(s, range.lo, s[slot.range].span)) return false;
        if (!check_closed(s, range.hi, s[slot.range].span)) return false;
        if (auto c = core::const_int(s.m, range.lo); c && *c < 0) {
          s.diags.error(Code::E0306, fmt::format("there is no cell {}", *c))
              .primary(s[slot.range].span, "cells are numbered from 0");
          return false;
        }
      } else {
        range = unknown_range(s, {left.name, slot.name.span}, true);
      }
      index->range = range;
    }
    out.box.push_back(range);
    out.coords.push_back({index ? index->name : Symbol{}, range.hi});
    out.left.push_back({index, slot.span});
  }
  for (const auto& left : out.left) {
    if (left.index) frame.indices.push_back(left.index);
  }
  return true;
}

bool one_access_call_or_block(const Sema& s, TreeId e) {
  if (const auto* w = std::get_if<ast::Where>(&s[e].node)) e = w->body;
  const ast::ExprNode& n = s[e].node;
  return std::holds_alternative<ast::Index>(n) || std::holds_alternative<ast::Call>(n) ||
         std::holds_alternative<ast::Block>(n) || std::holds_alternative<ast::Path>(n) ||
         std::holds_alternative<ast::Request>(n) || std::holds_alternative<ast::Record>(n) ||
         std::holds_alternative<ast::Field>(n);
}

// `@loss / @W` without indices: the name in the denominator.
std::optional<Symbol> whole_request(const Sema& s, TreeId e) {
  std::optional<Symbol> found;
  for_each_tree(s.ast, e, [&](TreeId x) {
    const auto* request = std::get_if<ast::Request>(&s[x].node);
    if (request && request->den && path_name(s.ast, request->den))
      found = path_name(s.ast, request->den);
  });
  return found;
}

// Which left slot takes each carried coordinate; npos: it is appended.
bool match_carried(Sema& s, const Definition& d, TreeId value, const ClauseOut& out,
                   const std::vector<core::Coord>& carried, std::vector<size_t>& takes) {
  constexpr size_t npos = static_cast<size_t>(-1);
  std::vector<size_t> open;
  bool all_given = true;
  for (size_t i = 0; i < out.left.size(); ++i) {
    const Index* index = out.left[i].index;
    if (index && !index->used) open.push_back(i);
    all_given &= !index || !index->inferred;
  }
  auto own = [&](Symbol name) {
    return std::any_of(carried.begin(), carried.end(),
                       [&](const core::Coord& c) { return c.name == name; });
  };
  for (size_t c = 0; c < carried.size(); ++c) {
    size_t left = c < open.size() ? open[c] : npos;
    if (left != npos) {
      const Index& index = *out.left[left].index;
      if (own(index.name) && carried[c].name != index.name) {
        auto& e = s.diags.error(Code::E0404,
                                fmt::format("{} would be matched with a coordinate of another name",
                                            quoted(index.name)));
        e.primary(index.span, "this would be coordinate " +
                                  (carried[c].name ? quoted(carried[c].name) : std::to_string(c)));
        e.label(s[value].span, "this has coordinates " + show_coords(s, carried));
        std::string name = path_name(s.ast, value) ? text(path_name(s.ast, value)) : "the value";
        e.help("write `" + name + show_coords(s, carried) + "`");
        return false;
      }
    }
    takes.push_back(left);
  }
  size_t appended = carried.size() > open.size() ? carried.size() - open.size() : 0;
  if (appended == 0) return true;
  std::vector<core::Coord> rest(carried.end() - static_cast<ptrdiff_t>(appended), carried.end());
  if (!all_given && !one_access_call_or_block(s, value)) {
    auto& e =
        s.diags.error(Code::E0404, "the right side still has coordinates " + show_coords(s, rest));
    e.primary(s[value].span, "this has coordinates " + show_coords(s, carried));
    bool named = std::any_of(out.left.begin(), out.left.end(), [&](const Left& l) {
      return l.index && l.index->name == rest[0].name;
    });
    e.label(d.name.span,
            named ? "this name is already used on the left" : "not named on the left side");
    if (auto whole = whole_request(s, value)) {
      e.help(fmt::format("here `@{0}` means all of {0}: write `@{0}{1}`", text(*whole),
                         show_coords(s, rest)));
    } else {
      e.help("write the coordinate on both sides");
    }
    return false;
  }
  // A plain `let` has the coordinates of its value, even where those share a name
  // (decisions.md, 5).
  for (size_t i = 0; i < rest.size() && !out.left.empty(); ++i) {
    bool taken = std::any_of(out.coords.begin(), out.coords.end(),
                             [&](const core::Coord& c) { return c.name == rest[i].name; });
    for (size_t j = 0; j < i; ++j) taken |= rest[j].name == rest[i].name;
    if (!taken || !rest[i].name) continue;
    s.diags
        .error(Code::E0404,
               fmt::format("the result would have two coordinates named {}", quoted(rest[i].name)))
        .primary(s[value].span, "this has coordinates " + show_coords(s, carried))
        .label(d.name.span, "defined here")
        .help("write the coordinates on both sides, with distinct names");
    return false;
  }
  return true;
}

// Puts the carried coordinates of body, gate and `else` into their places.
bool close(Sema& s, Env& env, const Definition& d, TreeId value, Gated g, ClauseOut& out) {
  std::vector<Value> parts{g.body};
  if (g.gate) parts.push_back(*g.gate);
  if (g.otherwise) parts.push_back(*g.otherwise);
  std::vector<Value*> list;
  for (Value& v : parts) {
    if (v.poison()) return false;
    list.push_back(&v);
  }
  std::vector<core::Coord> carried;
  if (!same_coords(s, env, list, s[value].span, carried)) return false;
  std::vector<size_t> takes;
  if (!match_carried(s, d, value, out, carried, takes)) return false;
  std::vector<CoreId> cells = aligned(s.m, env, parts, carried.size());
  std::vector<CoreId> with(env.depth + carried.size());
  uint32_t next = env.depth;
  CoreId zero = core::int_lit(s.m, 0);
  for (size_t c = 0; c < carried.size(); ++c) {
    if (takes[c] != static_cast<size_t>(-1)) {
      with[env.depth + c] = core::slot(s.m, out.left[takes[c]].index->slot);
      out.hints.push_back({takes[c], carried[c].extent, s[value].span});
      continue;
    }
    with[env.depth + c] = core::slot(s.m, next++);
    out.coords.push_back(carried[c]);
    out.box.push_back({zero, carried[c].extent});
  }
  for (CoreId& e : cells) e = core::substitute(s.m, e, with, next);
  auto scalar = [&](const Value& v, CoreId body) {
    Value x = v;
    x.coords.clear();
    x.body = body;
    x.depth = next;
    return x;
  };
  out.body = scalar(parts[0], cells[0]);
  size_t at = 1;
  if (g.gate) out.gate = cells[at++];
  if (g.otherwise) out.otherwise = scalar(parts[at], cells[at]);
  return true;
}

// `written`: the type on the left, if there is one.
void close_value(Sema& s, Env& env, const Definition& d, TreeId value, ast::TypeId written, Gated g,
                 ClauseOut& out);

// What is defined together has ranges in common.
void add_siblings(const std::vector<ClauseOut*>& outs) {
  for (ClauseOut* out : outs) {
    for (const ClauseOut* other : outs) {
      if (out == other || other->bad || other->body.kind != Value::Kind::Data) continue;
      out->siblings.push_back({other->box, other->body.body, other->span});
    }
  }
}

// A clause of an array of records: one clause for every leaf.
void close_record(Sema& s, Env& env, const Definition& d, TreeId value, Gated g, ClauseOut& out) {
  if (d.shape.record()) {
    auto aligned = in_order_of(d.shape, g.body);
    if (!aligned) {
      s.diags
          .error(Code::E0403,
                 fmt::format("clauses of {} have different fields", quoted(d.name.symbol)))
          .primary(g.body.span, "this is " + show_value(s, g.body))
          .label(d.name.span, "defined as " + show_value(s, d.shape));
      return;
    }
    g.body = std::move(*aligned);
  }
  std::vector<Value> otherwise;
  if (g.otherwise) {
    auto aligned = in_order_of(g.body, *g.otherwise);
    if (!aligned) {
      different_fields(s, "both sides of `else` need", g.body, *g.otherwise, out.span);
      return;
    }
    otherwise = leaves_of(*aligned);
  }
  std::vector<Value> leaves = leaves_of(g.body);
  std::vector<ClauseOut> parts(leaves.size(), out);
  std::vector<ClauseOut*> all;
  bool ok = true;
  for (size_t i = 0; i < leaves.size(); ++i) {
    Gated one{leaves[i], g.gate, {}};
    if (g.otherwise) one.otherwise = otherwise[i];
    ast::TypeId type = leaf_type(s.ast, type_of(s.ast, d), i);
    close_value(s, env, d, value, type, std::move(one), parts[i]);
    ok &= !parts[i].bad;
    all.push_back(&parts[i]);
  }
  add_siblings(all);
  out.leaves = std::move(parts);
  out.body = std::move(g.body);
  out.bad = !ok;
}

void close_value(Sema& s, Env& env, const Definition& d, TreeId value, ast::TypeId written, Gated g,
                 ClauseOut& out) {
  if (g.body.record() && !out.left.empty())
    return close_record(s, env, d, value, std::move(g), out);
  // A plain array literal keeps its cells: the definition becomes the table.
  if (g.body.kind == Value::Kind::Table && out.box.empty() && !g.gate) {
    out.body = g.body;
    out.coords = g.body.coords;
    CoreId zero = core::int_lit(s.m, 0);
    for (const core::Coord& c : out.coords) out.box.push_back({zero, c.extent});
    out.bad = false;
    return;
  }
  if (!g.body.one() && !g.body.poison()) {  // not a family: the definition holds it as it is
    if (out.left.empty() && !g.gate) {
      out.body = std::move(g.body);
      out.bad = false;
      return;
    }
    auto& e = s.diags.error(Code::E0502,
                            fmt::format("{} cannot be {}", show_value(s, g.body),
                                        g.gate ? "masked by `where`" : "a cell of an array"));
    e.primary(g.body.span, "").label(d.name.span, "defined here");
    if (g.body.kind == Value::Kind::Tuple) {
      e.help("name the values, so that each is an array: `let (a, b)[i] = …`");
    }
    return;
  }
  // Literals and the numbers of a text take the type that is written on the left.
  bool literals = g.body.kind == Value::Kind::Table && g.body.typing != Typing::Fixed;
  if (written && !g.body.poison()) {
    auto type =
        literals || g.body.kind == Value::Kind::Data ? element_type(s, written) : std::nullopt;
    if (type && literals) g.body = adapt(s, env, g.body, *type);
    if (type && !literals) g.body = load_as(s, env, value, std::move(g.body), *type);
  }
  g.body = as_data(s, env, g.body);
  if (g.body.poison()) return;
  if (g.otherwise) {
    *g.otherwise = as_data(s, env, *g.otherwise);
    if (g.otherwise->poison()) return;
    if (!same_type(s, env, {&g.body, &*g.otherwise}, out.span)) return;
  }
  out.bad = !close(s, env, d, value, std::move(g), out);
}

size_t place_in(const ast::Let& let, const Definition& d) {
  for (size_t i = 0; i < let.names.size(); ++i) {
    if (let.names[i].symbol == d.name.symbol) return i;
  }
  return 0;
}

// `let { w, b } = p`: the fields that the pattern names, in its order. False after an error.
bool pick_fields(Sema& s, const ast::Let& let, Value& v) {
  if (!v.record()) {
    s.diags
        .error(Code::E0502,
               fmt::format("a pattern in braces takes a record apart, not {}", show_value(s, v)))
        .primary(v.span, "this is " + show_value(s, v))
        .label(let.names[0].span, "the pattern starts here");
    return false;
  }
  Value out = v;
  out.items.clear();
  out.fields.clear();
  for (const ast::Name& name : let.names) {
    auto at = field_at(v, name.symbol);
    if (!at) {
      s.diags.error(Code::E0502, "there is no field " + quoted(name.symbol))
          .primary(name.span, "")
          .label(v.span, "this is " + show_value(s, v));
      return false;
    }
    out.items.push_back(v.items[*at]);
  }
  v = std::move(out);
  return true;
}

// `let (W, m)[s in 1..S] = step(…)`: the right side is elaborated once, each name takes its item.
ClauseOut tuple_clause(Sema& s, Env& env, const Definition& d, ast::StmtId stmt,
                       const ast::Let& let, TreeId value, Gated g, ClauseOut left) {
  if (let.record && !pick_fields(s, let, g.body)) return left;
  bool fits = g.body.kind == Value::Kind::Tuple && g.body.items.size() == let.names.size();
  if (!fits || g.otherwise) {
    auto& e = s.diags.error(
        Code::E0502, g.otherwise ? "a clause that defines several names cannot have `else`"
                                 : fmt::format("the pattern has {} names", let.names.size()));
    e.primary(s[value].span, g.body.kind == Value::Kind::Tuple
                                 ? fmt::format("this has {} values", g.body.items.size())
                                 : "this is " + show_value(s, g.body));
    e.label(let.names[0].span, "the pattern starts here");
    return left;
  }
  std::vector<ClauseOut> outs;
  for (size_t i = 0; i < let.names.size(); ++i) {
    auto found = d.scope->values.find(let.names[i].symbol);  // none for `_`
    const Definition& own = found == d.scope->values.end() ? d : *found->second;
    ClauseOut& out = outs.emplace_back(left);
    close_value(s, env, own, value, type_of(s.ast, own), {g.body.items[i], g.gate, {}}, out);
  }
  std::vector<ClauseOut*> all;
  for (ClauseOut& out : outs) {
    all.push_back(&out);
    for (ClauseOut& leaf : out.leaves) all.push_back(&leaf);
  }
  add_siblings(all);
  d.scope->tuples[stmt] = outs;
  return outs[place_in(let, d)];
}

// Which of a clause's own indices run the steps of its recurrence: those that it shifts, as in
// `w[s - 1]`. Functions that it calls run at these steps too.
void note_steps(const Sema& s, const Definition& d, ast::StmtId stmt, const Frame& frame,
                Site& site) {
  if (!d.recurrent) return;
  std::set<Symbol> shifted = stepped_names(s.ast, value_of(s, stmt));
  shifted.merge(stepped_names(s.ast, until_of(s, stmt)));
  for (const Index* index : frame.indices) {
    if (shifted.contains(index->name)) site.steps |= uint64_t{1} << index->slot;
  }
}

}  // namespace

ClauseOut elaborate_clause(Sema& s, Definition& d, ast::StmtId stmt) {
  if (d.whole) return leaf_clause(s, d, stmt);
  if (auto it = d.scope->tuples.find(stmt); it != d.scope->tuples.end()) {
    return it->second[place_in(std::get<ast::Let>(s.ast[stmt].node), d)];
  }
  ClauseOut out;
  out.span = s.ast[stmt].span;
  out.bad = true;
  if (const auto* l = std::get_if<ast::Let>(&s.ast[stmt].node); l && l->tuple) {
    // Every name of the pattern counts as bad until this succeeds, so that errors come once.
    d.scope->tuples[stmt] = std::vector<ClauseOut>(l->names.size(), out);
  }
  Env env = d.scope->env;
  TreeId value = value_of(s, stmt);
  const LeftSide& left = left_side(s, d, stmt);
  Site& site = s.definitions.sites.emplace_back();
  site.outer = env.site;
  site.definition = &d;
  site.name = env.site ? env.site->name + "_" + text(d.name.symbol) : text(d.name.symbol);
  if (env.site) site.slots = env.site->slots, site.steps = env.site->steps;
  if (carries_binders(s, d)) {
    site.slots.insert(site.slots.end(), env.binders.begin(), env.binders.end());
    env.binders.clear();
  }
  site.span = d.name.span;
  site.statement = out.span;
  if (const auto* l = std::get_if<ast::Let>(&s.ast[stmt].node)) {
    site.span = l->names[0].span;
    for (const ast::Slot& slot : l->slots) site.span = join(site.span, slot.span);
  }
  TreeId bare = value;
  if (const auto* w = std::get_if<ast::Where>(&s[bare].node)) bare = w->body;
  site.value = s[bare].span;
  site.tree = bare;
  out.site = &site;
  bool inside_reduction = env.depth != site.slots.size();
  env.site = &site;

  Frame frame;
  frame.up = env.frame;
  if (!bind_left(s, env, frame, left, out)) return out;
  if (!inside_reduction) {
    for (size_t i = 0; i < out.box.size(); ++i) {
      site.slots.push_back({out.coords[i].name, out.box[i], d.extents[i]});
    }
    note_steps(s, d, stmt, frame, site);
  }
  env.frame = &frame;
  env.depth += static_cast<uint32_t>(out.box.size());

  note_end(s, env, d, stmt, left, out);
  TreeId until = until_of(s, stmt);
  const auto* block = until ? std::get_if<ast::Block>(&s[value].node) : nullptr;
  Env after = env;
  Gated g;
  if (block) {
    g.body = elaborate_block(s, env, *block, s[value].span, until, &after);
  } else {
    g = split_gate(s, env, value);
  }
  if (g.body.poison()) return out;
  warn_axes(s, site, out.left);
  if (until && !elaborate_until(s, after, d, until, out)) return out;
  if (const auto* l = std::get_if<ast::Let>(&s.ast[stmt].node); l && l->tuple) {
    return tuple_clause(s, env, d, stmt, *l, value, std::move(g), std::move(out));
  }
  close_value(s, env, d, value, type_of(s.ast, d), std::move(g), out);
  return out;
}

}  // namespace ein::sema
