#include "optimise/unused.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"

namespace ein::optimise {
namespace {

using namespace core;

using Coordinate = std::pair<FamilyId, uint32_t>;  // a coordinate of a family
using Coordinates = std::set<Coordinate>;

bool is_whole(const Module& m, const Family& f, uint32_t q) {
  return std::all_of(f.clauses.begin(), f.clauses.end(), [&](const Clause& c) {
    return const_int(m, c.box[q].lo) == 0 && c.box[q].hi == f.coords[q].extent;
  });
}

// Whether the coordinate certainly has addresses. If it is dropped, the cells are computed even at
// extent 0.
bool surely_has_cells(Module& m, const Coordinate& p, const Facts& facts) {
  return proves_lt(m, int_lit(m, 0), m[p.first].coords[p.second].extent, facts);
}

bool is_total(Module& m, FamilyId id) {
  const Family f = m[id];
  return std::all_of(f.clauses.begin(), f.clauses.end(), [&](const Clause& c) {
    return total(m, c.body, clause_facts(m, c), Overflow::Wraps);
  });
}

struct Finder {
  Module& m;
  Coordinates open = {};  // coordinates that may still be dropped
  // For each coordinate, the coordinates that pass their index on to it.
  std::map<Coordinate, std::vector<Coordinate>> handed = {};
  std::vector<Coordinate> needed = {};  // coordinates whose index is used for more than that

  void note_uses(FamilyId id) {
    const Family& f = m[id];
    auto need = [&](uint32_t q) {
      if (q < f.rank()) needed.push_back({id, q});
    };
    for (const Clause& c : f.clauses) {
      need(slot_of(m, c.body));
      for_each_node(m, c.body, [&](ExprId e) {
        if (const auto* a = get_if<Access>(m, e)) {
          for (uint32_t k = 0; k < a->at.size(); ++k) {
            uint32_t q = slot_of(m, a->at[k]);
            if (q < f.rank()) handed[{a->family, k}].push_back({id, q});
          }
          return;
        }
        for_each_child(m, e, [&](ExprId x) { need(slot_of(m, x)); });
        if (const auto* r = get_if<Reduce>(m, e)) {
          for (const Route& route : r->routes) need(route.slot);
        }
      });
    }
  }

  // Keeps coordinates that are not read in bounds everywhere. A read is in bounds if it uses a
  // coordinate of the reader with the same extent.
  void check_reads(FamilyId reader) {
    const Family& f = m[reader];
    for_each_body(m, reader, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        const auto* a = get_if<Access>(m, e);
        for (uint32_t k = 0; a && k < a->at.size(); ++k) {
          if (!open.contains({a->family, k})) continue;
          uint32_t n = slot_of(m, a->at[k]);
          bool inside = n < f.rank() && f.coords[n].extent == m[a->family].coords[k].extent;
          if (!inside) open.erase({a->family, k});
        }
      });
    });
  }

  void run(std::set<FamilyId> keep) {
    for (const Lockstep& l : m.locksteps) {
      for (const auto& member : l.members) keep.insert(member.family);
    }
    for (uint32_t i = 0; i < m.families.size(); ++i) {
      FamilyId id(i);
      const Family f = m[id];
      keep.insert(f.with.begin(), f.with.end());
      if (!f.generated || f.kind != Family::Kind::Defined || !f.with.empty()) continue;
      for (uint32_t q = 0; q < f.rank(); ++q) {
        if (is_whole(m, f, q)) open.insert({id, q});
      }
    }
    std::erase_if(open, [&](const Coordinate& p) { return keep.contains(p.first); });
    for (uint32_t i = 0; i < m.families.size() && !open.empty(); ++i) check_reads(FamilyId(i));
    std::set<FamilyId> owners;
    for (const Coordinate& p : open) owners.insert(p.first);
    for (FamilyId id : owners) note_uses(id);
    for (const auto& [to, from] : handed) {
      if (!open.contains(to)) needed.insert(needed.end(), from.begin(), from.end());
    }
    while (!needed.empty()) {
      Coordinate p = needed.back();
      needed.pop_back();
      if (open.erase(p) == 0) continue;
      if (auto it = handed.find(p); it != handed.end()) {
        needed.insert(needed.end(), it->second.begin(), it->second.end());
      }
    }
  }
};

void drop(Module& m, const Coordinates& places) {
  // The dropped coordinates, in ascending order.
  std::map<FamilyId, std::vector<uint32_t>> by_family;
  for (const Coordinate& p : places) by_family[p.first].push_back(p.second);
  auto without = [](auto& list, const std::vector<uint32_t>& gone) {
    for (size_t i = gone.size(); i-- > 0;) list.erase(list.begin() + gone[i]);
  };
  // Reads are rewritten first, while all families still have their old ranks.
  rewrite_all(m, [&](ExprId root) {
    std::unordered_map<ExprId, ExprId> memo;
    std::function<ExprId(ExprId)> visit = [&](ExprId e) -> ExprId {
      if (auto it = memo.find(e); it != memo.end()) return it->second;
      ExprId out = e;
      auto found = by_family.end();
      if (const auto* a = get_if<Access>(m, e)) found = by_family.find(a->family);
      if (found == by_family.end()) {
        out = map_children(m, e, visit);
      } else {
        Access a = *get_if<Access>(m, e);
        for (ExprId& x : a.at) x = visit(x);
        without(a.at, found->second);
        std::vector<Coord> all = m[a.family].coords;
        // Keeps as many coordinates as reads now have indices.
        without(m.families[a.family].coords, found->second);
        out = access(m, a.family, a.at, m[e].span);
        m.families[a.family].coords = std::move(all);
      }
      return memo[e] = out;
    };
    return visit(root);
  });
  std::map<FamilyId, uint32_t> ranks;  // ranks before dropping
  for (const auto& [id, gone] : by_family) {
    ranks[id] = m[id].rank();
    without(m.families[id].coords, gone);
  }
  for (const auto& [id, gone] : by_family) {
    Family& f = m.families[id];
    std::vector<ExprId> with;
    for (uint32_t n = 0, kept = 0; n < ranks[id]; ++n) {
      bool goes = std::find(gone.begin(), gone.end(), n) != gone.end();
      with.push_back(goes ? int_lit(m, 0) : slot(m, kept++));
    }
    for (Clause& c : f.clauses) {
      without(c.box, gone);
      c.body = substitute(m, c.body, with, f.rank());
    }
  }
}

}  // namespace

void drop_unused_coordinates(Module& m, const std::vector<FamilyId>& wanted) {
  std::set<FamilyId> keep(wanted.begin(), wanted.end());
  Facts facts;
  facts.entry = entry_facts(m);
  for (bool again = true; again;) {
    Finder finder{m};
    finder.run(keep);
    if (finder.open.empty()) return;
    Module without = m;
    drop(without, finder.open);
    again = false;
    for (const Coordinate& p : finder.open) {
      if (surely_has_cells(m, p, facts) || is_total(without, p.first)) continue;
      again |= keep.insert(p.first).second;
    }
    if (!again) m = std::move(without);
  }
}

}  // namespace ein::optimise
