// Inlining, as a rewrite of Core: an access to an inlined family becomes the body of the clause
// that the access is proven to fall into, with the family's coordinates replaced by the indices.
// One family after the other, so a group of families that read each other always keeps at least one
// member: when its turn comes, it reads itself.
#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "core/build.h"
#include "core/cost.h"
#include "core/groups.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "optimise/classify.h"
#include "optimise/factors.h"
#include "optimise/passes.h"

namespace ein::optimise {
namespace {

using namespace core;

// One read of the candidate, in one context.
struct Use {
  FamilyId reader;
  size_t clause;
  ExprId access;
  size_t in_clause;  // the clause of the candidate that it reads
  bool every_cell;   // it is read once per iteration of everything around it
  bool feeds_contraction;
};

struct Uses {
  std::vector<Use> all;
  bool legal = true;
};

bool is_access(const Node& n) { return std::holds_alternative<Access>(n); }

// The clause of `family` that the access falls into, if that can be proven.
std::optional<size_t> clause_of(Module& m, const Access& access, const Facts& facts) {
  const Family& f = m[access.family];
  for (size_t c = 0; c < f.clauses.size(); ++c) {
    bool inside = in_bounds(m, access, facts);
    for (size_t k = 0; inside && k < access.at.size(); ++k) {
      const Range& r = f.clauses[c].box[k];
      inside = proves_le(m, r.lo, access.at[k], facts) && proves_lt(m, access.at[k], r.hi, facts);
    }
    if (inside) return c;
  }
  return std::nullopt;
}

// Whether the access's indices use all slots in scope (as far as the facts name them). Then
// inlining repeats no computation.
bool uses_all_slots(const Module& m, const Access& access, const Facts& facts) {
  uint64_t used = 0;
  for (ExprId e : access.at) used |= m[e].free;
  return used == (facts.slots.size() >= 64 ? ~0ull : (1ull << facts.slots.size()) - 1);
}

// Which families read which, and how many nodes each family has. Updated when bodies change.
struct Readers {
  // How many nodes a clause may grow to, and also how many are examined to decide. Every step here
  // walks whole bodies, so a chain of definitions that all became one expression would take
  // quadratic time. Beyond this size inlining gains little.
  size_t most_nodes;
  std::map<FamilyId, std::set<FamilyId>> of = {}, reads = {};
  std::map<FamilyId, size_t> nodes = {}, at_first = {}, looked_at = {};

  void add(const Module& m, FamilyId reader) {
    forget(reader);
    size_t count = 0;
    for_each_body(m, reader, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        ++count;
        const auto* a = get_if<Access>(m, e);
        if (!a) return;
        of[a->family].insert(reader);
        reads[reader].insert(a->family);
      });
    });
    nodes[reader] = count;
  }

  void forget(FamilyId reader) {
    auto it = reads.find(reader);
    if (it == reads.end()) return;
    for (FamilyId read : it->second) of[read].erase(reader);
    reads.erase(it);
  }

  // Whether the candidate and its readers stay within the limit: how large a reader becomes, and
  // how much of it must be examined for everything that it reads. A clause that is long as written
  // may stay long.
  bool small(FamilyId candidate) {
    size_t own = nodes[candidate];
    if (own > most_nodes) return false;
    const std::set<FamilyId>& by = of[candidate];
    return std::all_of(by.begin(), by.end(), [&](FamilyId reader) {
      size_t now = nodes[reader], written = at_first.try_emplace(reader, now).first->second;
      return now + own <= std::max(most_nodes, 2 * written) &&
             looked_at[reader] + now <= 64 * most_nodes + 8 * written;
    });
  }
  void look_at(FamilyId candidate) {
    for (FamilyId reader : of[candidate]) looked_at[reader] += nodes[reader];
  }
};

Uses find_uses(Module& m, FamilyId candidate, const std::set<FamilyId>& readers,
               const Tuning& tuning) {
  Uses out;
  for (FamilyId reader : readers) {
    const Family family = m[reader];
    for (ExprId cell : family.cells) {
      for_each_node(m, cell, [&](ExprId e) {
        const auto* a = get_if<Access>(m, e);
        if (a && a->family == candidate) out.legal = false;  // array literals are not inlined into
      });
    }
    for (size_t c = 0; c < family.clauses.size(); ++c) {
      uint64_t coords = family.rank() >= 64 ? ~0ull : (1ull << family.rank()) - 1;
      // Whose operands must stay plain reads.
      bool factor = has_factor(m, family.clauses[c].body) || classify_moved(m, family.clauses[c]);
      auto contraction = classify(m, family.clauses[c], coords, tuning);
      for_each_with_facts(m, family.clauses[c], is_access, [&](ExprId e, const Facts& facts) {
        const Access access = std::get<Access>(m[e].node);
        if (access.family != candidate || !out.legal) return;
        out.legal = !factor;
        auto in = clause_of(m, access, facts);
        if (!in || reader == candidate) {
          out.legal = false;
          return;
        }
        bool operand = contraction && (contraction->a == e || contraction->b == e);
        out.all.push_back({reader, c, e, *in, uses_all_slots(m, access, facts), operand});
      });
    }
  }
  // One node may appear in several contexts; all of them get the same replacement.
  std::map<std::tuple<FamilyId, size_t, ExprId>, size_t> chosen;
  for (const Use& u : out.all) {
    auto [it, fresh] = chosen.try_emplace({u.reader, u.clause, u.access}, u.in_clause);
    if (!fresh && it->second != u.in_clause) out.legal = false;
  }
  return out;
}

bool legal_bodies(Module& m, const Family& f, Overflow overflow) {
  for (const Clause& c : f.clauses) {
    if (has_reduce(m, c.body) || classify_moved(m, c) ||
        !total(m, c.body, clause_facts(m, c), overflow))
      return false;
  }
  return true;
}

bool worthwhile(const Module& m, const Family& f, const Uses& uses, uint64_t trivial) {
  uint64_t most = 0;
  for (const Clause& c : f.clauses) most = std::max(most, cost(m, c.body));
  bool renames = f.clauses.size() == 1 && get_if<Access>(m, f.clauses[0].body) != nullptr;
  for (const Use& u : uses.all) {
    // A contraction needs plain operands. A family that only renames another one is still plain.
    if (u.feeds_contraction && !renames) return false;
    if (most > trivial && !(uses.all.size() == 1 && u.every_cell)) return false;
  }
  return true;
}

void replace(Module& m, FamilyId candidate, const Uses& uses) {
  std::map<std::pair<FamilyId, size_t>, std::map<ExprId, size_t>> by_clause;
  for (const Use& u : uses.all) by_clause[{u.reader, u.clause}][u.access] = u.in_clause;
  for (const auto& [where, accesses] : by_clause) {
    ExprId body = m[where.first].clauses[where.second].body;
    // The indices of an access may contain reads of the candidate, so a rebuilt access is
    // recognised by its family, and its clause is looked up by the original node.
    std::unordered_map<ExprId, ExprId> memo;
    std::function<ExprId(ExprId)> visit = [&](ExprId e) {
      if (auto it = memo.find(e); it != memo.end()) return it->second;
      ExprId rebuilt = map_children(m, e, visit);
      if (auto it = accesses.find(e); it != accesses.end()) {
        const Access now = std::get<Access>(m[rebuilt].node);
        ExprId clause_body = m[candidate].clauses[it->second].body;
        // A body without reductions has no binders to renumber.
        rebuilt = substitute(m, clause_body, now.at, static_cast<uint32_t>(now.at.size()));
      }
      memo.emplace(e, rebuilt);
      return rebuilt;
    };
    m.families[where.first].clauses[where.second].body = visit(body);
  }
}

}  // namespace

Program inline_families(Program p, const Wish& wish, Overflow overflow) {
  const Module before = p.module;
  Module& m = p.module;
  std::set<FamilyId> keep(p.wanted.begin(), p.wanted.end());
  // Unscheduled families do not matter: they neither read nor are read.
  std::vector<FamilyId> reached = families_of(schedule(m, p.wanted).steps);
  const auto trivial = static_cast<uint64_t>(p.tuning.inline_cost);
  Readers readers{static_cast<size_t>(p.tuning.inline_nodes)};
  for (FamilyId f : reached) readers.add(m, f);
  for (FamilyId candidate : reached) {
    const Family family = m[candidate];
    if (family.kind != Family::Kind::Defined || keep.contains(candidate)) continue;
    if (!family.with.empty()) continue;
    std::optional<bool> asked = wish ? wish(candidate) : std::nullopt;
    if (asked && !*asked) continue;
    if (!readers.small(candidate)) continue;
    readers.look_at(candidate);
    if (!legal_bodies(m, family, overflow)) continue;
    Uses uses = find_uses(m, candidate, readers.of[candidate], p.tuning);
    if (!uses.legal || uses.all.empty()) continue;
    if (!asked && (p.ordered.contains(candidate) || !worthwhile(m, family, uses, trivial)))
      continue;
    replace(m, candidate, uses);
    readers.forget(candidate);
    std::set<FamilyId> changed;  // a family may read the candidate thousands of times
    for (const Use& u : uses.all) changed.insert(u.reader);
    for (FamilyId reader : changed) readers.add(m, reader);
    p.inlined.push_back(candidate);
  }
  // Inlining may have combined reads into an expression whose order can no longer be proven.
  if (schedule(m, p.wanted).cycle) {
    p.module = before;
    p.inlined.clear();
  }
  return p;
}

}  // namespace ein::optimise
