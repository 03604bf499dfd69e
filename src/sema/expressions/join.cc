// Strings over coordinates: `join[i]("{x[i]} ")`, and strings that a condition chooses.
//
// A join is a part of a string that is written once for each address of its indices where its gate
// holds. As soon as it is elaborated, the values in it get these indices as coordinates, in front
// of their own. From then on they are cells of ordinary families, and printing the string walks
// along the coordinates. Ranges that are not written are solved when the outermost join is
// complete, for all values in it together, because one value may determine the range that another
// one needs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sema/expressions/expressions.h"
#include "sema/ranges/ranges.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

using Join = TextPart::Join;

struct Item {
  size_t value = 0;  // in `items` of the text
  std::vector<size_t>
      opens;        // parts: the joins around it, outermost first; a gate's own is not one
  size_t rank = 0;  // how many indices those have, and a gate's own join
  bool gate = false;
};

std::vector<Item> items_of(const Value& text) {
  std::vector<Item> out;
  std::vector<size_t> open;
  size_t rank = 0;
  for (size_t k = 0; k < text.parts.size(); ++k) {
    const TextPart& p = text.parts[k];
    if (p.join == Join::Close) {
      rank -= text.parts[open.back()].rank;
      open.pop_back();
      continue;
    }
    rank += p.rank;
    if (p.item) out.push_back({*p.item, open, rank, p.join == Join::Open});
    if (p.join == Join::Open) open.push_back(k);
  }
  return out;
}

// The condition under which an item is written: the gates around it. Their coordinates are the
// first of the item's.
CoreId gates_around(Sema& s, const Value& text, const Item& item) {
  CoreId all;
  auto depth = static_cast<uint32_t>(text.items[item.value].coords.size());
  for (size_t k : item.opens) {
    if (text.parts[k].sealed) continue;
    const Value& gate = text.items[*text.parts[k].item];
    std::vector<CoreId> same(gate.coords.size());
    all = core::both(s.m, all, core::substitute(s.m, gate.body, same, depth));
  }
  const auto* known = all ? core::get_if<core::BoolLit>(s.m, all) : nullptr;
  return known && known->value ? CoreId{} : all;
}

CoreId gated(Sema& s, const Value& text, const Item& item) {
  const Value& v = text.items[item.value];
  CoreId cond = gates_around(s, text, item);
  if (!cond) return v.body;
  return core::apply(s.m, core::Op::Select, {cond, v.body, zero(s.m, v.type)});
}

// The ranges of an item's coordinates; those of indices may be unknown.
std::vector<core::Range> box_of(Sema& s, const Value& text, const Item& item, size_t own) {
  std::vector<core::Range> out;
  std::vector<size_t> opens = item.opens;
  if (item.gate) opens.push_back(own);
  const Value& v = text.items[item.value];
  CoreId none = core::int_lit(s.m, 0);
  for (size_t k : opens) {
    for (size_t i = 0; i < text.parts[k].rank; ++i) {
      const TextPart& p = text.parts[k];
      out.push_back(p.sealed ? core::Range{none, v.coords[out.size()].extent}
                             : p.binders[i]->range);
    }
  }
  while (out.size() < v.coords.size()) out.push_back({none, v.coords[out.size()].extent});
  return out;
}

size_t open_with(const Value& text, size_t item) {
  for (size_t k = 0; k < text.parts.size(); ++k) {
    if (text.parts[k].join == Join::Open && text.parts[k].item == item) return k;
  }
  return text.parts.size();
}

bool solve_ranges(Sema& s, Env& env, const Value& text, const std::vector<Item>& items) {
  Site plain;
  ClauseOut out;
  out.site = env.site ? env.site : &plain;
  out.span = text.span;
  out.body = data(env, DType::Bool, core::bool_lit(s.m, true), text.span);
  for (const TextPart& p : text.parts) {
    if (p.join != Join::Open || p.sealed) continue;
    for (Index* index : p.binders) out.left.push_back({index, index->span});
  }
  for (const Item& item : items) {
    core::Clause clause;
    clause.box = box_of(s, text, item, open_with(text, item.value));
    clause.body = gated(s, text, item);
    clause.span = text.items[item.value].span;
    out.siblings.push_back(std::move(clause));
  }
  infer_ranges(s, out, {});
  return !out.bad;
}

// The item as a read of a family whose coordinates start at 0.
Value item_as_family(Sema& s, Env& env, const Value& text, const Item& item) {
  std::vector<core::Range> box = box_of(s, text, item, open_with(text, item.value));
  Value plain = text.items[item.value], out = plain;
  out.body = gated(s, text, item);
  auto rank = static_cast<uint32_t>(box.size());
  std::vector<CoreId> with(rank);
  bool moves = false;
  FamilyId whole = whole_family(s.m, plain);
  for (uint32_t k = 0; k < rank; ++k) {
    core::Range r = resolve(s, box[k]);
    moves |= core::const_int(s.m, r.lo) != 0;
    with[k] = core::add(s.m, core::slot(s.m, k), r.lo);
    out.coords[k].extent = core::sub(s.m, r.hi, r.lo);
    if (whole && (s.m[whole].coords.size() != rank ||
                  equal(s, r.hi, resolve(s, s.m[whole].coords[k].extent)) != Truth::Yes)) {
      whole = {};
    }
  }
  // A value that is a family already is read as it is, whether gated or not.
  if (whole && !moves) {
    plain.coords = out.coords;
    return plain;
  }
  if (moves) out.body = core::substitute(s.m, out.body, with, rank);
  return bound_to_family(s, env, out, item.gate ? "joined" : "shown");
}

// With no index around: all ranges are solved and every value becomes a family.
Value seal(Sema& s, Env& env, Value text) {
  std::vector<Item> items = items_of(text);
  std::erase_if(items, [](const Item& i) { return i.rank == 0 && i.opens.empty() && !i.gate; });
  if (!solve_ranges(s, env, text, items)) return {};
  Value out = text;
  for (const Item& item : items) {
    out.items[item.value] = item_as_family(s, env, text, item);
    if (out.items[item.value].poison()) return {};
  }
  for (TextPart& p : out.parts) p.sealed = p.join == Join::Open;
  return out;
}

TextPart open_part(size_t gate, const std::vector<Index*>& binders) {
  TextPart p;
  p.join = Join::Open;
  p.item = gate;
  p.rank = binders.size();
  p.binders = binders;
  return p;
}

TextPart close_part() {
  TextPart p;
  p.join = Join::Close;
  return p;
}

bool check_binders(Sema& s, const Env& outer, const std::vector<Index*>& binders,
                   const Value& body) {
  for (const Index* index : binders) {
    if (!index->used) {
      s.diags.error(Code::E0304, quoted(index->name) + " does not occur in the string")
          .primary(index->span, "joined along this")
          .label(body.span, "no index of that name here")
          .help(fmt::format("index the value: `{{x[{}]}}`", text(index->name)));
      return false;
    }
    if (index->inferred) continue;
    uint64_t free = s.m[index->range.lo].free | s.m[index->range.hi].free;
    if (free != 0) {
      s.diags
          .error(Code::E0309, fmt::format("the range of {} in `join` depends on another index",
                                          quoted(index->name)))
          .primary(index->span, "")
          .help("give it a range of its own and restrict it with `where`");
      return false;
    }
  }
  return !too_many_indices(s, outer.depth + binders.size(), body.span);
}

// Values of a text with their types, at the depth of `env`.
bool settle_items(Sema& s, Env& env, Value& text) {
  for (Value& v : text.items) {
    v = moved(s.m, settle(s, env, std::move(v)), env.depth);
    if (v.poison() || reject_non_data(s, v)) return false;
  }
  return true;
}

}  // namespace

namespace {

// What a string may be and when; the conditions exclude each other.
std::optional<std::map<std::string, CoreId>> choices_of(Sema& s, const Env& env, const Value& v) {
  std::map<std::string, CoreId> out;
  if (auto text = constant_text(v)) {
    out[*text] = core::bool_lit(s.m, true);
    return out;
  }
  if (!v.choice) return std::nullopt;
  auto add = [&](const std::string& text, CoreId when) {
    auto [it, fresh] = out.try_emplace(text, when);
    if (!fresh) it->second = core::apply(s.m, core::Op::Or, {it->second, when});
  };
  CoreId gate, none = core::bool_lit(s.m, true);
  std::string text;
  for (const TextPart& p : v.parts) {
    if (p.join == Join::Open) {
      gate = moved(s.m, v.items[*p.item], env.depth).body;
      none = core::both(s.m, none, core::negate(s.m, gate));
      text.clear();
    } else if (p.join == Join::Close) {
      add(text, gate);
    } else {
      text += p.text;
    }
  }
  add("", none);
  return out;
}

}  // namespace

bool joins(const Value& text) {
  return std::any_of(text.parts.begin(), text.parts.end(),
                     [](const TextPart& p) { return p.join != Join::None; });
}

Value join_text(Sema& s, Env& outer, Env& env, const std::vector<Index*>& binders, const Gate& gate,
                Value body, Span span) {
  if (body.poison() || gate.poison) return {};
  if (body.kind != Value::Kind::Text) {
    auto& d = s.diags.error(Code::E0502, "`join` takes a string, not " + show_value(s, body));
    d.primary(body.span, "");
    if (body.one()) {
      std::string index = binders.empty() ? "i" : text(binders[0]->name);
      d.help(fmt::format("show the value in a string: `join[{0}](\"{{x[{0}]}} \")`", index));
    }
    return {};
  }
  if (gate.whole) {
    s.diags.error(Code::E0502, "the `where` of `join` takes a single condition, not one per cell")
        .primary(gate.whole->span, "this is " + show_value(s, *gate.whole));
    return {};
  }
  if (!check_binders(s, outer, binders, body) || !settle_items(s, env, body)) return {};
  Value out = plain_text(outer, "", span);
  Value holds = data(env, DType::Bool, gate.cond ? gate.cond : core::bool_lit(s.m, true), span);
  out.parts.push_back(open_part(0, binders));
  out.items.push_back(std::move(holds));
  add_text(s, body, {}, out);
  out.parts.push_back(close_part());
  // The binders' slots become the first coordinates of every value: they are numbered like those.
  std::vector<core::Coord> coords;
  for (const Index* index : binders) coords.push_back({index->name, index->range.hi});
  for (Value& v : out.items) {
    v.coords.insert(v.coords.begin(), coords.begin(), coords.end());
    v.depth = outer.depth;
  }
  return outer.depth == 0 ? seal(s, outer, std::move(out)) : out;
}

Value choose_text(Sema& s, Env& env, const Value& cond, const Value& yes, const Value& no,
                  Span span) {
  if (!cond.scalar()) {
    s.diags
        .error(Code::E0502, "choosing between strings takes a single condition, not one per cell")
        .primary(cond.span, "this is " + show_value(s, cond))
        .help("write the string for each cell: `join[i](…)`");
    return {};
  }
  if (const auto* known = core::get_if<core::BoolLit>(s.m, cond.body))
    return known->value ? yes : no;
  Value out = plain_text(env, "", span);
  Value chosen[] = {yes, no};
  for (bool is_no : {false, true}) {
    Value& text = chosen[is_no];
    if (!settle_items(s, env, text)) return {};
    if (constant_text(text) == "") continue;
    Value holds = cond;
    if (is_no) holds.body = core::negate(s.m, cond.body);
    out.parts.push_back(open_part(out.items.size(), {}));
    out.items.push_back(moved(s.m, holds, env.depth));
    add_text(s, text, {}, out);
    out.parts.push_back(close_part());
  }
  out.choice = constant_text(yes) && constant_text(no);
  return env.depth == 0 ? seal(s, env, std::move(out)) : out;
}

Value pick_text(Sema& s, Env& env, const Value& texts, const Value& which, Span span) {
  Value out = plain_text(env, "", span);
  out.choice = true;
  for (size_t k = 0; k < texts.items.size(); ++k) {
    Value text = texts.items[k];
    out.choice &= constant_text(text).has_value();
    if (!settle_items(s, env, text)) return {};
    Value number = untyped_int(env, core::int_lit(s.m, static_cast<int64_t>(k)), span);
    Value here = apply_binary(s, env, core::Op::Eq, which, std::move(number), span, {});
    if (here.poison()) return {};
    out.parts.push_back(open_part(out.items.size(), {}));
    out.items.push_back(moved(s.m, here, env.depth));
    add_text(s, text, {}, out);
    out.parts.push_back(close_part());
  }
  return env.depth == 0 ? seal(s, env, std::move(out)) : out;
}

std::optional<Value> same_text(Sema& s, Env& env, const Value& a, const Value& b, Span span) {
  auto x = choices_of(s, env, a), y = choices_of(s, env, b);
  if (!x || !y) return std::nullopt;
  CoreId any = core::bool_lit(s.m, false);
  for (const auto& [left, when] : *x) {
    for (const auto& [right, and_when] : *y) {
      if (left != right) continue;
      any =
          core::apply(s.m, core::Op::Or, {any, core::apply(s.m, core::Op::And, {when, and_when})});
    }
  }
  return data(env, DType::Bool, any, span);
}

}  // namespace ein::sema
