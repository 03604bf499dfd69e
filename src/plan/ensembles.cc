#include "plan/ensembles.h"

#include <algorithm>

#include "core/build.h"
#include "core/cost.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "plan/reads.h"

namespace ein::plan {
namespace {

using namespace core;

struct EnsembleFinder {
  Plan& plan;
  const Sequence& q;
  Module& m = plan.module;

  std::optional<uint32_t> step_of(FamilyId id) const {
    for (const auto& member : q.members) {
      if (member.family == id) return member.position;
    }
    return std::nullopt;
  }

  // Which coordinate of every family names the member, if `k` does so for the first of them.
  std::optional<std::map<FamilyId, uint32_t>> members_along(FamilyId first, uint32_t k) const {
    const ExprId extent = m[first].coords[k].extent;
    std::map<FamilyId, uint32_t> out{{first, k}};
    for (bool more = true; more;) {
      more = false;
      for (const auto& reader : q.members) {
        for (const Read& r : reads_of(m, reader.family)) {
          if (!step_of(r.family)) continue;
          auto mine = out.find(reader.family);
          auto theirs = out.find(r.family);
          if (mine != out.end() && theirs != out.end()) {
            if (slot_of(m, r.at[theirs->second]) != mine->second) return std::nullopt;
          } else if (mine != out.end()) {
            auto at = std::find(r.at.begin(), r.at.end(), slot(m, mine->second));
            if (at == r.at.end()) return std::nullopt;
            out[r.family] = static_cast<uint32_t>(at - r.at.begin());
            more = true;
          } else if (theirs != out.end()) {
            uint32_t s = slot_of(m, r.at[theirs->second]);
            if (s >= m[reader.family].rank()) return std::nullopt;
            out[reader.family] = s;
            more = true;
          }
        }
      }
    }
    if (out.size() != q.members.size()) return std::nullopt;
    for (const auto& [id, at] : out) {
      if (m[id].coords[at].extent != extent || at == *step_of(id) || !whole(m, id, at))
        return std::nullopt;
    }
    return out;
  }

  // Operations of one step of one member; invalid where loops inside are not short.
  std::optional<int64_t> work(const std::map<FamilyId, uint32_t>& along) {
    int64_t all = 0;
    for (const auto& [id, at] : along) {
      const Family f = m[id];
      for (const Clause& c : f.clauses) {
        int64_t cells = 1;
        auto times = [&](const Range& r) {
          auto lo = const_int(m, r.lo), hi = const_int(m, r.hi);
          if (!lo || !hi || *hi - *lo > plan.tuning.unrolled_iterations) return false;
          cells = std::min(cells * std::max<int64_t>(*hi - *lo, 1), plan.tuning.member_nodes);
          return true;
        };
        for (uint32_t k = 0; k < f.rank(); ++k) {
          if (k != at && k != *step_of(id) && !times(c.box[k])) return std::nullopt;
        }
        bool ok = total(m, c.body, clause_facts(m, c), plan.overflow);
        int64_t nodes = 0;
        for_each_node(m, c.body, [&](ExprId e) {
          ok = ok && !get_if<Call>(m, e);
          ++nodes;
          const auto* r = get_if<Reduce>(m, e);
          if (r) ok = ok && std::all_of(r->over.begin(), r->over.end(), times);
        });
        if (!ok) return std::nullopt;
        all += cells * nodes;
      }
    }
    return all;
  }

  // Lanes along another coordinate would be as good.
  bool in_lanes() const {
    return std::any_of(q.members.begin(), q.members.end(), [&](const auto& member) {
      const FamilyPlan& p = plan.families.at(member.family);
      return std::any_of(p.clauses.begin(), p.clauses.end(), [](const ClausePlan& how) {
        return how.scatters || std::count(how.axes.begin(), how.axes.end(), AxisKind::Vector) > 0;
      });
    });
  }

  void take(FamilyId id, uint32_t along) {
    plan.group_of.erase(id);
    FamilyPlan& p = plan.families.at(id);
    for (ClausePlan& how : p.clauses) {
      how.contraction.reset();
      how.small_contraction.reset();
    }
    if (p.wanted || along + 1 == m[id].rank()) return;
    // Lanes are neighbours in memory.
    for (uint32_t k = 0; k < m[id].rank(); ++k) {
      if (k != along) p.order.push_back(k);
    }
    p.order.push_back(along);
  }

  void run() {
    for (const core::Step& s : q.body) {
      const auto* c = std::get_if<Compute>(&s);
      if (!c || !step_of(c->family)) return;
    }
    const FamilyId first = q.members[0].family;
    if (plan.by_rows.contains(first) || plan.by_diagonals.contains(first) || in_lanes()) return;
    if (plan.ends.contains(key(q))) return;
    for (const auto& [id, stream] : plan.streams) {
      if (stream.first.contains(key(q))) return;
    }
    for (uint32_t k = 0; k < m[first].rank(); ++k) {
      if (k == q.members[0].position) continue;
      auto extent = const_int(m, m[first].coords[k].extent);
      uint32_t lanes = ~0u;
      for (const auto& member : q.members)
        lanes = std::min(lanes, lanes_for(m[member.family].dtype));
      if (extent && *extent < lanes) continue;
      auto along = members_along(first, k);
      auto operations = along ? work(*along) : std::nullopt;
      if (!operations || *operations > plan.tuning.member_nodes) continue;
      const int64_t one = lanes * std::max<int64_t>(*operations, 1);
      plan.ensembles[first] = {std::move(*along), lanes, plan.tuning.unwatched_parts,
                               plan.tuning.unwatched_work / one};
      for (const auto& [id, at] : plan.ensembles[first].along) take(id, at);
      return;
    }
  }
};

}  // namespace

void find_ensembles(Plan& plan) {
  for (const core::Step& s : plan.schedule.steps) {
    if (const auto* q = std::get_if<Sequence>(&s)) EnsembleFinder{plan, *q}.run();
  }
}

}  // namespace ein::plan
