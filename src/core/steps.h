// How many steps of a recurrence are needed at once: what `ein check --facts` reports and what
// native code stores. A family of a Sequence whose old steps nobody reads any more lives in a ring of
// `kept()` steps along its outermost sequential coordinate.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/core.h"
#include "core/groups.h"

namespace ein::core {

struct SequentialCoordinate {
  uint32_t position = 0;
  bool downward = false;
};

// How a recurrence runs. Steps are those of its outermost coordinate. nullopt: no constant bounds
// the number, so it is all steps.
struct SequenceReport {
  std::vector<SequentialCoordinate> order;  // outermost first, at least one
  std::optional<int64_t> lookback;          // the largest distance to a step that the group reads
  std::optional<int64_t> tail;              // how many last steps are read from outside the group
  // Every read is at the reader's own step plus a constant or, from outside, at a closed
  // expression: no loop runs along the steps that are kept.
  bool by_step = true;

  std::optional<int64_t> kept() const;  // max(lookback + 1, tail)
};
using SequenceReports = std::unordered_map<FamilyId, SequenceReport>;

// For the families in the sequences of `order`; only the reads of `readers` count.
SequenceReports report_sequences(Module& m, const Schedule& order,
                                 const std::vector<FamilyId>& readers);

// Where a family's steps are stored: step t at t mod `kept` of coordinate `position`.
struct Ring {
  uint32_t position = 0;
  int64_t kept = 0;
};
// The families of a schedule for which a ring is enough. Families in `wanted` keep all their steps.
std::unordered_map<FamilyId, Ring> find_rings(Module& m, const Schedule& order,
                                              const std::vector<FamilyId>& wanted);

}  // namespace ein::core
