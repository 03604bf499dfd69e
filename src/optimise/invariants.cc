#include "optimise/invariants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

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

constexpr int64_t kMostLookedAt = 100'000;  // the most nodes of a clause that is searched

struct Invariants {
  Module& m;
  const Tuning& tuning;

  bool runs_far(const Range& r) const {
    auto lo = const_int(m, r.lo), hi = const_int(m, r.hi);
    return !lo || !hi || *hi - *lo > tuning.unrolled_iterations;
  }

  // Whether a long loop that the expression does not depend on lies outside of a loop that it
  // depends on.
  bool repeated(ExprId e, const Facts& facts) const {
    const int32_t level = m[e].level();
    for (int32_t s = 0; s < level; ++s) {
      const Range& range = facts.slots[static_cast<size_t>(s)];
      if (!(m[e].free >> s & 1) && range.lo && range.hi && runs_far(range)) return true;
    }
    return false;
  }

  // The expressions that are repeated, with the facts about their slots, but without the conditions
  // around them. If an expression appears in two reductions that give a slot different ranges, it
  // stays where it is.
  std::unordered_map<ExprId, Facts> find(const Clause& clause) {
    std::unordered_map<ExprId, Facts> out;
    std::unordered_set<ExprId> two_ranges;
    auto computed = [](const Node& n) {
      return std::holds_alternative<Apply>(n) || std::holds_alternative<Reduce>(n);
    };
    for_each_with_facts(m, clause, computed, [&](ExprId e, const Facts& facts) {
      if (e == clause.body || !is_float(m[e].type) || !repeated(e, facts)) return;
      Facts plain;
      plain.entry = facts.entry;
      plain.slots = facts.slots;
      auto [it, fresh] = out.try_emplace(e, std::move(plain));
      if (!fresh && !same_ranges(m, e, it->second.slots, facts.slots)) two_ranges.insert(e);
    });
    for (ExprId e : two_ranges) out.erase(e);
    return out;
  }

  // The repeated expressions that are worth an array and not part of a larger one. The search stops
  // after a while, so in very long clauses some are missed.
  std::vector<ExprId> outermost(ExprId body, const std::unordered_map<ExprId, Facts>& repeated) {
    std::vector<ExprId> out, open{body};
    std::unordered_set<ExprId> seen{body};
    int64_t budget = kMostLookedAt;
    while (!open.empty()) {
      const ExprId e = open.back();
      open.pop_back();
      auto found = repeated.find(e);
      if (found != repeated.end() && budget > 0) {
        for_each_node(m, e, [&](ExprId) { --budget; });
        if (cost(m, e) >= static_cast<uint64_t>(tuning.invariant_cost) &&
            total(m, e, found->second, Overflow::Wraps)) {
          out.push_back(e);
          continue;
        }
      }
      for_each_child(m, e, [&](ExprId child) {
        if (seen.insert(child).second) open.push_back(child);
      });
    }
    return out;
  }

  bool clause(FamilyId id, size_t number) {
    const Family f = m[id];
    const Clause& clause = f.clauses[number];
    // Matrix functions and moves become statements of their own, whose operands must stay plain.
    if (has_factor(m, clause.body) || classify_moved(m, clause)) return false;
    const std::unordered_map<ExprId, Facts> found = find(clause);
    if (found.empty()) return false;
    std::unordered_map<ExprId, ExprId> by;
    for (ExprId e : outermost(clause.body, found)) {
      const Facts& facts = found.at(e);
      std::vector<Symbol> names = coordinate_names(f);
      names.resize(facts.slots.size());
      if (ExprId read = hoist(m, text(f.name) + "_part", e, {}, facts, names, m[e].span))
        by[e] = read;
    }
    if (by.empty()) return false;
    m.families[id].clauses[number].body = rewrite(m, clause.body, [&](ExprId x) {
      auto it = by.find(x);
      return it == by.end() ? x : it->second;
    });
    return true;
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
