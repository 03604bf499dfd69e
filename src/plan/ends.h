// Recurrences that end (`until`). Sema writes them with a flag,
//   x_done[t] = x_done[t - 1] || …,   x[t] = if x_done[t - 1] { x[t - 1] } else { … }
// and this file recognises the pattern, wherever it comes from: a bool family that stays true once
// it is true, and families that from then on only repeat their last step, or are constant. A
// Sequence of such families stops as soon as all cells of the flag are true, and the cells that are
// read later are filled in.
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
  uint32_t position = 0;  // the flag's coordinate that counts the steps
  // A clause of a member whose cells are read after the Sequence. Steps that did not run are filled
  // with the last step that ran, or with `constant` if that is valid.
  struct Fill {
    core::FamilyId family;
    size_t clause;
    uint32_t position;
    core::ExprId constant;
  };
  std::vector<Fill> fills;
  // How many more steps run after the one that sets all cells of the flag. A member that reads a
  // repeating member also repeats, but only some steps later.
  int64_t delay = 0;
};

// For each family: the coordinates that are steps of the Sequences around it, outermost first.
using Outer = std::map<core::FamilyId, std::vector<uint32_t>>;
// Families that are wanted, or read by something outside of the Sequence.
std::set<core::FamilyId> read_later(const core::Module& m, const core::Schedule& order,
                                    const std::vector<core::FamilyId>& wanted,
                                    const core::Sequence& q);
// How a Sequence ends early, if it does. `read_later`: as above.
std::optional<End> find_end(core::Module& m, const core::Sequence& q, const Outer& outer,
                            const std::set<core::FamilyId>& read_later);

}  // namespace ein::plan
