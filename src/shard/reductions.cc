#include "shard/reductions.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"

namespace ein::shard {
namespace {

using namespace core;

// Coordinates that a reduction reads at exactly this slot: how they are split, and their extent.
struct Aligned {
  Axes along;
  ExprId extent;
  size_t reads;
};
std::vector<Aligned> aligned_at(const Module& m, ExprId e, uint32_t slot, const Layout& layout) {
  std::vector<Aligned> out;
  for_each_node(m, e, [&](ExprId x) {
    const auto* a = get_if<Access>(m, x);
    for (size_t k = 0; a && k < a->at.size(); ++k) {
      Axes along = layout.axes[a->family.v][k];
      if (!along || slot_of(m, a->at[k]) != slot) continue;
      ExprId extent = m[a->family].coords[k].extent;
      auto same = [&](const Aligned& other) {
        return other.along == along && other.extent == extent;
      };
      auto it = std::find_if(out.begin(), out.end(), same);
      if (it == out.end()) it = out.insert(out.end(), {along, extent, 0});
      ++it->reads;
    }
  });
  std::stable_sort(out.begin(), out.end(),
                   [](const Aligned& a, const Aligned& b) { return a.reads > b.reads; });
  return out;
}

size_t reads_along(const Module& m, ExprId e, uint32_t slot, Axes along, const Layout& layout) {
  size_t out = 0;
  for (const Aligned& a : aligned_at(m, e, slot, layout)) out += a.along & along ? a.reads : 0;
  return out;
}

class Cutter {
 public:
  Cutter(Module& m, Layout& layout, std::map<FamilyId, FamilyId>& origin)
      : m_(m), layout_(layout), origin_(origin) {}

  void family(FamilyId id) {
    for (size_t c = 0; c < m_[id].clauses.size(); ++c) {
      const Family f = m_[id];
      if (f.clauses.size() == 1 && get_if<Reduce>(m_, f.clauses[0].body) && is_full(f)) {
        if (whole_body(id, 0)) continue;
      }
      inside(id, c);
    }
  }

  std::map<FamilyId, Cut> cuts;

 private:
  bool is_full(const Family& f, const Clause& c, uint32_t k) const {
    return const_int(m_, c.box[k].lo) == 0 && c.box[k].hi == f.coords[k].extent;
  }
  bool is_full(const Family& f) const {
    for (uint32_t k = 0; k < f.rank(); ++k) {
      if (!is_full(f, f.clauses[0], k)) return false;
    }
    return true;
  }

  // The whole body of the clause is the reduction.
  bool whole_body(FamilyId id, size_t clause) {
    const Clause c = m_[id].clauses[clause];
    auto cut = decide(c.body, clause_facts(m_, c), layout_.axes[id.v]);
    if (!cut) return false;
    const ReduceOp op = get_if<Reduce>(m_, c.body)->op;
    if (op == ReduceOp::ArgMax || op == ReduceOp::ArgMin) return arg_reduction(id, clause, *cut);
    cut->clause = clause;
    // If some clause does not cover all of coordinate k, the partial results are not split along k:
    // outside of the box each is a constant, which is combined with those of the other ranks.
    for (const Clause& other : m_[id].clauses) {
      for (uint32_t k = 0; k < m_[id].rank(); ++k) {
        if (!is_full(m_[id], other, k)) cut->coords[k] = 0;
      }
    }
    cuts[id] = std::move(*cut);
    return true;
  }

  // Finds the reductions inside a larger expression, but not those inside another reduction.
  void inside(FamilyId id, size_t number) {
    const Clause clause = m_[id].clauses[number];
    const uint32_t rank = m_[id].rank();
    // The condition around each reduction. A reduction with several conditions stays where it is.
    std::map<ExprId, ExprId> gates, apart;
    std::set<ExprId> stay;
    auto wanted = [](const Node& n) { return std::holds_alternative<Reduce>(n); };
    for_each_with_facts(m_, clause, wanted, [&](ExprId e, const Facts& facts) {
      if (facts.slots.size() != rank) return;
      ExprId gate = all_of(m_, facts.holds);
      auto [it, fresh] = gates.try_emplace(e, gate);
      if (!gate) it->second = {};
      bool known = !facts.guarded && !knows_enough(facts);
      if (!known || (!fresh && it->second && it->second != gate)) stay.insert(e);
      if (fresh && !decide(e, facts, layout_.axes[id.v])) stay.insert(e);
    });
    std::vector<FamilyId> made;
    const Facts facts = clause_facts(m_, clause);
    for (const auto& [e, gate] : gates) {
      if (stay.contains(e)) continue;
      auto before = static_cast<uint32_t>(m_.families.size());
      ExprId read = hoist(m_, text(m_[id].name) + "_sum", e, gate, facts, coordinate_names(m_[id]),
                          m_[e].span);
      if (!read) continue;
      EIN_CHECK(m_.families.size() == before + 1, "one family for one reduction");
      adopt(FamilyId(before), id, m_[e].free | (gate ? m_[gate].free : 0), layout_.axes[id.v]);
      made.push_back(FamilyId(before));
      apart[e] = read;
    }
    if (apart.empty()) return;
    // Outermost reductions first: what is inside a reduction moves together with it.
    std::unordered_map<ExprId, ExprId> memo;
    std::function<ExprId(ExprId)> visit = [&](ExprId e) -> ExprId {
      if (auto it = apart.find(e); it != apart.end()) return it->second;
      if (auto it = memo.find(e); it != memo.end()) return it->second;
      ExprId out = map_children(m_, e, visit);
      memo.emplace(e, out);
      return out;
    };
    m_.families[id].clauses[number].body = visit(clause.body);
    for (FamilyId h : made) {
      for (size_t k = 0; k < m_[h].clauses.size(); ++k) {
        if (get_if<Reduce>(m_, m_[h].clauses[k].body)) whole_body(h, k);
      }
    }
  }

  // A new family whose coordinates are the slots in `free`, in order. `slots`: how those are split.
  void adopt(FamilyId h, FamilyId id, uint64_t free, const std::vector<Axes>& slots) {
    const Family f = m_[id], made = m_[h];
    std::vector<Axes> axes;
    std::vector<uint32_t> steps;
    Axes taken = 0;
    for (uint32_t n = 0; n < kMaxSlots; ++n) {
      if (!(free >> n & 1)) continue;
      auto k = static_cast<uint32_t>(axes.size());
      bool split = n < slots.size() && !(slots[n] & taken);
      if (n < f.rank() && made.coords.at(k).extent != f.coords[n].extent) split = false;
      axes.push_back(split ? slots[n] : 0);
      taken |= axes.back();
      const auto& own = layout_.steps[id.v];
      if (std::find(own.begin(), own.end(), n) != own.end()) steps.push_back(k);
    }
    EIN_CHECK(axes.size() == made.rank(), "a coordinate for every free slot");
    layout_.axes.push_back(std::move(axes));
    layout_.steps.push_back(std::move(steps));
    origin_[h] = origin_.contains(id) ? origin_.at(id) : id;
  }

  // argmax[i](x[i]) is the smallest i at which x[i] equals max[i](x[i]).
  bool arg_reduction(FamilyId id, size_t number, const Cut& cut) {
    const Clause clause = m_[id].clauses[number];
    Reduce r = *get_if<Reduce>(m_, clause.body);
    // Computed once, so that both reductions compare the same value.
    if (!get_if<Access>(m_, r.body)) {
      Facts facts = clause_facts(m_, clause);
      enter(m_, r, facts);
      std::vector<Symbol> names = coordinate_names(m_[id]);
      names.insert(names.end(), r.names.begin(), r.names.end());
      uint64_t free = m_[r.body].free | (r.gate ? m_[r.gate].free : 0);
      auto before = static_cast<uint32_t>(m_.families.size());
      ExprId read =
          hoist(m_, text(m_[id].name) + "_value", r.body, r.gate, facts, names, m_[r.body].span);
      if (!read || m_[FamilyId(before)].rank() != static_cast<uint32_t>(std::popcount(free)))
        return false;
      std::vector<Axes> axes = cut.coords;
      axes.push_back(cut.binders[0].extent == r.over[0].hi ? cut.binders[0].along : 0);
      adopt(FamilyId(before), id, free, axes);
      r.body = read;
    }
    Reduce best = r;
    best.op = r.op == ReduceOp::ArgMax ? ReduceOp::Max : ReduceOp::Min;
    Family top;
    top.name = fresh_name(m_, text(m_[id].name) + (r.op == ReduceOp::ArgMax ? "_max" : "_min"));
    top.dtype = m_[r.body].type;
    top.coords = m_[id].coords;
    top.generated = true;
    top.span = clause.span;
    ExprId none = identity(m_, best.op, top.dtype);
    for (const Clause& c : m_[id].clauses) top.clauses.push_back({c.box, none, c.span});
    top.clauses[number].body = reduce(m_, best);
    FamilyId top_id = m_.families.add(std::move(top));
    layout_.axes.push_back(layout_.axes[id.v]);
    layout_.steps.push_back(layout_.steps[id.v]);
    origin_[top_id] = origin_.contains(id) ? origin_.at(id) : id;

    ExprId value = access(m_, top_id, slots_from(m_, 0, m_[id].rank()));
    ExprId wins = apply(m_, Op::Eq, {r.body, value});
    if (is_float(m_[r.body].type)) {
      ExprId nan = apply(m_, Op::Ne, {r.body, r.body}), top_nan = apply(m_, Op::Ne, {value, value});
      wins = apply(m_, Op::Or, {wins, apply(m_, Op::And, {nan, top_nan})});
    }
    ExprId far = identity(m_, ReduceOp::Min, DType::I32);
    ExprId index = cast(m_, slot(m_, r.first), DType::I32);
    Reduce first = r;
    first.op = ReduceOp::Min;
    first.body = apply(m_, Op::Select, {wins, index, far});
    Family least;
    least.name = fresh_name(m_, text(m_[id].name) + "_first");
    least.dtype = DType::I32;
    least.coords = m_[id].coords;
    least.generated = true;
    least.span = clause.span;
    for (const Clause& c : m_[id].clauses) least.clauses.push_back({c.box, far, c.span});
    least.clauses[number].body = reduce(m_, first);
    FamilyId least_id = m_.families.add(std::move(least));
    layout_.axes.push_back(layout_.axes[id.v]);
    layout_.steps.push_back(layout_.steps[id.v]);
    origin_[least_id] = origin_.at(top_id);
    ExprId found = access(m_, least_id, slots_from(m_, 0, m_[id].rank()));
    ExprId missing = identity(m_, r.op, DType::I32);
    m_.families[id].clauses[number].body =
        apply(m_, Op::Select, {apply(m_, Op::Eq, {found, far}), missing, found}, clause.span);
    whole_body(top_id, number);
    whole_body(least_id, number);
    return true;
  }

  // How to cut a reduction whose result is split as `own` says, given the facts at its place.
  // Nothing: do not cut it.
  std::optional<Cut> decide(ExprId e, const Facts& facts, const std::vector<Axes>& own) {
    const Reduce r = *get_if<Reduce>(m_, e);
    if (r.op == ReduceOp::Collect) return std::nullopt;
    for (const Range& range : r.over) {
      if (has_reduce(m_, range.lo) || has_reduce(m_, range.hi)) return std::nullopt;
    }
    Facts inner = facts;
    inner.slots.resize(r.first);
    enter(m_, r, inner);
    Cut out{0, {}, own};
    Axes taken = 0;
    for (uint32_t b = 0; b < r.over.size(); ++b) {
      const uint32_t slot = r.first + b;
      for (const Aligned& a : aligned_at(m_, e, slot, layout_)) {
        if ((a.along & taken) || !within(r, b, a.extent, inner)) continue;
        if (!give_way(e, slot, a.along, out)) continue;
        out.binders.push_back({b, a.along, a.extent});
        taken |= a.along;
        break;
      }
    }
    if (out.binders.empty()) return std::nullopt;
    bool stops = r.op == ReduceOp::All || r.op == ReduceOp::Any;
    if (stops) {
      Facts open = inner;
      if (r.gate) {
        if (!total(m_, r.gate, inner, Overflow::Wraps)) return std::nullopt;
        assume(m_, r.gate, open);
      }
      if (!total(m_, r.body, open, Overflow::Wraps)) return std::nullopt;
    }
    return out;
  }

  // Whether the index stays within 0..extent and no later range depends on the index: outside of
  // its range it is then never evaluated.
  bool within(const Reduce& r, uint32_t b, ExprId extent, const Facts& inner) {
    const Range& range = r.over[b];
    const ExprId zero = int_lit(m_, 0);
    if (const_int(m_, range.lo) == 0 && range.hi == extent) return true;
    for (size_t k = b + 1; k < r.over.size(); ++k) {
      if (mentions_slot(m_, r.over[k].lo, r.first + b) ||
          mentions_slot(m_, r.over[k].hi, r.first + b))
        return false;
    }
    return !reads_values(m_, range.lo) && !reads_values(m_, range.hi) &&
           proves_le(m_, zero, range.lo, inner) && proves_le(m_, range.hi, extent, inner);
  }

  // Whether the reduction may be cut along these axes. If its result is split along the same axes,
  // one of the two must stay whole: either the operands are fetched, or the whole result is summed
  // in parts. Compares how many values each would move; a combined result counts as one.
  bool give_way(ExprId e, uint32_t slot, Axes along, Cut& cut) {
    size_t if_fetched = reads_along(m_, e, slot, along, layout_), if_combined = 1;
    bool meet = false;
    for (uint32_t k = 0; k < cut.coords.size(); ++k) {
      if (!(cut.coords[k] & along)) continue;
      meet = true;
      if_combined += reads_along(m_, e, k, along, layout_);
    }
    if (meet && if_fetched <= if_combined) return false;
    for (Axes& a : cut.coords) {
      if (a & along) a = 0;
    }
    return true;
  }

  Module& m_;
  Layout& layout_;
  std::map<FamilyId, FamilyId>& origin_;
};

}  // namespace

Axes Cut::over() const {
  Axes out = 0;
  for (const Binder& b : binders) out |= b.along;
  return out;
}

std::map<FamilyId, Cut> cut_reductions(Module& m, const std::vector<FamilyId>& all,
                                       const std::set<FamilyId>& never, Layout& layout,
                                       std::map<FamilyId, FamilyId>& origin) {
  Cutter cutter(m, layout, origin);
  for (FamilyId id : all) {
    if (!never.contains(id) && m[id].kind == Family::Kind::Defined) cutter.family(id);
  }
  return std::move(cutter.cuts);
}

}  // namespace ein::shard
