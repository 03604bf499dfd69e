// Recurrences of a few numbers that run for many members side by side: a coordinate that every read
// of the recurrence names as it is, so that no member reads another one. A batch of filters has such
// a coordinate, and so have trajectories with different starts.
#pragma once

#include <map>
#include <optional>

#include "base/tuning.h"
#include "core/core.h"
#include "core/groups.h"
#include "core/total.h"

namespace ein::optimise {

struct Members {
  std::map<core::FamilyId, uint32_t> along;  // by family: which coordinate names the member
  int64_t operations = 0;                    // of one step of one member
};

// Where the first family of the recurrence has at least `fewest` members, as far as that is known,
// and a step of one of them is short: loops inside are short, and nothing there can fail.
std::optional<Members> members_of(core::Module& m, const core::Sequence& q, int64_t fewest,
                                  const Tuning& tuning, core::Overflow overflow);

}  // namespace ein::optimise
