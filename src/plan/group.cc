// Groups: which families one nest of loops computes together. A family may join the group of one it
// reads, or of one that reads what it reads, when their leading coordinates have the same extents
// and every read inside the group stays in the iteration: it names those coordinates as they are.
// Softmax over rows is a group (the largest, the exponentials, their sum, the quotient: one row at
// a time, the exponentials in scratch), and so are the moments and parameters of an optimiser (one
// element at a time, in registers).
//
// Not everything joins: contractions and scattered sums have loops of their own, and the coordinate
// that runs in lanes stays innermost, so it is shared only when all members run it in lanes.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "core/build.h"
#include "core/reads.h"
#include "core/rewrite.h"
#include "plan/arrange.h"
#include "plan/plan.h"

namespace ein::plan {
namespace {

using namespace core;

// For each family: the coordinates that are steps of the Sequences around it, outermost first.
using Positions = std::map<FamilyId, std::vector<uint32_t>>;

// A family as grouping sees it.
struct Candidate {
  bool joins = false;
  std::vector<uint32_t> free;    // its coordinates that are not steps of a Sequence
  std::optional<uint32_t> lane;  // which of them runs in lanes
  uint32_t width = 1;
  bool columns = false;  // the lanes are several vectors wide, because the clause sums columns
  uint32_t fixed = 0;    // how many leading coordinates its group must share: those of its band
  std::vector<CellRead> reads;
  size_t nodes = 0;  // how many nodes its bodies have
};

struct Level {
  Plan& plan;
  const Choices& choices;
  const Positions& around;
  std::vector<core::Step>& steps;
  std::vector<Candidate> candidates = {};           // by step
  std::map<FamilyId, uint32_t> step_of = {};        // the step that computes each family
  std::vector<std::set<uint32_t>> before = {};      // for each step, the steps it reads
  std::vector<uint32_t> node = {};                  // for each step, its group
  std::vector<std::vector<uint32_t>> members = {};  // for each group, its steps

  const std::vector<uint32_t>& positions(FamilyId id) const {
    static const std::vector<uint32_t> none;
    auto it = around.find(id);
    return it == around.end() ? none : it->second;
  }

  FamilyId family_at(uint32_t step) const { return std::get<Compute>(steps[step]).family; }

  void look(uint32_t step) {
    candidates.emplace_back();
    Candidate& c = candidates.back();
    for (FamilyId id : families_of({steps[step]})) {
      for (FamilyId with : plan.module[id].with) note(step, with);
      for_each_body(plan.module, id, [&](ExprId body) {
        for_each_node(plan.module, body, [&](ExprId e) {
          ++c.nodes;
          if (const auto* a = get_if<Access>(plan.module, e)) {
            c.reads.push_back({a->family, a->at});
            note(step, a->family);
          }
        });
      });
    }
    if (std::holds_alternative<Compute>(steps[step])) describe(family_at(step), c);
  }

  // A read of a later step in the list is a read of an earlier iteration of a Sequence around,
  // which does not restrict the order here.
  void note(uint32_t step, FamilyId read) {
    auto it = step_of.find(read);
    if (it != step_of.end() && it->second < step) before[step].insert(it->second);
  }

  void describe(FamilyId id, Candidate& c) {
    Module& m = plan.module;
    const Family& f = m[id];
    if (f.kind != Family::Kind::Defined || !f.with.empty()) return;
    if (choices.joins && choices.joins(id) == false) return;
    const std::vector<uint32_t>& fixed = positions(id);
    for (uint32_t k = 0; k < f.rank(); ++k) {
      if (std::count(fixed.begin(), fixed.end(), k) == 0) c.free.push_back(k);
    }
    c.joins = !c.free.empty();
    if (auto in = plan.band_of.find(id); in != plan.band_of.end()) {
      c.joins &= plan.bands[in->second].is_row(id);
      c.fixed = plan.bands[in->second].outer + 1;
    }
    for (const ClausePlan& how : plan.families.at(id).clauses) {
      if (how.scatters || how.contraction) c.joins = false;
      for (uint32_t i = 0; i < c.free.size(); ++i) {
        if (how.axes[c.free[i]] != AxisKind::Vector) continue;
        c.lane = std::min(c.lane.value_or(i), i);
        c.width = how.width;
        c.columns |= how.width > lanes_for(f.dtype);
      }
    }
  }

  // How many leading coordinates all clauses of the family cover completely.
  uint32_t covered(FamilyId id, const Candidate& c) const {
    const Module& m = plan.module;
    const Family& f = m[id];
    uint32_t n = static_cast<uint32_t>(c.free.size());
    for (const Clause& clause : f.clauses) {
      uint32_t k = 0;
      while (k < n && const_int(m, clause.box[c.free[k]].lo) == 0 &&
             clause.box[c.free[k]].hi == f.coords[c.free[k]].extent) {
        ++k;
      }
      n = std::min(n, k);
    }
    return n;
  }

  // How many leading coordinates a read uses unchanged. A read of another step of a recurrence does
  // not count as inside the group, so it allows all coordinates.
  uint32_t aligned(FamilyId reader, const CellRead& read) const {
    const Module& m = plan.module;
    const auto &mine = positions(reader), &theirs = positions(read.family);
    for (size_t d = 0; d < std::min(mine.size(), theirs.size()); ++d) {
      AffineForm off = affine_form(m, read.at[theirs[d]]);
      if (slot_of(m, read.at[theirs[d]]) == mine[d]) continue;
      bool constant = off.terms.size() == 1 && off.terms[0].coef == 1 &&
                      slot_of(m, off.terms[0].atom) == mine[d] && off.constant != 0;
      return constant ? kMaxSlots : 0;
    }
    const auto& own = candidates[step_of.at(reader)].free;
    const auto& others = candidates[step_of.at(read.family)].free;
    uint32_t n = 0;
    while (n < own.size() && n < others.size() && slot_of(m, read.at[others[n]]) == own[n]) ++n;
    return n;
  }

  // The loops that these steps would share, if they can form a group.
  std::optional<Group> fit(const std::vector<uint32_t>& chosen) const {
    const Module& m = plan.module;
    Group out;
    std::set<FamilyId> inside;
    for (uint32_t s : chosen) inside.insert(family_at(s));
    const Candidate& first = candidates[chosen[0]];
    uint32_t shared = kMaxSlots, least = kMaxSlots, most = 0, width = kMaxSlots, widest = 0;
    bool all_lanes = true, any_lanes = false, columns = false;
    for (uint32_t s : chosen) {
      const Candidate& c = candidates[s];
      FamilyId id = family_at(s);
      out.members.push_back(id);
      uint32_t n = covered(id, c);
      for (uint32_t k = 0; k < n && k < first.free.size(); ++k) {
        ExprId extent = m[id].coords[c.free[k]].extent;
        if (extent != m[out.members[0]].coords[first.free[k]].extent) n = k;
      }
      for (const CellRead& r : c.reads) {
        if (inside.contains(r.family)) n = std::min(n, aligned(id, r));
      }
      auto rank = static_cast<uint32_t>(c.free.size());
      shared = std::min({shared, n, static_cast<uint32_t>(first.free.size())});
      least = std::min(least, rank);
      most = std::max(most, rank);
      width = std::min(width, c.width);
      widest = std::max(widest, c.width);
      columns |= c.columns;
      any_lanes |= c.lane.has_value();
      all_lanes &= c.lane == rank - 1;
    }
    if (shared == 0 || shared < first.fixed) return std::nullopt;
    if (shared == most && least == most && all_lanes) {
      out.shared = most;
      out.width = columns ? widest : width;
      return out;
    }
    if (any_lanes) {
      for (uint32_t s : chosen) {
        if (candidates[s].lane) shared = std::min(shared, *candidates[s].lane);
      }
    }
    out.shared = shared;
    if (shared == 0 || shared < first.fixed) return std::nullopt;
    return out;
  }

  bool has_room(uint32_t step, uint32_t group) const {
    if (members[group].size() >= static_cast<size_t>(plan.tuning.group_members)) return false;
    size_t nodes = candidates[step].nodes;
    for (uint32_t s : members[group]) nodes += candidates[s].nodes;
    return nodes <= static_cast<size_t>(plan.tuning.group_nodes);
  }

  // Whether something outside the group must be computed between the group and the step. Also true
  // if the search takes too long: then the step stays where it is.
  bool between(uint32_t step, uint32_t group) const {
    std::vector<uint32_t> open;
    std::set<uint32_t> seen;
    auto follow = [&](uint32_t s) {
      for (uint32_t b : before[s]) {
        if (node[b] != group && seen.insert(node[b]).second) open.push_back(node[b]);
      }
    };
    bool found = false;
    auto reaches = [&](uint32_t s) {
      for (uint32_t b : before[s]) found |= node[b] == group;
    };
    follow(step);
    while (!open.empty() && !found) {
      if (seen.size() > static_cast<size_t>(plan.tuning.group_search)) return true;
      uint32_t n = open.back();
      open.pop_back();
      for (uint32_t s : members[n]) {
        reaches(s);
        follow(s);
      }
    }
    return found;
  }

  // The groups that the step may join: first those it reads, then those that read the same
  // families.
  std::vector<uint32_t> neighbours(uint32_t step) const {
    std::vector<uint32_t> out;
    auto add = [&](uint32_t s) {
      if (s < step && candidates[s].joins && std::count(out.begin(), out.end(), node[s]) == 0) {
        out.push_back(node[s]);
      }
    };
    for (auto b = before[step].rbegin(); b != before[step].rend(); ++b) add(*b);
    std::set<FamilyId> read;
    for (const CellRead& r : candidates[step].reads) {
      if (plan.module[r.family].rank() > 0) read.insert(r.family);
    }
    for (uint32_t s = step; s-- > 0 && step - s <= plan.tuning.group_siblings;) {
      const auto& theirs = candidates[s].reads;
      if (std::any_of(theirs.begin(), theirs.end(),
                      [&](const CellRead& r) { return read.contains(r.family); })) {
        add(s);
      }
    }
    return out;
  }

  void join(uint32_t step) {
    for (uint32_t group : neighbours(step)) {
      if (!has_room(step, group)) continue;
      std::vector<uint32_t> chosen = members[group];
      chosen.push_back(step);
      if (!fit(chosen) || between(step, group)) continue;
      members[node[step]].clear();
      node[step] = group;
      members[group] = std::move(chosen);
      return;
    }
  }

  void run() {
    for (uint32_t s = 0; s < steps.size(); ++s) {
      for (FamilyId f : families_of({steps[s]})) step_of[f] = s;
    }
    before.resize(steps.size());
    for (uint32_t s = 0; s < steps.size(); ++s) {
      look(s);
      node.push_back(s);
      members.push_back({s});
    }
    for (uint32_t s = 0; s < steps.size(); ++s) {
      if (candidates[s].joins) join(s);
    }
    for (const auto& chosen : members) {
      if (chosen.size() < 2) continue;
      Group g = *fit(chosen);
      for (FamilyId f : g.members) plan.group_of[f] = static_cast<uint32_t>(plan.groups.size());
      plan.groups.push_back(std::move(g));
    }
    // Makes the steps of each group adjacent, with everything after what it reads.
    auto order = arrange(steps, before, node);
    EIN_CHECK(order, "groups that need each other");
    steps = std::move(*order);
  }
};

void form(Plan& plan, const Choices& choices, std::vector<core::Step>& steps,
          const Positions& around) {
  for (core::Step& s : steps) {
    auto* q = std::get_if<Sequence>(&s);
    if (!q) continue;
    Positions inner = around;
    for (const auto& member : q->members) inner[member.family].push_back(member.position);
    form(plan, choices, q->body, inner);
  }
  // Bands must stay adjacent, so groups are formed between bands and inside each band.
  auto band_at = [&](const core::Step& s) {
    const auto* c = std::get_if<Compute>(&s);
    auto it = c ? plan.band_of.find(c->family) : plan.band_of.end();
    return it == plan.band_of.end() ? ~0u : it->second;
  };
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    while (end < steps.size() && band_at(steps[end]) == band_at(steps[begin])) ++end;
    auto from = steps.begin() + static_cast<ptrdiff_t>(begin);
    auto to = steps.begin() + static_cast<ptrdiff_t>(end);
    std::vector<core::Step> part(std::make_move_iterator(from), std::make_move_iterator(to));
    Level{plan, choices, around, part}.run();
    std::move(part.begin(), part.end(), from);
  }
}

// Families that only their own group reads are stored for one iteration at a time. Inside a
// Sequence a ring achieves the same.
void choose_storage(Plan& plan) {
  std::set<FamilyId> outside(plan.wanted.begin(), plan.wanted.end());
  for (const core::Step& s : plan.schedule.steps) {
    for (FamilyId reader : families_of({s})) {
      auto own = plan.group_of.find(reader);
      for_each_body(plan.module, reader, [&](ExprId body) {
        for_each_node(plan.module, body, [&](ExprId e) {
          const auto* a = get_if<Access>(plan.module, e);
          if (!a) return;
          auto group = plan.group_of.find(a->family);
          if (group == plan.group_of.end()) return;
          if (own == plan.group_of.end() || own->second != group->second) outside.insert(a->family);
        });
      });
    }
  }
  for (const core::Step& s : plan.schedule.steps) {
    const auto* c = std::get_if<Compute>(&s);
    auto it = c ? plan.group_of.find(c->family) : plan.group_of.end();
    if (it == plan.group_of.end() || outside.contains(c->family)) continue;
    bool one_cell = plan.module[c->family].rank() == plan.groups[it->second].shared;
    plan.families[c->family].storage = one_cell ? Storage::Register : Storage::Row;
  }
}

}  // namespace

void form_groups(Plan& plan, const Choices& choices) {
  form(plan, choices, plan.schedule.steps, {});
  choose_storage(plan);
}

}  // namespace ein::plan
