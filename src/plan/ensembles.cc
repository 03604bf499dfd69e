#include "plan/ensembles.h"

#include <algorithm>

#include "optimise/members.h"

namespace ein::plan {
namespace {

using namespace core;

struct EnsembleFinder {
  Plan& plan;
  const Sequence& q;
  Module& m = plan.module;

  // Whether the recurrence has enough lanes already: along this coordinate in all of its clauses,
  // or along another coordinate somewhere.
  bool in_lanes(const std::map<FamilyId, uint32_t>& along) const {
    bool all = true, elsewhere = false;
    for (const auto& [id, at] : along) {
      for (const ClausePlan& how : plan.families.at(id).clauses) {
        auto lanes = std::find(how.axes.begin(), how.axes.end(), AxisKind::Vector);
        all &= lanes != how.axes.end();
        elsewhere |= how.scatters || (lanes != how.axes.end() && lanes - how.axes.begin() != at);
      }
    }
    return all || elsewhere;
  }

  void take(FamilyId id, uint32_t along) {
    plan.group_of.erase(id);
    FamilyPlan& p = plan.families.at(id);
    for (ClausePlan& how : p.clauses) {
      if (how.axes[along] == AxisKind::Vector) how.axes[along] = AxisKind::Parallel;
      how.width = 1;
      how.contraction.reset();
      how.small_contraction.reset();
    }
    if (p.wanted || p.moved || along + 1 == m[id].rank()) return;
    // Makes the cells of neighbouring members neighbours in memory, for the lanes.
    for (uint32_t k = 0; k < m[id].rank(); ++k) {
      if (k != along) p.order.push_back(k);
    }
    p.order.push_back(along);
  }

  void run() {
    const FamilyId first = q.members[0].family;
    if (plan.by_rows.contains(first) || plan.by_diagonals.contains(first)) return;
    if (plan.ends.contains(key(q)) || moves_between_ranks(plan, q)) return;
    for (const auto& [id, stream] : plan.streams) {
      if (stream.first.contains(key(q))) return;
    }
    uint32_t lanes = ~0u;
    for (const auto& member : q.members) {
      lanes = std::min(lanes, lanes_for(m[member.family].dtype));
    }
    auto members = optimise::members_of(m, q, lanes, plan.tuning, plan.overflow);
    if (!members || in_lanes(members->along)) return;
    const int64_t one = lanes * std::max<int64_t>(members->operations, 1);
    plan.ensembles[first] = {std::move(members->along), lanes, plan.tuning.unwatched_parts,
                             plan.tuning.unwatched_work / one};
    for (const auto& [id, at] : plan.ensembles[first].along) take(id, at);
  }
};

}  // namespace

void find_ensembles(Plan& plan) {
  for (const core::Step& s : plan.schedule.steps) {
    if (const auto* q = std::get_if<Sequence>(&s)) EnsembleFinder{plan, *q}.run();
  }
}

}  // namespace ein::plan
