// Inputs that stream: of a file, only the rows (the cells at one address of the leading coordinate)
// that one step of an outermost Sequence reads are in memory. Possible where every read of the input
// is made in such a step, at a row that is the sum of an expression of the step and a rest within
// constant bounds: `x[s]`, `x[s - 1]`, `x[s % epochs]`, `x[32 * s + i]` with `i in 0..32`. The rows of
// all reads of a step then lie in a window of constant length, which lowering moves before the step.
//
// A value that is no recurrence but reads rows in that way is computed step by step as well.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

using SequenceKey = std::pair<core::FamilyId, uint32_t>;  // the first member and its coordinate
SequenceKey key(const core::Sequence& q);

struct Stream {
  int64_t window = 0;                         // rows in memory at a time
  std::map<SequenceKey, core::ExprId> first;  // of them, by Sequence: slot 0 is its step
};

struct Streams {
  std::unordered_map<core::FamilyId, Stream> inputs;
  std::unordered_map<core::ExprId, core::ExprId> rows;  // by access: which row of the window
  std::map<core::FamilyId, std::string> whole;          // why the others do not stream
};

// Which of `candidates` stream. `schedule` becomes one in which what reads them runs step by step.
Streams find_streams(core::Module& m, core::Schedule& schedule,
                     const std::vector<core::FamilyId>& wanted,
                     const std::vector<core::FamilyId>& candidates);

}  // namespace ein::plan
