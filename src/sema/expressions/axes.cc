// Indices at the wrong coordinate. When extents are equal, a check of shapes misses such a mistake,
// but the names show it: these warnings compare the operands of one statement with each other, so
// there is none for a statement with a single operand.
//
//   let y[b, f] = x[b, f] + bias[f];         bias is over `b`, and `b` is in scope       (W0304)
//   sum[in](x[b, in - 1] * W[out, in])       only one of the two is shifted along `in`   (W0305)
//   let gap[class, b] = p[b, class] - t[b, class];   all operands have the other order   (W0301)
#include <fmt/format.h>

#include <algorithm>

#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/call_state.h"
#include "sema/state/definition_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

// `i`, `i + 1`, `1 + i`, `i - 1`: the index and what is added to it.
Index* moving_index(Sema& s, const Env& env, TreeId e, int64_t& offset) {
  if (Symbol name = path_name(s.ast, e)) return find_slot_index(env, name);
  const auto* sum = std::get_if<ast::Binary>(&s[e].node);
  if (!sum || (sum->op != ast::BinaryOp::Add && sum->op != ast::BinaryOp::Sub)) return nullptr;
  TreeId index = sum->lhs, constant = sum->rhs;
  if (sum->op == ast::BinaryOp::Add && path_name(s.ast, constant)) std::swap(index, constant);
  const auto* lit = std::get_if<ast::IntLit>(&s[constant].node);
  Symbol name = path_name(s.ast, index);
  if (!lit || !name) return nullptr;
  offset = static_cast<int64_t>(lit->value);
  if (sum->op == ast::BinaryOp::Sub) offset = -offset;
  return find_slot_index(env, name);
}

// Whether the operand belongs to the recurrence being defined: that is read at shifted addresses.
bool is_self(const Sema& s, const Env& env, Symbol base, const Value& value) {
  FamilyId family = whole_family(s.m, value);
  auto owner = family ? s.definitions.owner.find(family) : s.definitions.owner.end();
  for (const Site* site = env.site; site; site = site->outer) {
    const Definition* d = site->definition;
    if (!d) continue;
    if (d->name.symbol == base) return true;
    if (owner == s.definitions.owner.end()) continue;
    if (owner->second == d || (d->recurrent && owner->second->group == d->group)) return true;
  }
  return false;
}

bool warned(Sema& s, Span at) { return !s.warned.insert({at.begin, at.end}).second; }

void warn_other(Sema& s, const std::vector<AxisRead>& reads, const AxisRead& r) {
  for (size_t p = 0; p < r.slots.size(); ++p) {
    const AxisSlot& slot = r.slots[p];
    Index* v = slot.index;
    if (!v || slot.offset != 0 || !slot.own || slot.own == v) continue;
    const AxisRead* at_home = nullptr;
    // The operand itself has a coordinate with the index's name: W0301 is about that, unless the
    // index is there as well.
    if (std::find(r.names.begin(), r.names.end(), v->name) != r.names.end()) {
      bool twice = std::any_of(r.slots.begin(), r.slots.end(), [&](const AxisSlot& other) {
        return other.index == v && other.offset == 0 && other.coordinate == v->name;
      });
      if (!twice) continue;
      at_home = &r;
    }
    bool under_own_name = false, elsewhere = false;
    for (const AxisRead& o : reads) {
      if (o.function != r.function) continue;
      for (const AxisSlot& other : o.slots) {
        if (other.index == v && other.coordinate == v->name) at_home = &o;
        under_own_name |= o.base == r.base && other.coordinate == slot.coordinate && other.index &&
                          other.index->name == slot.coordinate;
        // The index of that name has another extent, so it cannot belong here.
        elsewhere |= other.index == slot.own && other.offset == 0 &&
                     equal(s, other.extent, slot.extent) == Truth::No;
      }
    }
    if (!at_home || under_own_name || elsewhere || warned(s, slot.span)) continue;
    const std::string& name = text(r.base);
    s.diags
        .warning(
            Code::W0304,
            fmt::format("index {} is used for coordinate {} of `{}`, although {} is in "
                        "scope",
                        quoted(v->name), quoted(slot.coordinate), name, quoted(slot.coordinate)))
        .primary(slot.span, "this coordinate is " + quoted(slot.coordinate))
        .label(at_home->span,
               fmt::format("here {} is used for its own coordinate", quoted(v->name)))
        .help(fmt::format("write {} here; if this is intended, put `#[allow(W0304)]` before "
                          "the statement",
                          quoted(slot.coordinate)));
  }
}

void warn_shifted(Sema& s, const std::vector<AxisRead>& reads, const AxisRead& r) {
  for (const AxisSlot& slot : r.slots) {
    Index* v = slot.index;
    if (!v || slot.offset == 0 || !v->inferred) continue;
    const AxisRead* bare = nullptr;
    bool meant = false;  // intended: one operand at several addresses, or several shifted alike
    for (const AxisRead& o : reads) {
      if (o.function != r.function) continue;
      for (const AxisSlot& other : o.slots) {
        if (other.index != v) continue;
        bool alike = other.offset == slot.offset;
        meant |= o.base == r.base ? !alike : alike;
        if (o.base != r.base && other.offset == 0 && !bare) bare = &o;
      }
    }
    if (!bare || meant || warned(s, slot.span)) continue;
    s.diags
        .warning(Code::W0305, fmt::format("index {} is shifted in `{}` but not in `{}`",
                                          quoted(v->name), text(r.base), text(bare->base)))
        .primary(slot.span, fmt::format("{} by {}", slot.offset > 0 ? "ahead" : "behind",
                                        std::abs(slot.offset)))
        .label(bare->span, "not shifted here")
        .help(
            fmt::format("write {0} alone; if the shift is intended, write the range of {0}, as in "
                        "`{1} in 0..n`, or put `#[allow(W0305)]` before the statement",
                        quoted(v->name), text(v->name)));
  }
}

// Which of two coordinates comes first in an operand that has both under their own names: −1 for
// `a`, 1 for `b`; 0 when it does not have both.
int order_in(const AxisRead& r, Symbol a, Symbol b) {
  size_t none = r.slots.size(), at_a = none, at_b = none;
  for (size_t p = 0; p < r.slots.size(); ++p) {
    const AxisSlot& slot = r.slots[p];
    if (!slot.index || slot.offset != 0 || slot.coordinate != slot.index->name) continue;
    if (slot.coordinate == a) at_a = p;
    if (slot.coordinate == b) at_b = p;
  }
  if (at_a == none || at_b == none) return 0;
  return at_a < at_b ? -1 : 1;
}

bool has_own(const AxisRead& r, Symbol name) {
  return std::any_of(r.slots.begin(), r.slots.end(), [&](const AxisSlot& slot) {
    return slot.coordinate == name && slot.index && slot.index->name == name;
  });
}

// A single operand in the other order is a transpose on purpose. Several in that order suggest a
// mistake on the left.
void warn_turned(Sema& s, const Site& site, const std::vector<Left>& left) {
  ast::StmtId here = s.calls.stack.empty() ? ast::StmtId{} : s.calls.stack.back();
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = i + 1; j < left.size(); ++j) {
      if (!left[i].index || !left[j].index) continue;
      Symbol a = left[i].index->name, b = left[j].index->name;
      const AxisRead *first = nullptr, *second = nullptr;
      bool agrees = false;
      for (const AxisRead& r : site.axes) {
        int order = r.function == here ? order_in(r, a, b) : 0;
        agrees |= order < 0 || (order > 0 && r.self);
        if (order > 0 && !first) first = &r;
      }
      for (const AxisRead& r : site.axes) {
        bool beside = first && r.function == here && r.base != first->base && !r.self;
        if (beside && !second && (has_own(r, a) || has_own(r, b))) second = &r;
      }
      if (agrees || !second || warned(s, left[i].span)) continue;
      s.diags
          .warning(Code::W0301, fmt::format("{} comes before {} on the left, but after it in {}",
                                            quoted(a), quoted(b), quoted(first->base)))
          .primary(left[i].span,
                   fmt::format("the result has {} first, then {}", quoted(a), quoted(b)))
          .label(first->span, fmt::format("here {} comes first", quoted(b)))
          .label(second->span, "together with this")
          .help(
              fmt::format("write them in the operand's order; if a transposed result is intended, "
                          "put `#[allow(W0301)]` before the statement"));
      return;
    }
  }
}

}  // namespace

void note_axes(Sema& s, Env& env, TreeId base, const Value& value, const std::vector<TreeId>& at,
               Span span) {
  Symbol name = path_name(s.ast, base);
  if (!env.site || !name || at.size() > value.coords.size()) return;
  AxisRead read;
  read.base = name;
  read.span = span;
  read.function = s.calls.stack.empty() ? ast::StmtId{} : s.calls.stack.back();
  read.self = is_self(s, env, name, value);
  for (const core::Coord& c : value.coords) read.names.push_back(c.name);
  for (size_t p = 0; p < at.size(); ++p) {
    AxisSlot slot;
    slot.coordinate = value.coords[p].name;
    slot.extent = value.coords[p].extent;
    if (at[p]) {
      slot.span = s[at[p]].span;
      slot.index = moving_index(s, env, at[p], slot.offset);
      if (slot.coordinate) slot.own = find_slot_index(env, slot.coordinate);
    }
    read.slots.push_back(slot);
  }
  env.site->axes.push_back(std::move(read));
}

void warn_axes(Sema& s, const Site& site, const std::vector<Left>& left) {
  warn_turned(s, site, left);
  for (const AxisRead& r : site.axes) {
    if (r.self) continue;
    warn_other(s, site.axes, r);
    warn_shifted(s, site.axes, r);
  }
}

}  // namespace ein::sema
