#include "plan/rows.h"

#include <algorithm>
#include <set>

#include "core/build.h"
#include "core/cost.h"
#include "core/rewrite.h"

namespace ein::plan {

using namespace core;

namespace {

bool same_rows(const Module& m, FamilyId one, FamilyId other) {
  if (m[one].rank() != m[other].rank()) return false;
  for (uint32_t k = 0; k + 1 < m[one].rank(); ++k) {
    if (m[one].coords[k].extent != m[other].coords[k].extent) return false;
  }
  return true;
}

// Whether every row depends only on its own cells and a cell is cheap to compute. Then most of the
// time goes into reading cells that are far apart in memory.
bool stays_in_row(const Module& m, FamilyId id, const std::set<FamilyId>& members) {
  const Family& f = m[id];
  bool ok = f.kind == Family::Kind::Defined;
  for (const Clause& c : f.clauses) {
    for (uint32_t k = 0; k + 1 < f.rank(); ++k) {
      ok &= const_int(m, c.box[k].lo) == 0 && c.box[k].hi == f.coords[k].extent;
    }
    for_each_node(m, c.body, [&](ExprId e) {
      ok &= !get_if<Reduce>(m, e) && !get_if<Call>(m, e);
      const auto* a = get_if<Access>(m, e);
      if (!a || !members.contains(a->family)) return;
      for (uint32_t k = 0; k + 1 < a->at.size(); ++k) ok &= slot_of(m, a->at[k]) == k;
    });
  }
  return ok;
}

}  // namespace

bool runs_by_rows(Module& m, const Sequence& q) {
  std::set<FamilyId> members;
  for (const auto& member : q.members) members.insert(member.family);
  bool plain = std::all_of(q.body.begin(), q.body.end(), [&](const core::Step& s) {
    const auto* c = std::get_if<Compute>(&s);
    return c && members.contains(c->family);
  });
  FamilyId first = q.members[0].family;
  return plain && m[first].rank() >= 2 &&
         std::all_of(q.members.begin(), q.members.end(), [&](const auto& member) {
           return member.position + 1 == m[member.family].rank() &&
                  same_rows(m, first, member.family) && stays_in_row(m, member.family, members);
         });
}

int64_t work_of_step(const Module& m, const Sequence& q) {
  int64_t work = 1;
  for (const auto& member : q.members) {
    for_each_body(m, member.family, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        const auto* a = get_if<Apply>(m, e);
        work += a ? static_cast<int64_t>(cost(a->op)) : 1;
      });
    });
  }
  return work;
}

}  // namespace ein::plan
