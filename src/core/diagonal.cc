#include "core/diagonal.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/build.h"
#include "core/rewrite.h"

namespace ein::core {
namespace {

using Places = std::vector<std::vector<ExprId>>;  // the indices of every access to one family

// Accesses by family; `whole` are those that something else than an access needs.
void collect(const Module& m, std::unordered_map<FamilyId, Places>& reads,
             std::unordered_set<FamilyId>& whole) {
  std::unordered_set<ExprId> seen;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for_each_body(m, FamilyId(i), [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        if (!seen.insert(e).second) return;
        if (const auto* a = get_if<Access>(m, e)) {
          reads[a->family].push_back(a->at);
          for (ExprId at : a->at) {  // a read inside its own index cannot be rewritten in one go
            for_each_node(m, at, [&](ExprId x) {
              const auto* inner = get_if<Access>(m, x);
              if (inner && inner->family == a->family) whole.insert(a->family);
            });
          }
        }
        if (const auto* r = get_if<Request>(m, e)) {
          whole.insert(r->num);
          whole.insert(r->den);
        }
      });
    });
  }
  for (const Effect& e : m.effects) {
    whole.insert(e.cond);
    for (const Piece& p : e.pieces) whole.insert(p.value);
  }
}

// Two coordinates that every read gives one index and every clause one range.
std::optional<std::pair<size_t, size_t>> diagonal(const Family& f, const Places& reads) {
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

void drop(Module& m, FamilyId id, size_t p, size_t q) {
  Family& f = m.families[id];
  auto rank = static_cast<uint32_t>(f.coords.size());
  std::vector<ExprId> with(rank);
  for (uint32_t n = 0; n < rank; ++n) {
    with[n] = slot(m, n == q ? static_cast<uint32_t>(p) : n > q ? n - 1 : n);
  }
  auto without = [&](auto& list) { list.erase(list.begin() + static_cast<ptrdiff_t>(q)); };
  for (Clause& c : f.clauses) {
    without(c.box);
    c.body = substitute(m, c.body, with, rank - 1);
  }
  without(f.coords);
  rewrite_all(m, [&](ExprId root) {
    return rewrite(m, root, [&](ExprId e) {
      const auto* a = get_if<Access>(m, e);
      if (!a || a->family != id || a->at.size() != rank) return e;
      std::vector<ExprId> at = a->at;
      without(at);
      return access(m, id, std::move(at), m[e].span);
    });
  });
}

bool may_repeat(const Family& f) {
  if (!f.generated || f.kind != Family::Kind::Defined) return false;
  return diagonal(f, {}).has_value();
}

bool drop_one(Module& m) {
  if (std::none_of(m.families.begin(), m.families.end(), may_repeat)) return false;
  std::unordered_map<FamilyId, Places> reads;
  std::unordered_set<FamilyId> whole;
  collect(m, reads, whole);
  for (uint32_t i = static_cast<uint32_t>(m.families.size()); i-- > 0;) {
    const Family& f = m[FamilyId(i)];
    auto found = reads.find(FamilyId(i));
    if (!may_repeat(f) || whole.count(FamilyId(i)) || found == reads.end()) continue;
    if (auto at = diagonal(f, found->second)) {
      drop(m, FamilyId(i), at->first, at->second);
      return true;
    }
  }
  return false;
}

}  // namespace

void drop_diagonals(Module& m) {
  // What reads a family on the diagonal may have to lose a coordinate first.
  while (drop_one(m)) {}
}

}  // namespace ein::core
