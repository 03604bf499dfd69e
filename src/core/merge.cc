#include "core/merge.h"

#include <map>

#include "core/build.h"
#include "core/rewrite.h"

namespace ein::core {
namespace {

// What a family means, as ids; its name and those of its coordinates do not count.
std::vector<uint32_t> meaning(const Module& m, FamilyId id) {
  const Family& f = m[id];
  std::vector<uint32_t> out{static_cast<uint32_t>(f.dtype), f.rank()};
  for (const Coord& c : f.coords) out.push_back(c.extent.v);
  for (const Clause& c : f.clauses) {
    for (const Range& r : c.box) out.insert(out.end(), {r.lo.v, r.hi.v});
    out.push_back(c.body.v);
  }
  return out;
}

}  // namespace

void merge_equal(Module& m) {
  for (;;) {
    std::map<std::vector<uint32_t>, FamilyId> first;
    std::map<FamilyId, FamilyId> twin;
    for (bool generated : {false, true}) {  // a name the user wrote is the one that stays
      for (uint32_t i = 0; i < m.families.size(); ++i) {
        FamilyId id(i);
        const Family& f = m[id];
        if (f.generated != generated || f.kind != Family::Kind::Defined || f.clauses.empty() ||
            !f.with.empty())
          continue;
        auto [it, fresh] = first.try_emplace(meaning(m, id), id);
        if (!fresh && generated) twin[id] = it->second;
      }
    }
    bool changed = false;
    for (uint32_t i = 0; i < m.families.size(); ++i) {
      rewrite_family(m, FamilyId(i), [&](ExprId e) {
        return rewrite(m, e, [&](ExprId x) {
          const auto* a = get_if<Access>(m, x);
          auto it = a ? twin.find(a->family) : twin.end();
          if (it == twin.end()) return x;
          changed = true;
          return access(m, it->second, std::vector<ExprId>(a->at), m[x].span);
        });
      });
    }
    if (!changed) return;
  }
}

}  // namespace ein::core
