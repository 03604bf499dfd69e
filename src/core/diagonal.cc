#include "core/diagonal.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/build.h"
#include "core/rewrite.h"
#include "core/solve_gates.h"

namespace ein::core {
namespace {

using Addresses = std::vector<std::vector<ExprId>>;  // the indices of every access to one family

struct Reads {
  std::unordered_map<FamilyId, Addresses> at;
  std::unordered_set<FamilyId> whole;              // used by something other than an access
  std::set<std::pair<FamilyId, FamilyId>> nested;  // a family, and one read in an index of it
};

Reads collect(const Module& m) {
  Reads out;
  std::unordered_set<ExprId> seen;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for_each_body(m, FamilyId(i), [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        if (!seen.insert(e).second) return;
        if (const auto* a = get_if<Access>(m, e)) {
          out.at[a->family].push_back(a->at);
          for (ExprId at : a->at) {
            for_each_node(m, at, [&](ExprId x) {
              if (const auto* inner = get_if<Access>(m, x))
                out.nested.insert({a->family, inner->family});
            });
          }
        }
        if (const auto* r = get_if<Request>(m, e)) {
          out.whole.insert(r->num);
          out.whole.insert(r->den);
        }
      });
    });
  }
  for (const Effect& e : m.effects) {
    out.whole.insert(e.cond);
    for (const Piece& p : e.pieces) out.whole.insert(p.value);
  }
  return out;
}

// Two coordinates that have the same index in every read and the same range in every clause.
std::optional<std::pair<size_t, size_t>> diagonal(const Family& f, const Addresses& reads) {
  for (size_t p = 0; p < f.coords.size(); ++p) {
    for (size_t q = p + 1; q < f.coords.size(); ++q) {
      auto one_range = [&](const Clause& c) {
        return c.box[p].lo == c.box[q].lo && c.box[p].hi == c.box[q].hi;
      };
      auto one_index = [&](const std::vector<ExprId>& at) { return at[p] == at[q]; };
      if (f.coords[p].extent == f.coords[q].extent &&
          std::all_of(f.clauses.begin(), f.clauses.end(), one_range) &&
          std::all_of(reads.begin(), reads.end(), one_index)) {
        return std::pair(p, q);
      }
    }
  }
  return std::nullopt;
}

// By family: two coordinates that always agree. The second is dropped.
using Drops = std::map<FamilyId, std::pair<size_t, size_t>>;

void drop(Module& m, const Drops& drops) {
  auto without = [](auto& list, size_t q) { list.erase(list.begin() + static_cast<ptrdiff_t>(q)); };
  std::map<FamilyId, size_t> ranks;  // before dropping
  for (const auto& [id, pair] : drops) {
    const auto [p, q] = pair;
    Family& f = m.families[id];
    auto rank = static_cast<uint32_t>(f.coords.size());
    ranks[id] = rank;
    std::vector<ExprId> with(rank);
    for (uint32_t n = 0; n < rank; ++n) {
      with[n] = slot(m, n == q ? static_cast<uint32_t>(p) : n > q ? n - 1 : n);
    }
    for (Clause& c : f.clauses) {
      without(c.box, q);
      c.body = substitute(m, c.body, with, rank - 1);
    }
  }
  for (const auto& [id, pair] : drops) without(m.families[id].coords, pair.second);
  rewrite_all(m, [&](ExprId root) {
    return rewrite(m, root, [&](ExprId e) {
      const auto* a = get_if<Access>(m, e);
      auto found = a ? drops.find(a->family) : drops.end();
      if (found == drops.end() || a->at.size() != ranks.at(a->family)) return e;
      FamilyId id = a->family;
      std::vector<ExprId> at = a->at;
      without(at, found->second.second);
      return access(m, id, std::move(at), m[e].span);
    });
  });
  for (const auto& [id, pair] : drops) solve_gates(m, id);  // routes may have become gates
}

bool may_repeat(const Family& f) {
  if (!f.generated || f.kind != Family::Kind::Defined) return false;
  return diagonal(f, {}).has_value();
}

// Families that can be rewritten together: dropping a coordinate of one makes indices of others
// equal, never different. If one family is read in an index of another, only one of the two is
// rewritten at a time.
Drops find_drops(const Module& m) {
  Drops out;
  if (std::none_of(m.families.begin(), m.families.end(), may_repeat)) return out;
  const Reads reads = collect(m);
  for (uint32_t i = static_cast<uint32_t>(m.families.size()); i-- > 0;) {
    FamilyId id(i);
    auto found = reads.at.find(id);
    if (found == reads.at.end() || !may_repeat(m[id]) || reads.whole.contains(id)) continue;
    auto apart = [&](FamilyId other) {
      return !reads.nested.contains({id, other}) && !reads.nested.contains({other, id});
    };
    if (!apart(id) ||
        !std::all_of(out.begin(), out.end(), [&](const auto& x) { return apart(x.first); }))
      continue;
    if (auto at = diagonal(m[id], found->second)) out[id] = *at;
  }
  return out;
}

}  // namespace

void drop_diagonals(Module& m) {
  // A reader may have to lose a coordinate before its own reads are on the diagonal.
  for (Drops drops = find_drops(m); !drops.empty(); drops = find_drops(m)) drop(m, drops);
}

}  // namespace ein::core
