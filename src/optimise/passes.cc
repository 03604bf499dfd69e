#include "optimise/passes.h"

#include <map>

#include "core/build.h"
#include "core/groups.h"
#include "core/merge.h"
#include "core/normal.h"
#include "core/rewrite.h"
#include "optimise/along_steps.h"
#include "optimise/contractions.h"
#include "optimise/factors.h"
#include "optimise/invariants.h"
#include "optimise/precision.h"
#include "optimise/residues.h"
#include "optimise/scan.h"
#include "optimise/small_sums.h"
#include "optimise/unused.h"
#include "optimise/wide_sums.h"

namespace ein::optimise {
namespace {

using namespace core;

bool has_order(Module& m, const std::vector<FamilyId>& wanted) {
  return !schedule(m, wanted).cycle;
}

}  // namespace

Program isolate_routes(Program p) {
  core::isolate_routes(p.module);
  return p;
}

Program read_extents(Program p) {
  Module& m = p.module;
  std::map<FamilyId, ExprId> extents;
  for (uint32_t i = 0; i < m.params.size(); ++i) {
    const Param& known = m.params[ParamId(i)];
    if (known.position == Param::kItself) extents.emplace(known.source, param(m, ParamId(i)));
  }
  if (extents.empty()) return p;
  auto extent = [&](ExprId e) {
    const auto* cast = get_if<Apply>(m, e);
    const auto* read = get_if<Access>(m, cast && cast->op == Op::Cast ? cast->args[0] : e);
    if (m[e].type != DType::I64 || !read) return e;
    auto it = extents.find(read->family);
    return it == extents.end() ? e : it->second;
  };
  rewrite_all(m, [&](ExprId e) { return rewrite(m, e, extent); });
  return p;
}

Program drop_unused(Program p) {
  drop_unused_coordinates(p.module, p.wanted);
  return p;
}

Program round_factors(Program p, DType to) {
  round_operands(p.module, to);
  return p;
}

Program make_scans(Program p) {
  Module linear = p.module;
  if (make_scans(linear, p.tuning.scan_extent) && has_order(linear, p.wanted))
    p.module = std::move(linear);
  return p;
}

Program widen_sums(Program p) {
  Module wide = p.module;
  if (widen_routed_sums(wide) && has_order(wide, p.wanted)) p.module = std::move(wide);
  return p;
}

Program sum_along_steps(Program p, Overflow overflow) {
  Module summed = p.module;
  if (sum_along_steps(summed, p.wanted, p.tuning, overflow) && has_order(summed, p.wanted)) {
    p.module = std::move(summed);
  }
  return p;
}

Program isolate_factors(Program p) {
  optimise::isolate_factors(p.module);
  merge_equal(p.module);
  return p;
}

Program solve_for_products(Program p) {
  Module solved = p.module;
  optimise::solve_for_products(solved);
  merge_equal(solved);
  if (has_order(solved, p.wanted)) p.module = std::move(solved);
  return p;
}

Program split_residues(Program p) {
  Module split = p.module;
  if (split_residues(split) && has_order(split, p.wanted)) p.module = std::move(split);
  return p;
}

Program isolate_invariants(Program p) {
  Module isolated = p.module;
  if (!isolate_invariants(isolated, p.wanted, p.tuning)) return p;
  merge_equal(isolated);
  if (has_order(isolated, p.wanted)) p.module = std::move(isolated);
  return p;
}

Program form_contractions(Program p) {
  std::set<FamilyId> except;  // left unchanged
  for (;;) {
    Module split = p.module;
    split_small_sums(split, p.tuning);
    auto ordered = isolate_contractions(split, schedule(split, p.wanted), except, p.tuning);
    merge_equal(split);
    auto cycle = schedule(split, p.wanted).cycle;
    if (!cycle) {
      p.module = std::move(split);
      p.ordered = std::move(ordered);
      return p;
    }
    size_t before = except.size();
    for (FamilyId id : cycle->families) {
      if (id.v < p.module.families.size()) except.insert(id);
    }
    if (except.size() == before) return p;
  }
}

}  // namespace ein::optimise
