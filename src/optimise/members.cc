#include "optimise/members.h"

#include <algorithm>

#include "core/build.h"
#include "core/reads.h"
#include "core/rewrite.h"
#include "core/total.h"

namespace ein::optimise {
namespace {

using namespace core;

struct MemberSearch {
  Module& m;
  const Sequence& q;
  const Tuning& tuning;
  const Overflow overflow;

  std::optional<uint32_t> step_of(FamilyId id) const {
    for (const auto& member : q.members) {
      if (member.family == id) return member.position;
    }
    return std::nullopt;
  }

  // For each family, the coordinate that distinguishes the members, if for the first family that is
  // `k`.
  std::optional<std::map<FamilyId, uint32_t>> members_along(FamilyId first, uint32_t k) const {
    const ExprId extent = m[first].coords[k].extent;
    std::map<FamilyId, uint32_t> out{{first, k}};
    for (bool more = true; more;) {
      more = false;
      for (const auto& reader : q.members) {
        for (const CellRead& r : reads_of(m, reader.family)) {
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

  // How many iterations a short loop has; nothing for other loops.
  std::optional<int64_t> times(const Range& r) const {
    auto lo = const_int(m, r.lo), hi = const_int(m, r.hi);
    if (!lo || !hi || *hi - *lo > tuning.unrolled_iterations) return std::nullopt;
    return std::max<int64_t>(*hi - *lo, 1);
  }

  // Adds to `all` the nodes evaluated by `often` evaluations of `e`. False if a loop inside is not
  // short, or if there are too many nodes.
  bool count(ExprId e, int64_t often, int64_t& all) const {
    all += often;
    if (get_if<Call>(m, e) || all > tuning.member_nodes) return false;
    if (const auto* r = get_if<Reduce>(m, e)) {
      for (const Range& range : r->over) {
        auto n = times(range);
        if (!n) return false;
        often *= *n;
        if (often > tuning.member_nodes) return false;
      }
    }
    bool ok = true;
    for_each_child(m, e, [&](ExprId child) { ok = ok && count(child, often, all); });
    return ok;
  }

  // The operations of one step of one member; nothing if a loop inside is not short.
  std::optional<int64_t> work(const std::map<FamilyId, uint32_t>& along) {
    int64_t all = 0;
    for (const auto& [id, at] : along) {
      const Family f = m[id];
      for (const Clause& c : f.clauses) {
        int64_t cells = 1;
        for (uint32_t k = 0; k < f.rank(); ++k) {
          if (k == at || k == *step_of(id)) continue;
          auto n = times(c.box[k]);
          if (!n) return std::nullopt;
          cells *= *n;
          if (cells > tuning.member_nodes) return std::nullopt;
        }
        if (!count(c.body, cells, all) || !total(m, c.body, clause_facts(m, c), overflow)) {
          return std::nullopt;
        }
      }
    }
    return all;
  }
};

}  // namespace

std::optional<Members> members_of(Module& m, const Sequence& q, int64_t fewest,
                                  const Tuning& tuning, Overflow overflow) {
  MemberSearch search{m, q, tuning, overflow};
  for (const core::Step& s : q.body) {
    const auto* c = std::get_if<Compute>(&s);
    if (!c || !search.step_of(c->family)) return std::nullopt;
  }
  const FamilyId first = q.members[0].family;
  for (uint32_t k = 0; k < m[first].rank(); ++k) {
    if (k == q.members[0].position) continue;
    auto extent = const_int(m, m[first].coords[k].extent);
    if (extent && *extent < fewest) continue;
    auto along = search.members_along(first, k);
    auto operations = along ? search.work(*along) : std::nullopt;
    if (!operations) continue;
    return Members{std::move(*along), *operations};
  }
  return std::nullopt;
}

}  // namespace ein::optimise
