// Private to src/plan: what a family reads, and where.
#pragma once

#include <utility>
#include <vector>

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

}  // namespace ein::plan
