#include "core/normal.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "core/build.h"
#include "core/rewrite.h"
#include "core/solve_gates.h"
#include "core/total.h"

namespace ein::core {

std::vector<Symbol> coordinate_names(const Family& family) {
  std::vector<Symbol> names;
  for (const Coord& c : family.coords) names.push_back(c.name);
  return names;
}

namespace {

// The extent of a value that `e` reads at exactly this slot. An index whose range is data may be
// anything, but where it is a subscript by itself it is an address of that value, or the read
// fails. Reads under a condition do not count: they may not happen.
ExprId bound_by_reads(const Module& m, ExprId e, uint32_t slot) {
  ExprId out;
  const std::function<void(ExprId)> visit = [&](ExprId x) {
    if (out || !mentions_slot(m, x, slot)) return;
    const Node& node = m[x].node;
    if (const auto* a = std::get_if<Access>(&node)) {
      for (size_t k = 0; k < a->at.size() && !out; ++k) {
        if (slot_of(m, a->at[k]) == slot) out = m[a->family].coords[k].extent;
      }
    } else if (const auto* op = std::get_if<Apply>(&node);
               op && (op->op == Op::Select || op->op == Op::And || op->op == Op::Or)) {
      return visit(op->args[0]);
    } else if (const auto* r = std::get_if<Reduce>(&node); r && r->gate) {
      return;
    }
    for_each_child(m, x, visit);
  };
  visit(e);
  return out;
}

// The offset of a slot: its value is a coordinate that starts at 0, plus this. Invalid when no
// closed lower bound is known.
ExprId start_of(Module& m, const Range& range, const Facts& facts) {
  if (proves_nonnegative(m, affine_form(m, range.lo), facts)) return int_lit(m, 0);
  return closed_lower(m, range.lo, facts);
}

// Whether `e` can be evaluated wherever the slots are in these ranges and `gate` holds.
bool is_total(Module& m, ExprId e, ExprId gate, const std::vector<Range>& ranges) {
  Facts facts;
  facts.entry = entry_facts(m);
  facts.slots = ranges;
  if (gate && !total(m, gate, facts, Overflow::Wraps)) return false;
  assume(m, gate, facts);
  return total(m, e, facts, Overflow::Wraps);
}

// The reduction, whole body of a clause, under one more condition. Where that fails, the ranges
// must not be evaluated either. Routes become gates again where the condition mentions the
// coordinate they lead to: one pass knows that coordinate only once it has the address.
Reduce under_condition(Module& m, Reduce r, ExprId cond) {
  const std::vector<ExprId> same(r.first);
  // Binders inside the condition are numbered from the slots in scope.
  auto at_depth = [&](size_t k) {
    return substitute(m, cond, same, r.first + static_cast<uint32_t>(k));
  };
  for (size_t k = 0; k < r.over.size(); ++k) {
    for (ExprId* end : {&r.over[k].lo, &r.over[k].hi}) {
      if (may_fail(m, *end)) *end = apply(m, Op::Select, {at_depth(k), *end, int_lit(m, 0)});
    }
  }
  uint64_t routed = 0;
  for (const Route& route : r.routes) routed |= uint64_t{1} << route.slot;
  r.gate = both(m, at_depth(r.over.size()), r.gate);
  if ((m[cond].free & routed) != 0) {
    for (const Route& route : r.routes) {
      r.gate = both(m, r.gate, apply(m, Op::Eq, {route.to, slot(m, route.slot)}));
    }
    r.routes.clear();
  }
  return r;
}

}  // namespace

ExprId hoist(Module& m, const std::string& base, ExprId e, ExprId gate, const Facts& known,
             const std::vector<Symbol>& names, Span span) {
  Facts facts = known;
  uint64_t free = m[e].free | (gate ? m[gate].free : 0);
  // A range that mentions another slot makes that slot a coordinate too (its bound is checked
  // there).
  for (int n = kMaxSlots - 1; n >= 0; --n) {
    if (((free >> n) & 1) == 0) continue;
    Range& r = facts.slots.at(static_cast<size_t>(n));
    if (!closed_upper(m, r.hi, facts) || !start_of(m, r, facts)) {
      ExprId extent = bound_by_reads(m, e, static_cast<uint32_t>(n));
      if (!extent) return {};
      // Computed for all addresses if that cannot fail: then it does not matter which are read.
      std::vector<Range> ranges = facts.slots;
      ranges[static_cast<size_t>(n)] = {int_lit(m, 0), extent};
      if (is_total(m, e, gate, ranges)) r = {int_lit(m, 0), extent};
    }
    free |= m[r.lo].free | m[r.hi].free;
  }
  Family f;
  f.name = fresh_name(m, base);
  f.dtype = m[e].type;
  f.generated = true;
  f.span = span;
  std::vector<ExprId> with(facts.slots.size()), at, starts;
  std::vector<Range> box;
  for (uint32_t n = 0; n < facts.slots.size(); ++n) {
    if (((free >> n) & 1) == 0) continue;
    ExprId hi = closed_upper(m, facts.slots[n].hi, facts);
    ExprId start = start_of(m, facts.slots[n], facts);
    if (!hi || !start) {
      ExprId extent = bound_by_reads(m, e, n);
      if (!extent) return {};
      if (!hi) hi = extent;
      if (!start) start = int_lit(m, 0);
    }
    with[n] = add(m, slot(m, static_cast<uint32_t>(at.size())), start);
    at.push_back(sub(m, slot(m, n), start));
    starts.push_back(start);
    hi = sub(m, hi, start);
    if (const_int(m, hi).value_or(0) < 0) hi = int_lit(m, 0);  // the range runs backwards: no cells
    f.coords.push_back({n < names.size() ? names[n] : Symbol{}, hi});
    box.push_back({int_lit(m, 0), hi});
  }
  auto rank = static_cast<uint32_t>(at.size());
  auto put = [&](ExprId x) { return substitute(m, x, with, rank); };
  std::vector<Range> limits;  // the slots' own ranges, in the new numbering
  std::vector<ExprId> gates;
  for (uint32_t n = 0; n < facts.slots.size(); ++n) {
    if (((free >> n) & 1) == 0) continue;
    ExprId start = starts[limits.size()];
    limits.push_back(
        {sub(m, put(facts.slots[n].lo), start), sub(m, put(facts.slots[n].hi), start)});
  }
  // A constant lower bound splits off a zero clause; a bound that depends on other slots is a gate.
  ExprId zero = number(m, 0, f.dtype == DType::Bool ? DType::I32 : f.dtype);
  if (f.dtype == DType::Bool) zero = bool_lit(m, false);
  for (uint32_t k = 0; k < rank; ++k) {
    ExprId lo = limits[k].lo;
    if (m[lo].level() >= 0 || reads_values(m, lo)) {
      gates.push_back(apply(m, Op::Ge, {slot(m, k), lo}));
    } else if (const_int(m, lo) != 0) {
      std::vector<Range> below = box;
      // The range may be empty, so the zero clause ends no later than the coordinate.
      ExprId hi = box[k].hi;
      below[k].hi = proves_le(m, lo, hi, {}) ? lo : apply(m, Op::Min, {lo, hi});
      f.clauses.push_back({below, zero, span});
      box[k].lo = lo;
    }
    if (limits[k].hi != box[k].hi) gates.push_back(apply(m, Op::Lt, {slot(m, k), limits[k].hi}));
  }
  if (gate) gates.push_back(put(gate));
  ExprId body = put(e);
  bool routed = false;
  if (ExprId all = all_of(m, gates)) {
    // A reduction stays the whole body of its clause: the condition becomes its gate. Cells where
    // it fails hold the identity instead of 0, but they are never read.
    if (const auto* r = get_if<Reduce>(m, body)) {
      routed = !r->routes.empty();
      body = reduce(m, under_condition(m, Reduce(*r), all), m[e].span);
    } else {
      body = apply(m, Op::Select, {all, body, zero});
    }
  }
  f.clauses.push_back({box, body, span});
  FamilyId id = m.families.add(std::move(f));
  if (routed) solve_gates(m, id);
  return access(m, id, std::move(at), m[e].span);
}

void note_ranges(const Module& m, ExprId e, const std::vector<Range>& slots,
                 std::vector<ExprId>& out) {
  if (!e) return;
  uint64_t free = m[e].free;
  for (int32_t n = m[e].level(); n >= 0; --n) {
    if (!(free >> n & 1)) continue;
    const auto s = static_cast<size_t>(n);
    const Range range = s < slots.size() ? slots[s] : Range{};
    for (ExprId end : {range.lo, range.hi}) {
      out.push_back(end);
      if (end) free |= m[end].free;  // slots further out
    }
  }
}

bool same_ranges(const Module& m, ExprId e, const std::vector<Range>& a,
                 const std::vector<Range>& b) {
  std::vector<ExprId> in_a, in_b;
  note_ranges(m, e, a, in_a);
  note_ranges(m, e, b, in_b);
  return in_a == in_b;
}

namespace {

// A routed sum inside a larger expression, and under which condition it is evaluated there
// (invalid: always).
struct Routed {
  ExprId node, cond;
  Facts facts;
};

// One that can be moved out: its condition and the ranges around it are the same everywhere it
// stands, and the condition does not mention the routed coordinates, so that one pass can still find
// the cells.
std::optional<Routed> movable(Module& m, const Clause& clause) {
  auto wanted = [](const Node& n) {
    const auto* r = std::get_if<Reduce>(&n);
    return r && !r->routes.empty();
  };
  std::vector<Routed> all;
  std::set<ExprId> stay;
  for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
    if (e == clause.body) return;
    ExprId cond = all_of(m, facts.holds);
    uint64_t routed = 0;
    for (const Route& r : get_if<Reduce>(m, e)->routes) routed |= uint64_t{1} << r.slot;
    bool other = std::any_of(all.begin(), all.end(), [&](const Routed& x) {
      return x.node == e && (x.cond != cond || !same_ranges(m, e, x.facts.slots, facts.slots) ||
                             !same_ranges(m, cond, x.facts.slots, facts.slots));
    });
    if (other || (cond && (m[cond].free & routed) != 0)) stay.insert(e);
    all.push_back({e, cond, facts});
  });
  for (Routed& r : all) {
    if (!stay.contains(r.node)) return std::move(r);
  }
  return std::nullopt;
}

// Puts every end of a range that contains a reduction into a family of its own. One expression may
// stand in several places where other conditions hold, or where its slots have other ranges: each
// gets its own families.
class RangeEnds {
 public:
  RangeEnds(Module& m, const Family& family)
      : m_(m), base_(text(family.name) + "_end"), names_(coordinate_names(family)) {}

  ExprId visit(ExprId e, const Facts& facts) {
    if (!reducing_range(e)) return e;
    ExprId cond = all_of(m_, facts.holds);
    Key key{e, cond, facts.slots.size(), {}};
    note_ranges(m_, e, facts.slots, std::get<3>(key));
    note_ranges(m_, cond, facts.slots, std::get<3>(key));
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    const Node node = m_[e].node;
    ExprId out;
    if (const auto* r = std::get_if<Reduce>(&node)) {
      out = inside(*r, m_[e].span, facts);
    } else if (const auto* a = std::get_if<Apply>(&node);
               a && (a->op == Op::Select || a->op == Op::And || a->op == Op::Or)) {
      ExprId no = negate(m_, a->args[0]);
      std::vector<ExprId> args{visit(a->args[0], facts)};
      args.push_back(visit(a->args[1], under(facts, a->op == Op::Or ? no : a->args[0])));
      if (a->op == Op::Select) args.push_back(visit(a->args[2], under(facts, no)));
      out = apply(m_, a->op, std::move(args), m_[e].span);
    } else {
      out = map_children(m_, e, [&](ExprId child) { return visit(child, facts); });
    }
    memo_[std::move(key)] = out;
    return out;
  }

 private:
  ExprId inside(Reduce r, Span span, Facts facts) {
    facts.slots.resize(r.first);
    for (Range& range : r.over) {
      for (ExprId* end : {&range.lo, &range.hi}) {
        *end = visit(*end, facts);
        if (!has_reduce(m_, *end)) continue;
        ExprId read = hoist(m_, base_, *end, all_of(m_, facts.holds), facts, names_, m_[*end].span);
        if (read) *end = read;
      }
      facts.slots.push_back(range);
    }
    if (r.gate) {
      r.gate = visit(r.gate, facts);
      facts = under(facts, r.gate);
    }
    for (Route& route : r.routes) route.to = visit(route.to, facts);
    r.body = visit(r.body, facts);
    return reduce(m_, std::move(r), span);
  }

  Facts under(const Facts& facts, ExprId cond) {
    Facts out = facts;
    assume(m_, cond, out);
    return out;
  }

  // Whether an end of a range in it contains a reduction.
  bool reducing_range(ExprId e) {
    auto [it, fresh] = reducing_.try_emplace(e, false);
    if (!fresh) return it->second;
    bool found = false;
    if (const auto* r = get_if<Reduce>(m_, e)) {
      for (const Range& range : r->over) {
        found = found || has_reduce(m_, range.lo) || has_reduce(m_, range.hi);
      }
    }
    for_each_child(m_, e, [&](ExprId child) { found = reducing_range(child) || found; });
    return reducing_[e] = found;
  }

  Module& m_;
  std::string base_;
  std::vector<Symbol> names_;
  using Key = std::tuple<ExprId, ExprId, size_t, std::vector<ExprId>>;  // with ranges of slots
  std::map<Key, ExprId> memo_;
  std::unordered_map<ExprId, bool> reducing_;
};

}  // namespace

void isolate_range_ends(Module& m) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for (size_t c = 0; c < m[FamilyId(i)].clauses.size(); ++c) {
      const Family& family = m[FamilyId(i)];  // not a copy, as below
      const Clause clause = family.clauses[c];
      bool any = false;
      for_each_node(m, clause.body, [&](ExprId e) {
        const auto* r = get_if<Reduce>(m, e);
        for (size_t k = 0; r && !any && k < r->over.size(); ++k)
          any = has_reduce(m, r->over[k].lo) || has_reduce(m, r->over[k].hi);
      });
      if (!any) continue;
      ExprId body = RangeEnds(m, family).visit(clause.body, clause_facts(m, clause));
      m.families[FamilyId(i)].clauses[c].body = body;
    }
  }
}

void isolate_routes(Module& m) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for (size_t c = 0; c < m[FamilyId(i)].clauses.size(); ++c) {
      const Family& family = m[FamilyId(i)];  // not a copy: it may have thousands of clauses
      Clause clause = family.clauses[c];
      while (auto found = movable(m, clause)) {
        ExprId read = hoist(m, text(family.name) + "_routed", found->node, found->cond,
                            found->facts, coordinate_names(family), m[found->node].span);
        EIN_CHECK(read.valid(), "a routed sum whose coordinates have no closed bound");
        clause.body =
            rewrite(m, clause.body, [&](ExprId x) { return x == found->node ? read : x; });
        m.families[FamilyId(i)].clauses[c].body = clause.body;
      }
    }
  }
}

}  // namespace ein::core
