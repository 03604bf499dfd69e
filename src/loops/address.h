// Where an access in a loop goes: along which coordinate it moves with the loop, and at which cell of
// the others it stands still.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "loops/linear.h"

namespace ein::loops {

// A sum that stands still in the loop: variables and extents with their factors, and a number.
struct Index {
  std::vector<std::tuple<bool, uint32_t, int64_t>> terms;  // whether a variable, its id, the factor
  int64_t constant = 0;
  auto operator<=>(const Index&) const = default;
};
using Cell = std::vector<Index>;

// Where an access is: the coordinate that moves with the step, and how far from it; the others.
struct Address {
  std::optional<size_t> axis;
  int64_t offset = 0;
  int64_t ring = 0;  // step t is at t mod `ring`; 0: at t
  Cell cell;
};

// The variables that the body of a loop binds, but for Let.
std::set<VarId> bound_in(const Loop& n);

// Nothing where the address is no sum, or moves in another way. `moving`: variables that may change
// while the loop runs.
std::optional<Address> address_in(const Program& p, const Lets& lets, VarId step,
                                  const std::set<VarId>& moving, const std::vector<ExprId>& at);

}  // namespace ein::loops
