#include "optimise/invariants.h"

#include <algorithm>
#include <map>

#include "core/build.h"
#include "core/cost.h"
#include "core/groups.h"
#include "core/normal.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "optimise/factors.h"

namespace ein::optimise {
namespace {

using namespace core;

struct Invariants {
  Module& m;
  const Tuning& tuning;

  bool runs_far(const Range& r) const {
    auto lo = const_int(m, r.lo), hi = const_int(m, r.hi);
    return !lo || !hi || *hi - *lo > tuning.unrolled_iterations;
  }

  // Whether a long loop that the expression does not depend on stands outside of one that it
  // depends on.
  bool repeated(ExprId e, const Facts& facts) const {
    const int32_t level = m[e].level();
    for (int32_t s = 0; s < level; ++s) {
      const Range& range = facts.slots[static_cast<size_t>(s)];
      if (!(m[e].free >> s & 1) && range.lo && range.hi && runs_far(range)) return true;
    }
    return false;
  }

  // What is worth an array, with what is known of its slots; conditions around it left out.
  std::map<ExprId, Facts> find(const Clause& clause) {
    std::map<ExprId, Facts> out;
    auto computed = [](const Node& n) {
      return std::holds_alternative<Apply>(n) || std::holds_alternative<Reduce>(n);
    };
    for_each_with_facts(m, clause, computed, [&](ExprId e, const Facts& facts) {
      if (e == clause.body || !is_float(m[e].type) || !repeated(e, facts)) return;
      if (cost(m, e) < static_cast<uint64_t>(tuning.invariant_cost)) return;
      Facts plain;
      plain.entry = facts.entry;
      plain.slots = facts.slots;
      if (total(m, e, plain, Overflow::Wraps)) out.try_emplace(e, std::move(plain));
    });
    return out;
  }

  bool contains(ExprId body, ExprId e) const {
    bool found = false;
    for_each_node(m, body, [&](ExprId x) { found |= x == e; });
    return found;
  }

  bool clause(FamilyId id, size_t number) {
    const Family f = m[id];
    // Operands of statements of their own stay plain.
    if (has_factor(m, f.clauses[number].body) || classify_moved(m, f.clauses[number])) return false;
    bool changed = false;
    const std::map<ExprId, Facts> found = find(f.clauses[number]);
    // Operands are older than what is made of them: the largest expressions come first.
    for (auto it = found.rbegin(); it != found.rend(); ++it) {
      const auto& [e, facts] = *it;
      const ExprId body = m[id].clauses[number].body;
      if (!contains(body, e)) continue;
      std::vector<Symbol> names = coordinate_names(f);
      names.resize(facts.slots.size());
      ExprId read = hoist(m, text(f.name) + "_part", e, {}, facts, names, m[e].span);
      if (!read) continue;
      m.families[id].clauses[number].body =
          rewrite(m, body, [&, e = e](ExprId x) { return x == e ? read : x; });
      changed = true;
    }
    return changed;
  }
};

}  // namespace

bool isolate_invariants(Module& m, const std::vector<FamilyId>& wanted, const Tuning& tuning) {
  Invariants work{m, tuning};
  bool changed = false;
  for (FamilyId id : families_of(schedule(m, wanted).steps)) {
    if (m[id].kind != Family::Kind::Defined) continue;
    for (size_t c = 0; c < m[id].clauses.size(); ++c) changed |= work.clause(id, c);
  }
  return changed;
}

}  // namespace ein::optimise
