// Decides which coordinates are split, along which axes of the mesh.
//
// The user names coordinates to split. Coordinates without a name, and those of arrays that the
// compiler made, follow their reads: if the family uses such a coordinate as the index at a split
// coordinate of `f`, with the same extent, it is split in the same way. Each axis goes to the first
// coordinate of a family that asks for it; later ones stay whole. Array literals are never split.
#pragma once

#include <set>
#include <variant>
#include <vector>

#include "core/core.h"
#include "shard/mesh.h"

namespace ein::shard {

struct Layout {
  std::vector<std::vector<Axes>> axes;  // by family and coordinate; 0: not split
  // By family: the coordinates that recurrences step along.
  std::vector<std::vector<uint32_t>> steps;

  bool is_split(core::FamilyId id) const;
};

// `whole`: families that must not be split. E0902 if a rule names the steps of a recurrence, E0903
// if it names nothing that exists.
std::variant<Layout, RuntimeError> find_layout(core::Module& m,
                                               const std::vector<core::FamilyId>& wanted,
                                               const Spec& spec,
                                               const std::set<core::FamilyId>& whole);

}  // namespace ein::shard
