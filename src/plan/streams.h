// Inputs that stream: of their file, only the rows (the cells at one address of the leading
// coordinate) that one step of an outermost Sequence reads are in memory. That is possible if every
// read of the input happens in such a step, at a row that is the sum of an expression of the step
// and a rest within constant bounds: `x[s]`, `x[s - 1]`, `x[s % epochs]`, `x[32 * s + i]` with `i
// in 0..32`. Then all rows that a step reads lie in a window of constant length, and lowering moves
// the window before each step.
//
// A value that is not a recurrence but reads rows in that way is computed step by step as well.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

// The first member, and its coordinate of the steps.
using SequenceKey = std::pair<core::FamilyId, uint32_t>;
SequenceKey key(const core::Sequence& q);

struct Stream {
  int64_t window = 0;  // how many rows are in memory at a time
  // For each Sequence, the first of these rows; slot 0 is the step.
  std::map<SequenceKey, core::ExprId> first;
};

struct Streams {
  std::unordered_map<core::FamilyId, Stream> inputs;
  // For each access, the row within the window.
  std::unordered_map<core::ExprId, core::ExprId> rows;
  std::map<core::FamilyId, std::string> whole;  // why other candidates do not stream
};

// Which of `candidates` stream. Changes `schedule` so that what reads them runs step by step.
Streams find_streams(core::Module& m, core::Schedule& schedule,
                     const std::vector<core::FamilyId>& wanted,
                     const std::vector<core::FamilyId>& candidates);

}  // namespace ein::plan
