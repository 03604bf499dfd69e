// Recurrences that end (`until`). Sema writes them with a flag,
//   x_done[t] = x_done[t - 1] || …,   x[t] = if x_done[t - 1] { x[t - 1] } else { … }
// and here that is found again, whoever wrote it: a bool family that stays true once it is true, and
// families that only repeat their last step, or are constant, from then on. A Sequence of such
// families is left as soon as all cells of the flag are true, and what is read later is filled in.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/core.h"
#include "core/groups.h"

namespace ein::plan {

struct End {
  core::FamilyId flag;
  uint32_t position = 0;  // of the steps, in the flag
  // Cells that are read after the Sequence: a clause of a member, which repeats the last step that
  // ran, or is `constant` where that is valid.
  struct Fill {
    core::FamilyId family;
    size_t clause;
    uint32_t position;
    core::ExprId constant;
  };
  std::vector<Fill> fills;
  // How many more steps run after the one that sets all cells of the flag: a member that reads only
  // what repeats does so too, but later.
  int64_t delay = 0;
};

// Which coordinates of each family the Sequences around run, outermost first.
using Outer = std::map<core::FamilyId, std::vector<uint32_t>>;
// Families that something outside of the Sequence reads or wants.
std::set<core::FamilyId> read_later(const core::Module& m, const core::Schedule& order,
                                    const std::vector<core::FamilyId>& wanted,
                                    const core::Sequence& q);
// How a Sequence ends, if it does. `read_later`: families that something outside of it reads.
std::optional<End> find_end(core::Module& m, const core::Sequence& q, const Outer& outer,
                            const std::set<core::FamilyId>& read_later);

}  // namespace ein::plan
