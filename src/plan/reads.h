// Private to src/plan: what a family reads, and where; which cells its clauses cover.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/build.h"
#include "core/core.h"
#include "core/rewrite.h"

namespace ein::plan {

struct Read {
  core::FamilyId family;
  std::vector<core::ExprId> at;
};

inline void note_reads(const core::Module& m, core::ExprId body, std::vector<Read>& out) {
  core::for_each_node(m, body, [&](core::ExprId e) {
    if (const auto* a = core::get_if<core::Access>(m, e)) out.push_back({a->family, a->at});
  });
}

inline std::vector<Read> reads_of(const core::Module& m, core::FamilyId id) {
  std::vector<Read> out;
  core::for_each_body(m, id, [&](core::ExprId body) { note_reads(m, body, out); });
  return out;
}

// Do all clauses cover coordinate k from end to end?
inline bool whole(const core::Module& m, core::FamilyId id, uint32_t k) {
  const core::Family& f = m[id];
  return std::all_of(f.clauses.begin(), f.clauses.end(), [&](const core::Clause& c) {
    return core::const_int(m, c.box[k].lo) == 0 && c.box[k].hi == f.coords[k].extent;
  });
}

}  // namespace ein::plan
