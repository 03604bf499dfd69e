// Recurrences of a few numbers that run for many members side by side. There is a coordinate, the
// member, that every read within the recurrence uses unchanged, so that no member reads another
// one. A batch of filters has such a coordinate, and so have trajectories with different starts.
#pragma once

#include <map>
#include <optional>

#include "base/tuning.h"
#include "core/core.h"
#include "core/groups.h"
#include "core/total.h"

namespace ein::optimise {

struct Members {
  // For each family, the coordinate that distinguishes the members.
  std::map<core::FamilyId, uint32_t> along;
  int64_t operations = 0;  // operations of one step of one member
};

// The members of a recurrence. Nothing if it has fewer than `fewest` members, as far as that is
// known, or if the step of a member is not short: loops inside must be short, and nothing may fail.
std::optional<Members> members_of(core::Module& m, const core::Sequence& q, int64_t fewest,
                                  const Tuning& tuning, core::Overflow overflow);

}  // namespace ein::optimise
