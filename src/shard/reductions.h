// Private to src/shard: which reductions are split into partial results, and along which axes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/core.h"
#include "shard/layout.h"

namespace ein::shard {

// How a clause whose whole body is a reduction is split into partial results.
struct Cut {
  size_t clause;
  struct Binder {
    uint32_t number;  // number of the reduction
    Axes along;
    core::ExprId extent;
  };
  std::vector<Binder> binders;
  std::vector<Axes> coords;  // how the partial results are split, by coordinate of the family
  Axes over() const;
};

// Gives every reduction that can be cut a family of its own, and says how each is cut. New families
// are added to the layout. `origin`: the family of the program that each new one came from.
// Families in `never` are left alone.
std::map<core::FamilyId, Cut> cut_reductions(core::Module& m,
                                             const std::vector<core::FamilyId>& all,
                                             const std::set<core::FamilyId>& never, Layout& layout,
                                             std::map<core::FamilyId, core::FamilyId>& origin);

}  // namespace ein::shard
