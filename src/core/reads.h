// What a family reads, and where; which cells its clauses cover.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/build.h"
#include "core/core.h"
#include "core/rewrite.h"

namespace ein::core {

struct CellRead {
  FamilyId family;
  std::vector<ExprId> at;
};

inline void note_reads(const Module& m, ExprId body, std::vector<CellRead>& out) {
  for_each_node(m, body, [&](ExprId e) {
    if (const auto* a = get_if<Access>(m, e)) out.push_back({a->family, a->at});
  });
}

inline std::vector<CellRead> reads_of(const Module& m, FamilyId id) {
  std::vector<CellRead> out;
  for_each_body(m, id, [&](ExprId body) { note_reads(m, body, out); });
  return out;
}

// Do all clauses cover coordinate k from end to end?
inline bool whole(const Module& m, FamilyId id, uint32_t k) {
  const Family& f = m[id];
  return std::all_of(f.clauses.begin(), f.clauses.end(), [&](const Clause& c) {
    return const_int(m, c.box[k].lo) == 0 && c.box[k].hi == f.coords[k].extent;
  });
}

}  // namespace ein::core
