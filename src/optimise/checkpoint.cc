#include "optimise/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/build.h"
#include "core/eval.h"
#include "core/groups.h"
#include "core/rewrite.h"
#include "core/steps.h"
#include "optimise/strip_mine.h"

namespace ein::optimise {
namespace {

using namespace core;

int64_t cells(const Module& m, const std::vector<Range>& box, const std::vector<int64_t>& params) {
  int64_t out = 1;
  for (const Range& r : box) {
    out *= std::max<int64_t>(0, eval_extent(m, r.hi, params) - eval_extent(m, r.lo, params));
  }
  return out;
}

// The bytes of all computed families. A family that keeps few steps counts with those.
uint64_t bytes_stored(Module& m, const Schedule& order, const std::vector<FamilyId>& wanted,
                      const std::vector<int64_t>& params) {
  auto rings = find_rings(m, order, wanted);
  std::vector<FamilyId> all = families_of(order.steps);
  uint64_t out = 0;
  for (FamilyId id : all) {
    const Family& f = m[id];
    if (f.kind != Family::Kind::Defined) continue;
    uint64_t bytes = size_of(f.dtype);
    for (uint32_t k = 0; k < f.rank(); ++k) {
      int64_t extent = std::max<int64_t>(0, eval_extent(m, f.coords[k].extent, params));
      auto ring = rings.find(id);
      if (ring != rings.end() && ring->second.position == k)
        extent = std::min(extent, ring->second.kept);
      bytes *= static_cast<uint64_t>(extent);
    }
    out += bytes;
  }
  return out;
}

// Scalar operations of one evaluation, as the evaluator would count them. A range that depends on
// other indices or on values counts as one cell.
double operations(const Module& m, ExprId e, const std::vector<int64_t>& params,
                  std::map<ExprId, double>& memo) {
  if (auto it = memo.find(e); it != memo.end()) return it->second;
  double sum = 0;
  for_each_child(m, e, [&](ExprId child) { sum += operations(m, child, params, memo); });
  if (const auto* a = get_if<Apply>(m, e)) {
    DType type = m[a->args[0]].type;
    if (type != DType::I64 && type != DType::Bool && a->op != Op::Cast) sum += 1;
  } else if (const auto* r = get_if<Reduce>(m, e)) {
    double visited = 1;
    auto is_known = [&](ExprId end) { return m[end].free == 0 && !reads_values(m, end); };
    for (const Range& range : r->over) {
      if (is_known(range.lo) && is_known(range.hi))
        visited *= static_cast<double>(cells(m, {range}, params));
    }
    sum = visited * (sum + 1);
  }
  return memo[e] = sum;
}

double operations(const Module& m, const Schedule& order, const std::vector<int64_t>& params) {
  std::vector<FamilyId> all = families_of(order.steps);
  std::map<ExprId, double> memo;
  double out = 0;
  for (FamilyId id : all) {
    for (const Clause& c : m[id].clauses) {
      out += static_cast<double>(cells(m, c.box, params)) * operations(m, c.body, params, memo);
    }
  }
  return out;
}

// The recurrences with this number of steps; for each family, the coordinate that counts the steps.
struct Runs {
  std::map<FamilyId, uint32_t> forward, backward;
};

std::map<int64_t, Runs> find_runs(const Module& m, const Schedule& order) {
  std::map<int64_t, Runs> out;
  for (const Step& s : order.steps) {
    const auto* q = std::get_if<Sequence>(&s);
    if (!q) continue;
    int64_t steps = 0;
    for (const auto& member : q->members) {
      auto extent = const_int(m, m[member.family].coords[member.position].extent);
      steps = std::max(steps, extent.value_or(0));
    }
    Runs& runs = out[steps];
    for (const auto& member : q->members) {
      (q->downward ? runs.backward : runs.forward)[member.family] = member.position;
    }
  }
  return out;
}

// Whether a member of a backward run reads one of a forward run.
bool reads_backwards(const Module& m, const Runs& runs) {
  bool found = false;
  for (const auto& [id, position] : runs.backward) {
    for_each_body(m, id, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        const auto* a = get_if<Access>(m, e);
        found |= a && runs.forward.contains(a->family);
      });
    });
  }
  return found;
}

// The best length of a segment: the forward run keeps the start states (before · T/K of them) and
// about three segments of K steps.
int64_t choose_segment(const Region& region, int64_t asked) {
  int64_t least = std::max({region.before, region.after, region.ahead, int64_t{1}});
  double best = std::sqrt(static_cast<double>(region.steps * region.before) / 3.0);
  int64_t segment = asked > 0 ? asked : static_cast<int64_t>(std::ceil(best));
  return std::clamp(segment, least, std::max(least, region.steps));
}

struct SegmentPlanner {
  Checkpointed out;
  const std::vector<FamilyId>& wanted;
  const std::vector<int64_t>& params;
  std::optional<uint64_t> budget;

  void run(const Runs& runs, int64_t steps) {
    Module& m = out.module;
    SegmentPlan plan;
    plan.steps = steps;
    int64_t asked = 0;
    for (const auto& [id, position] : runs.forward) {
      if (!m[id].generated) plan.recurrences.push_back(text(m[id].name));
      if (m[id].checkpoint != 0) asked = m[id].checkpoint;
    }
    if (!budget && asked == 0) return;
    Schedule order = schedule(m, wanted);
    plan.bytes_whole = plan.bytes = bytes_stored(m, order, wanted, params);
    auto keep = [&](std::string reason) {
      plan.reason = std::move(reason);
      out.plans.push_back(plan);
    };
    if (asked == 0 && plan.bytes_whole <= *budget) return keep("all steps fit into the budget");
    std::vector<FamilyId> reached = families_of(order.steps);
    Module cut = m;
    auto region = find_region(cut, runs.forward, runs.backward, reached);
    if (!region) return keep("steps are read that are not a constant distance away");
    int64_t segment = choose_segment(*region, asked);
    strip_mine(cut, *region, segment, reached);
    Schedule after = schedule(cut, wanted);
    if (after.cycle) return keep("the backward run needs values that are known only after it");
    uint64_t bytes = bytes_stored(cut, after, wanted, params);
    if (asked == 0 && bytes >= plan.bytes_whole) return keep("other values read all steps");
    plan.segment = segment;
    plan.bytes = bytes;
    plan.work = operations(cut, after, params) / std::max(1.0, operations(m, order, params));
    if (budget && bytes > *budget) plan.reason = "the budget is exceeded";
    m = std::move(cut);
    out.plans.push_back(std::move(plan));
  }
};

std::string bytes_text(uint64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace

bool wants_segments(const Module& m, std::optional<uint64_t> budget) {
  return budget || std::any_of(m.families.begin(), m.families.end(),
                               [](const Family& f) { return f.checkpoint != 0; });
}

Checkpointed checkpoint(const Module& m, const std::vector<FamilyId>& wanted,
                        const std::vector<int64_t>& params, std::optional<uint64_t> budget) {
  SegmentPlanner planner{{m, {}}, wanted, params, budget};
  if (!wants_segments(m, budget)) return std::move(planner.out);
  Module& known = planner.out.module;
  std::unordered_map<ParamId, ExprId> numbers;
  for (uint32_t i = 0; i < params.size(); ++i) numbers[ParamId(i)] = int_lit(known, params[i]);
  for (uint32_t i = 0; i < known.families.size(); ++i) {
    if (known[FamilyId(i)].kind == Family::Kind::Input) continue;
    rewrite_family(known, FamilyId(i),
                   [&](ExprId e) { return substitute_params(known, e, numbers); });
  }
  for (const auto& [steps, runs] : find_runs(known, schedule(known, wanted))) {
    if (steps > 1 && reads_backwards(known, runs)) planner.run(runs, steps);
  }
  if (std::none_of(planner.out.plans.begin(), planner.out.plans.end(),
                   [](const SegmentPlan& p) { return p.segment > 0; })) {
    planner.out.module = m;  // nothing was cut, so the extents stay symbolic
  }
  return std::move(planner.out);
}

std::string describe(const SegmentPlan& p) {
  std::string what = fmt::format("{}, {} steps: ", fmt::join(p.recurrences, ", "), p.steps);
  if (p.segment == 0) {
    return what + fmt::format("all are kept ({}): {}", bytes_text(p.bytes_whole), p.reason);
  }
  what += fmt::format("recomputed in segments of {}; {} instead of {}, {:.2f} times the work",
                      p.segment, bytes_text(p.bytes), bytes_text(p.bytes_whole), p.work);
  return p.reason.empty() ? what : what + "; " + p.reason;
}

}  // namespace ein::optimise
