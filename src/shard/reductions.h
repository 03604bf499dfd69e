// Private to src/shard: which reductions are cut, and along which axes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/core.h"
#include "shard/layout.h"

namespace ein::shard {

// How the whole body of a family's clause, a reduction, is cut.
struct Cut {
  size_t clause;
  struct Binder {
    uint32_t number;  // of the reduction
    Axes along;
    core::ExprId extent;
  };
  std::vector<Binder> binders;
  std::vector<Axes> coords;  // how the partial results are split, by coordinate of the family
  Axes over() const;
};

// Gives reductions that can be cut families of their own and says how each is cut. New families get a
// layout. `origin`: the family of the program that a new one was made for. Those of `never` stay.
std::map<core::FamilyId, Cut> cut_reductions(core::Module& m,
                                             const std::vector<core::FamilyId>& all,
                                             const std::set<core::FamilyId>& never, Layout& layout,
                                             std::map<core::FamilyId, core::FamilyId>& origin);

}  // namespace ein::shard
