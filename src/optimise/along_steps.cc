#include "optimise/along_steps.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/build.h"
#include "core/groups.h"
#include "core/prove.h"
#include "core/reads.h"
#include "core/rewrite.h"
#include "optimise/members.h"

namespace ein::optimise {
namespace {

using namespace core;

constexpr uint32_t kNone = ~0u;

// Which slots of a reader are the step and the member.
struct Place {
  uint32_t step = kNone, member = kNone;
};

// A recurrence, and the families that can be computed in its steps.
struct Stepwise {
  bool downward = false;
  ExprId steps, members;             // how many there are
  std::map<FamilyId, Place> places;  // for each family, which of its coordinates these are
  std::set<FamilyId> later;          // known only when the recurrence is done
};

// The slot in `slot + constant`.
uint32_t shifted_slot(const Module& m, ExprId e) {
  AffineForm f = affine_form(m, e);
  return f.terms.size() == 1 && f.terms[0].coef == 1 ? slot_of(m, f.terms[0].atom) : kNone;
}

// Which slots of the reader are the step and the member: all reads of the recurrence must use the
// same slot, shifted or not, as the step, and another as the member. Nothing if they do not, or if
// nothing reads the recurrence.
std::optional<Place> place_of(const Module& m, const Stepwise& s,
                              const std::vector<CellRead>& reads) {
  std::optional<Place> out;
  for (const CellRead& r : reads) {
    if (s.later.contains(r.family)) return std::nullopt;
    auto known = s.places.find(r.family);
    if (known == s.places.end()) continue;
    Place here{shifted_slot(m, r.at[known->second.step]), slot_of(m, r.at[known->second.member])};
    if (here.step == kNone || here.member == kNone || here.step == here.member) return std::nullopt;
    if (out && (out->step != here.step || out->member != here.member)) return std::nullopt;
    out = here;
  }
  return out;
}

bool reads_any(const Stepwise& s, const std::vector<CellRead>& reads) {
  return std::any_of(reads.begin(), reads.end(), [&](const CellRead& r) {
    return s.places.contains(r.family) || s.later.contains(r.family);
  });
}

std::optional<Stepwise> stepwise(Module& m, const Schedule& order, size_t at, const Tuning& tuning,
                                 Overflow overflow) {
  const auto* q = std::get_if<Sequence>(&order.steps[at]);
  constexpr int64_t kLanes = 8;  // lanes of f64
  auto members = q ? members_of(m, *q, kLanes, tuning, overflow) : std::nullopt;
  if (!members) return std::nullopt;
  Stepwise out{q->downward, {}, {}, {}, {}};
  for (const auto& member : q->members) {
    out.places[member.family] = {member.position, members->along.at(member.family)};
  }
  const Place first = out.places.at(q->members[0].family);
  out.steps = m[q->members[0].family].coords[first.step].extent;
  out.members = m[q->members[0].family].coords[first.member].extent;
  for (size_t i = at + 1; i < order.steps.size(); ++i) {
    const auto* c = std::get_if<Compute>(&order.steps[i]);
    for (FamilyId id : families_of({order.steps[i]})) {
      std::vector<CellRead> reads = reads_of(m, id);
      auto place = c ? place_of(m, out, reads) : std::nullopt;
      const Family& f = m[id];
      if (place && place->step < f.rank() && place->member < f.rank() &&
          f.coords[place->step].extent == out.steps &&
          f.coords[place->member].extent == out.members) {
        out.places[id] = *place;
      } else if (reads_any(out, reads)) {
        out.later.insert(id);
      }
    }
  }
  return out;
}

struct Accumulating {
  Module& m;
  const Tuning& tuning;
  const Overflow overflow;
  const Stepwise& s;
  const Facts& entry;
  int64_t cells_left;

  // The number of cells of the result, if it is small.
  std::optional<int64_t> cells(const Family& f) const {
    int64_t out = 1;
    for (const Coord& c : f.coords) {
      auto extent = const_int(m, c.extent);
      if (!extent || *extent < 1 || *extent > cells_left) return std::nullopt;
      out *= *extent;
      if (out > cells_left) return std::nullopt;
    }
    return out;
  }

  // Which binders of the sum run over the steps and the members. All other binders must be short.
  std::optional<Place> binders(const Reduce& r) const {
    if (r.op != ReduceOp::Sum || !r.routes.empty() || m[r.body].type != DType::F64) return {};
    std::vector<CellRead> reads;
    note_reads(m, r.body, reads);
    if (r.gate) note_reads(m, r.gate, reads);
    auto place = place_of(m, s, reads);
    // Slots from `end` on are binders of sums inside this one.
    const uint32_t end = r.first + static_cast<uint32_t>(r.over.size());
    auto own = [&](uint32_t n) { return n >= r.first && n < end; };
    if (!place || !own(place->step) || !own(place->member)) return {};
    for (size_t k = 0; k < r.over.size(); ++k) {
      const uint32_t n = r.first + static_cast<uint32_t>(k);
      auto lo = const_int(m, r.over[k].lo), hi = const_int(m, r.over[k].hi);
      if (n == place->step) {
        // `sum[t in 1..=n](x[t - 1])` has a cell more than there are steps to add it in.
        if (!lo || *lo < 0 || !proves_le(m, r.over[k].hi, s.steps, entry)) return {};
      } else if (n == place->member) {
        if (lo != 0 || r.over[k].hi != s.members) return {};
      } else if (!lo || !hi || *hi - *lo > tuning.unrolled_iterations) {
        return {};
      }
    }
    return place;
  }

  // A new recurrence: the sum up to each step, for every member. Nothing if it might fail although
  // the sum does not.
  std::optional<FamilyId> total_of(const Family& f, const Reduce& r, const Place& place) {
    const uint32_t rank = f.rank() + 2;
    std::vector<ExprId> with(r.first + r.over.size());
    for (uint32_t k = 0; k < f.rank(); ++k) with[k] = slot(m, 2 + k);
    Reduce inner{ReduceOp::Sum, rank, {}, {}, r.gate, {}, r.body};
    for (size_t k = 0; k < r.over.size(); ++k) {
      const uint32_t n = r.first + static_cast<uint32_t>(k);
      if (n == place.step || n == place.member) {
        with[n] = slot(m, n == place.step ? 0 : 1);
        continue;
      }
      with[n] = slot(m, rank + static_cast<uint32_t>(inner.over.size()));
      inner.over.push_back(r.over[k]);
      inner.names.push_back(r.names[k]);
    }
    const uint32_t above = rank + static_cast<uint32_t>(inner.over.size());
    inner.body = substitute(m, r.body, with, above);
    if (r.gate) inner.gate = substitute(m, r.gate, with, above);
    const Range& steps = r.over[place.step - r.first];
    const ExprId t = slot(m, 0), one = int_lit(m, 1);
    const ExprId term = reduce(m, inner, m[r.body].span);
    const ExprId counts =
        all_of(m, {apply(m, Op::Ge, {t, steps.lo}), apply(m, Op::Lt, {t, steps.hi})});

    Family out;
    out.name = fresh_name(m, text(f.name) + "_total");
    out.dtype = DType::F64;
    out.generated = true;
    out.span = f.span;
    out.coords = {{r.names[place.step - r.first], s.steps},
                  {r.names[place.member - r.first], s.members}};
    add_coords(out.coords, f.coords);
    Clause clause;
    for (const Coord& c : out.coords) clause.box.push_back({int_lit(m, 0), c.extent});
    clause.span = f.span;
    const FamilyId id = m.families.add(std::move(out));
    std::vector<ExprId> at = slots_from(m, 0, rank);
    at[0] = s.downward ? add(m, t, one) : sub(m, t, one);
    const ExprId has_before =
        s.downward ? apply(m, Op::Lt, {at[0], s.steps}) : apply(m, Op::Ge, {at[0], int_lit(m, 0)});
    const ExprId before = gated(m, has_before, access(m, id, at, f.span));
    clause.body = apply(m, Op::Add, {before, where(counts, term, clause)});
    m.families[id].clauses = {clause};
    if (!total(m, clause.body, clause_facts(m, clause), overflow)) return std::nullopt;
    return id;
  }

  // `term` under the condition that the step of the clause counts, unless that is known.
  ExprId where(ExprId counts, ExprId term, const Clause& clause) {
    Facts facts = clause_facts(m, clause);
    std::vector<ExprId> parts, open;
    conjuncts(m, counts, parts);
    for (ExprId part : parts) {
      if (!proves(m, part, facts)) open.push_back(part);
    }
    return gated(m, all_of(m, open), term);
  }

  // The result: the sum over the members of the new recurrence's last step.
  ExprId result(FamilyId total, const Reduce& r, const Place& place, uint32_t rank) {
    std::vector<ExprId> at{s.downward ? int_lit(m, 0) : sub(m, s.steps, int_lit(m, 1)),
                           slot(m, r.first)};
    for (uint32_t k = 0; k < rank; ++k) at.push_back(slot(m, k));
    const size_t member = place.member - r.first;
    return reduce(m, {ReduceOp::Sum,
                      r.first,
                      {r.over[member]},
                      {r.names[member]},
                      {},
                      {},
                      access(m, total, at, m[r.body].span)});
  }

  bool clause(FamilyId id, size_t number) {
    const Family f = m[id];
    auto few = cells(f);
    if (!few) return false;
    std::vector<ExprId> sums;
    for_each_node(m, f.clauses[number].body, [&](ExprId e) {
      const auto* r = get_if<Reduce>(m, e);
      if (r && m[e].level() < static_cast<int32_t>(f.rank()) && r->first == f.rank())
        sums.push_back(e);
    });
    bool changed = false;
    for (ExprId e : sums) {
      const Reduce r = std::get<Reduce>(m[e].node);
      auto place = binders(r);
      if (!place || *few > cells_left) continue;
      auto total = total_of(f, r, *place);
      if (!total) continue;
      ExprId by = result(*total, r, *place, f.rank());
      ExprId& body = m.families[id].clauses[number].body;
      body = rewrite(m, body, [&](ExprId x) { return x == e ? by : x; });
      cells_left -= *few;
      changed = true;
    }
    return changed;
  }
};

}  // namespace

bool sum_along_steps(Module& m, const std::vector<FamilyId>& wanted, const Tuning& tuning,
                     Overflow overflow) {
  const Schedule order = schedule(m, wanted);
  bool changed = false;
  // For every recurrence the search looks at everything after it, so it is skipped in very long
  // programs.
  constexpr size_t kMost = 1'000'000;
  const auto recurrences =
      static_cast<size_t>(std::count_if(order.steps.begin(), order.steps.end(), [](const Step& s) {
        return std::holds_alternative<Sequence>(s);
      }));
  if (recurrences * order.steps.size() > kMost) return false;
  Facts entry;
  entry.entry = entry_facts(m);
  // A sum runs along with the last recurrence that it reads.
  for (size_t i = order.steps.size(); i-- > 0;) {
    auto found = stepwise(m, order, i, tuning, overflow);
    if (!found || !proves_le(m, int_lit(m, 1), found->steps, entry)) continue;
    Accumulating accumulating{m, tuning, overflow, *found, entry, tuning.accumulated_cells};
    for (size_t k = i + 1; k < order.steps.size(); ++k) {
      const auto* c = std::get_if<Compute>(&order.steps[k]);
      if (!c || found->places.contains(c->family)) continue;
      for (size_t n = 0; n < m[c->family].clauses.size(); ++n) {
        changed |= accumulating.clause(c->family, n);
      }
    }
  }
  return changed;
}

}  // namespace ein::optimise
