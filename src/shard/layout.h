// Which coordinates are split, along which axes of the mesh.
//
// Coordinates whose names the user split are. Those without a name, and those of arrays that the compiler
// made, follow the reads that name them as they are: a coordinate of `f` at which `f` reads a split
// coordinate of the same extent is split in the same way. An axis goes to the first coordinate of a
// family that asks for it; further ones stay whole. Array literals are whole.
#pragma once

#include <set>
#include <variant>
#include <vector>

#include "core/core.h"
#include "shard/mesh.h"

namespace ein::shard {

struct Layout {
  std::vector<std::vector<Axes>> axes;       // by family and coordinate; 0: whole
  std::vector<std::vector<uint32_t>> steps;  // by family: the coordinates of recurrences' steps

  bool is_split(core::FamilyId id) const;
};

// `whole`: families that are to stay whole. E0902 where a rule names steps of a recurrence, E0903 where
// it names nothing.
std::variant<Layout, RuntimeError> find_layout(core::Module& m,
                                               const std::vector<core::FamilyId>& wanted,
                                               const Spec& spec,
                                               const std::set<core::FamilyId>& whole);

}  // namespace ein::shard
