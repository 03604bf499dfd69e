#include "plan/plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/check.h"
#include "core/build.h"
#include "core/rewrite.h"
#include "optimise/factors.h"
#include "optimise/operands.h"
#include "plan/bands.h"
#include "plan/ensembles.h"
#include "plan/follow.h"
#include "plan/rows.h"
#include "plan/wavefront.h"

namespace ein::plan {
namespace {

using namespace core;
using optimise::bit;

// A loop over a short known extent would not fill a vector.
bool short_range(const Module& m, const Range& r, uint32_t lanes) {
  auto lo = const_int(m, r.lo), hi = const_int(m, r.hi);
  return lo && hi && *hi - *lo < lanes;
}

// How the reads in an expression move when a slot increases by one.
struct Movement {
  bool ok = true;  // no loop's length depends on the slot
  bool moves = false, gathers = false, function = false;

  // Gathering operands lane by lane pays off for an elementary function, which is costly.
  bool streams() const { return ok && moves && (function || !gathers); }
};

void look(const Module& m, ExprId e, uint32_t slot, Movement& out) {
  std::vector<ExprId> sums;
  for_each_node(m, e, [&](ExprId x) {
    if (!mentions_slot(m, x, slot)) return;
    if (const auto* f = get_if<Apply>(m, x)) out.function |= info(f->op).cls == OpClass::Real;
    if (const auto* a = get_if<Access>(m, x)) {
      optimise::Stride s = optimise::step_along(m, *a, slot);
      out.moves |= s == optimise::Stride::Unit || s == optimise::Stride::Other;
      out.gathers |= s == optimise::Stride::Other;
    } else if (const auto* r = get_if<Reduce>(m, x)) {
      for (const Range& range : r->over) {
        out.ok &= !mentions_slot(m, range.lo, slot) && !mentions_slot(m, range.hi, slot);
      }
      sums.push_back(r->body);
    }
  });
  // A function outside of a reduction does not pay for the gathers of every term inside.
  for (ExprId body : sums) {
    if (body == e) continue;
    Movement inside;
    look(m, body, slot, inside);
    out.ok &= inside.ok && (inside.function || !inside.gathers);
  }
}

// Whether an expression can be computed in lanes along `slot`: every access stays or moves to the
// next element, no loop's length depends on the slot, and at least one access moves; or elementary
// functions are worth the gathers.
bool streams(const Module& m, ExprId e, uint32_t slot, bool store_moves) {
  Movement found{.moves = store_moves};
  look(m, e, slot, found);
  return found.streams();
}
// A sum down the columns of an array takes this many vectors of columns at a time. A single vector
// would use one cache line of each row, but memory is fetched in runs of lines.
constexpr uint32_t kColumnVectors = 4;

// Whether a sum in the clause goes down an array row by row while `axis` runs along the rows.
bool sums_columns(const Module& m, const Clause& clause, uint32_t axis) {
  bool found = false;
  for_each_node(m, clause.body, [&](ExprId e) {
    const auto* r = get_if<Reduce>(m, e);
    if (!r || r->over.empty()) return;
    const uint32_t last = r->first + static_cast<uint32_t>(r->over.size()) - 1;
    for_each_node(m, r->body, [&](ExprId x) {
      const auto* a = get_if<Access>(m, x);
      found |= a && optimise::step_along(m, *a, axis) == optimise::Stride::Unit &&
               optimise::step_along(m, *a, last) == optimise::Stride::Other;
    });
  });
  return found;
}

uint32_t choose_vector_axis(const Module& m, const Clause& clause, uint64_t free, uint32_t lanes) {
  if (free == 0) return kMaxSlots;
  uint32_t last = static_cast<uint32_t>(63 - std::countl_zero(free));
  bool contiguous = last + 1 == clause.box.size();
  if (!contiguous || short_range(m, clause.box[last], lanes)) return kMaxSlots;
  return streams(m, clause.body, last, true) ? last : kMaxSlots;
}

// Whether the expression has a checked integer operation. Such a clause runs cell by cell in the
// order of the reference, so that the same failure comes first.
bool checked(const Module& m, ExprId e) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) {
    if (const auto* a = get_if<Apply>(m, x)) found |= may_overflow(m, *a);
    if (const auto* a = get_if<Affine>(m, x)) found |= may_overflow(m, *a);
    const auto* r = get_if<Reduce>(m, x);
    found |= r && (r->op == ReduceOp::Sum || r->op == ReduceOp::Prod) && is_int(m[r->body].type);
  });
  return found;
}

// Whether the clause may be a single pass over its binders that adds to addresses.
bool may_scatter(const Module& m, const Clause& clause, uint64_t free) {
  const auto* r = get_if<Reduce>(m, clause.body);
  if (!r || r->routes.empty()) return false;
  // A sum that is still f16 or bf16 (wide_sums.h) is rounded once, at the end. Adding in memory
  // would round every addition.
  DType type = m[r->body].type;
  if (type == DType::F16 || type == DType::BF16) return false;
  uint64_t routed = 0;
  for (const Route& route : r->routes) routed |= bit(route.slot) & free;
  if (routed == 0) return false;
  // If a range, gate, target or body needs the routed coordinate, it cannot be evaluated before the
  // address is known.
  uint64_t used = m[r->body].free | (r->gate ? m[r->gate].free : 0);
  for (const Range& range : r->over) used |= m[range.lo].free | m[range.hi].free;
  for (const Route& route : r->routes) used |= m[route.to].free;
  return (used & routed) == 0;
}

struct Planner {
  Plan& plan;
  const Choices& choices;
  std::set<FamilyId> wanted = {plan.wanted.begin(), plan.wanted.end()};

  // `fixed`: the coordinates that are steps of Sequences around; `repeated`: whether there is such
  // a Sequence.
  void steps(const std::vector<core::Step>& list, const std::map<FamilyId, uint64_t>& fixed,
             bool repeated) {
    for (const core::Step& s : list) {
      if (const auto* c = std::get_if<Compute>(&s)) {
        auto it = fixed.find(c->family);
        family(c->family, it == fixed.end() ? 0 : it->second, repeated);
      } else {
        const auto& q = std::get<Sequence>(s);
        std::map<FamilyId, uint64_t> inner = fixed;
        for (const auto& member : q.members) inner[member.family] |= bit(member.position);
        steps(q.body, inner, repeated || is_recurrence(q));
      }
    }
  }

  // Values that run step by step only because a file streams (streams.h) are computed as if they
  // ran at once, so that every bit is the same.
  bool is_recurrence(const Sequence& q) const {
    if (q.members.size() > 1) return true;
    bool found = false;
    for_each_body(plan.module, q.members[0].family, [&](ExprId body) {
      for_each_node(plan.module, body, [&](ExprId e) {
        const auto* read = get_if<Access>(plan.module, e);
        found |= read && read->family == q.members[0].family;
      });
    });
    return found;
  }

  void family(FamilyId id, uint64_t fixed, bool repeated) {
    Module& m = plan.module;
    const Family f = m[id];
    FamilyPlan out;
    out.wanted = wanted.contains(id);
    uint64_t coords = f.rank() >= 64 ? ~0ull : bit(f.rank()) - 1;
    for (size_t c = 0; c < f.clauses.size(); ++c) {
      out.clauses.push_back(clause(id, c, f, coords & ~fixed));
      ClausePlan& made = out.clauses.back();
      bool product = made.contraction && made.contraction->is_product();
      if (repeated && product) made.small_contraction = plan.tuning.small_contraction;
      reductions(f.clauses[c]);
    }
    for (ExprId cell : f.cells) reductions(Clause{{}, cell, {}});
    plan.families[id] = std::move(out);
  }

  ClausePlan clause(FamilyId id, size_t number, const Family& f, uint64_t free) {
    Module& m = plan.module;
    const Clause& c = f.clauses[number];
    ClausePlan out;
    for (uint32_t k = 0; k < f.rank(); ++k) {
      out.axes.push_back(free & bit(k) ? AxisKind::Parallel : AxisKind::Seq);
    }
    if (optimise::has_factor(m, c.body)) {
      out.contraction = optimise::classify_factor(m, c, free);
      EIN_CHECK(out.contraction, "a matrix function that is no statement of its own");
      return out;
    }
    out.contraction = optimise::classify_moved(m, c);
    if (out.contraction) return out;
    if (choices.overflow == Overflow::Stops && checked(m, c.body)) return out;
    out.scatters = choices.scatters && may_scatter(m, c, free);
    if (out.scatters) {
      // Lanes go over the cells that one step adds to.
      uint64_t unrouted = free;
      for (const Route& route : get_if<Reduce>(m, c.body)->routes) unrouted &= ~bit(route.slot);
      uint32_t last = f.rank() - 1;
      // A vector has a power of two of lanes.
      uint32_t lanes = std::bit_floor(static_cast<uint32_t>(plan.tuning.scatter_lanes));
      if (free & bit(last)) out.clear_width = lanes;
      if ((unrouted & bit(last)) == 0 || short_range(m, c.box[last], lanes)) return out;
      out.axes[last] = AxisKind::Vector;
      out.width = lanes;
      return out;
    }
    if (choices.contractions) out.contraction = optimise::classify(m, c, free, choices.tuning);
    auto wish = choices.vector_axis ? choices.vector_axis(id, number) : std::nullopt;
    uint32_t axis = wish ? *wish : choose_vector_axis(m, c, free, lanes_for(f.dtype));
    if (axis < f.rank() && (free & bit(axis))) {
      out.axes[axis] = AxisKind::Vector;
      out.width = lanes_for(f.dtype);
      const uint32_t wide = out.width * kColumnVectors;
      if (!short_range(m, c.box[axis], wide) && sums_columns(m, c, axis)) out.width = wide;
    }
    return out;
  }

  void reductions(const Clause& c) {
    const Module& m = plan.module;
    for_each_node(m, c.body, [&](ExprId e) {
      const auto* r = get_if<Reduce>(m, e);
      if (!r || !optimise::lanes_legal(m, e) || plan.stops.contains(e)) return;
      // Which addition overflows depends on their order, so sums keep the order of the reference.
      bool adds = r->op == ReduceOp::Sum || r->op == ReduceOp::Prod;
      if (plan.overflow == Overflow::Stops && adds && is_int(m[r->body].type)) return;
      uint32_t last = r->first + static_cast<uint32_t>(r->over.size()) - 1;
      uint32_t lanes = lanes_for(m[r->body].type);
      auto wish = choices.reduce_width ? choices.reduce_width(e) : std::nullopt;
      if (wish) {
        if (*wish > 1) plan.reduce_widths[e] = *wish;
      } else if (!short_range(m, r->over.back(), lanes) && streams(m, r->body, last, false)) {
        plan.reduce_widths[e] = lanes;
      }
    });
  }
};

bool ends(const Plan& plan, const Sequence& q) { return plan.ends.contains(key(q)); }
bool fetches(const Plan& plan, const Sequence& q) {
  return std::any_of(plan.streams.begin(), plan.streams.end(),
                     [&](const auto& s) { return s.second.first.contains(key(q)); });
}

void note_moves(Plan& plan) {
  for (auto& [id, made] : plan.families) {
    for (const ClausePlan& c : made.clauses) {
      if (!c.contraction || c.contraction->moved < 0) continue;
      made.moved = true;
      plan.families.at(get_if<Access>(plan.module, c.contraction->a)->family).moved = true;
    }
  }
}

void find_ends(Plan& plan, const std::vector<core::Step>& steps, const Outer& outer) {
  for (const core::Step& s : steps) {
    const auto* q = std::get_if<Sequence>(&s);
    if (!q) continue;
    std::set<FamilyId> later = read_later(plan.module, plan.schedule, plan.wanted, *q);
    if (moves_between_ranks(plan, *q)) continue;  // all ranks must run the same steps
    if (auto end = find_end(plan.module, *q, outer, later)) plan.ends[key(*q)] = std::move(*end);
    Outer inner = outer;
    for (const auto& member : q->members) inner[member.family].push_back(member.position);
    find_ends(plan, q->body, inner);
  }
}

// Finds every `all` and `any` that may read a cell that fails: the reference does not evaluate that
// cell if an earlier one decides.
void find_stops(Plan& plan) {
  Module& m = plan.module;
  auto logical = [](const Node& n) {
    const auto* r = std::get_if<Reduce>(&n);
    return r && (r->op == ReduceOp::All || r->op == ReduceOp::Any);
  };
  auto look = [&](const Clause& c) {
    bool some = false;  // few clauses have one, and deriving facts takes time
    for_each_node(m, c.body, [&](ExprId e) { some |= logical(m[e].node); });
    if (!some) return;
    for_each_with_facts(m, c, logical, [&](ExprId e, const Facts& facts) {
      if (!total(m, e, facts, plan.overflow)) plan.stops.insert(e);
    });
  };
  for (FamilyId id : families_of(plan.schedule.steps)) {
    const Family f = m[id];
    for (const Clause& c : f.clauses) look(c);
    for (ExprId cell : f.cells) look({{}, cell, {}});
  }
}

// Only for recurrences that keep all steps: then nobody watches the steps of a row, and memory
// limits how long a row can run.
void find_rows(Plan& plan) {
  for (const core::Step& s : plan.schedule.steps) {
    const auto* q = std::get_if<Sequence>(&s);
    if (!q || ends(plan, *q) || fetches(plan, *q) || moves_between_ranks(plan, *q)) continue;
    if (!runs_by_rows(plan.module, *q)) continue;
    bool plain = std::none_of(q->members.begin(), q->members.end(), [&](const auto& member) {
      return plan.rings.contains(member.family) || plan.group_of.contains(member.family) ||
             plan.by_diagonals.contains(member.family);
    });
    if (!plain) continue;
    int64_t together = plan.tuning.rows_together;
    plan.by_rows[q->members[0].family] = {
        together, plan.tuning.unwatched_parts,
        plan.tuning.unwatched_work / together / work_of_step(plan.module, *q)};
  }
}

}  // namespace

bool moves_between_ranks(const Plan& plan, const Sequence& q) {
  return std::any_of(q.members.begin(), q.members.end(), [&](const auto& member) {
    auto it = plan.families.find(member.family);
    if (it == plan.families.end()) return false;
    return std::any_of(it->second.clauses.begin(), it->second.clauses.end(),
                       [](const auto& c) { return c.contraction && c.contraction->moved >= 0; });
  });
}

uint32_t lanes_for(DType type) { return size_of(type) >= 8 ? 8 : 16; }

const char* name_of(AxisKind kind) {
  switch (kind) {
    case AxisKind::Seq: return "seq";
    case AxisKind::Parallel: return "parallel";
    case AxisKind::Vector: return "vector";
  }
  EIN_UNREACHABLE("axis kind");
}

Plan make_plan(optimise::Program p, const Choices& choices) {
  Plan plan;
  plan.module = std::move(p.module);
  plan.wanted = std::move(p.wanted);
  plan.inlined = std::move(p.inlined);
  plan.operands = choices.operands;
  plan.overflow = choices.overflow;
  plan.trap = choices.trap;
  plan.first_made = p.first_made;
  plan.device = choices.device;
  plan.mapping = choices.mapping;
  plan.tuning = choices.tuning;
  plan.resumable = choices.resumable;
  plan.schedule = schedule(plan.module, plan.wanted);
  // Checked integers are computed in the order of the reference, family by family and sum by sum.
  bool free_order = choices.overflow == Overflow::Wraps;
  EIN_CHECK(!plan.schedule.cycle, "a module without a legal order reached planning");
  if (free_order && choices.rings) {
    plan.schedule = follow_steps(plan.module, plan.wanted, plan.tuning, std::move(plan.schedule));
  }
  if (free_order) {
    Streams found = find_streams(plan.module, plan.schedule, plan.wanted, choices.streams);
    plan.streams = std::move(found.inputs);
    plan.window_rows = std::move(found.rows);
    plan.whole = std::move(found.whole);
  }
  find_stops(plan);
  Planner{plan, choices}.steps(plan.schedule.steps, {}, false);
  note_moves(plan);
  // Bands help the caches of a processor, so a device does not use them.
  bool bands = choices.bands && !choices.trap && choices.device == Device::Cpu;
  if (free_order && bands) form_bands(plan);
  if (free_order) form_groups(plan, choices);
  finish_bands(plan);
  if (choices.rings) plan.rings = find_rings(plan.module, plan.schedule, plan.wanted);
  if (choices.ends) find_ends(plan, plan.schedule.steps, {});
  if (free_order && choices.diagonals && choices.rows) {
    for (const core::Step& s : plan.schedule.steps) {
      const auto* q = std::get_if<Sequence>(&s);
      if (!q || ends(plan, *q) || fetches(plan, *q) || moves_between_ranks(plan, *q) ||
          !runs_by_diagonals(plan.module, *q, plan.tuning.diagonal_cells)) {
        continue;
      }
      uint32_t lanes = ~0u;
      for (const auto& member : q->members) {
        lanes = std::min(lanes, lanes_for(plan.module[member.family].dtype));
      }
      for (const auto& member : q->members) {
        plan.by_diagonals[member.family] = lanes;
        plan.rings.erase(member.family);
      }
    }
  }
  if (free_order && choices.rows) find_rows(plan);
  if (free_order && choices.rows && choices.ensembles && !choices.trap) find_ensembles(plan);
  return plan;
}

}  // namespace ein::plan
