// Private to optimise: the rewriting that implements checkpoint.h.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/core.h"

namespace ein::optimise {

// The families whose steps are cut into segments; for each, the coordinate that counts the steps.
struct Region {
  struct Member {
    uint32_t position = 0;
    enum class Role : uint8_t {
      Forward,  // a recurrence that runs upward
      // Not a recurrence; reads steps of forward members and is read by no backward member.
      ForwardLocal,
      Backward,       // a recurrence that runs downward
      BackwardLocal,  // not a recurrence; computed with the backward members
    } role = Role::Forward;
  };
  std::map<core::FamilyId, Member> members;
  int64_t steps = 0;   // the largest extent of a member along the steps
  int64_t before = 0;  // how many steps before its own a cell reads of a forward member
  // How many later steps of a forward (`after`) or backward (`ahead`) member a backward cell reads.
  int64_t after = 0, ahead = 0;
};

bool backward_role(Region::Member::Role role);

// How far from `here` the reads of members in some expressions reach. Nothing if a read is not at a
// constant distance. The backward run starts when all forward steps are done, so a read there
// (`in_backward`) of a forward step with a known number does not count.
struct Offset {
  core::FamilyId member;
  int64_t by = 0;
};
std::optional<std::vector<Offset>> offsets(core::Module& m, const Region& region,
                                           const std::vector<core::ExprId>& bodies,
                                           core::ExprId here, bool in_backward);

// The recurrences `forward` and `backward` (with their step coordinates) and everything that
// follows them step by step. Nothing if one recurrence reads another at steps that are not a
// constant distance away.
std::optional<Region> find_region(core::Module& m,
                                  const std::map<core::FamilyId, uint32_t>& forward,
                                  const std::map<core::FamilyId, uint32_t>& backward,
                                  const std::vector<core::FamilyId>& reached);

// Cuts the steps into segments of `segment` steps. All extents along the steps must be literals.
void strip_mine(core::Module& m, const Region& region, int64_t segment,
                const std::vector<core::FamilyId>& reached);

}  // namespace ein::optimise
