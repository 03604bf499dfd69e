// Describes an access in a loop: along which coordinate it moves with the loop, and which cell it
// reads along the other coordinates.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "loops/linear.h"

namespace ein::loops {

// A sum that does not change in the loop: variables and extents with their factors, plus a
// constant.
struct Index {
  // Whether it is a variable, its id, its factor.
  std::vector<std::tuple<bool, uint32_t, int64_t>> terms;
  int64_t constant = 0;
  auto operator<=>(const Index&) const = default;
};
using Cell = std::vector<Index>;

// The address of an access: the coordinate that moves with the step, its distance from the step,
// and the other coordinates.
struct Address {
  std::optional<size_t> axis;
  int64_t offset = 0;
  int64_t ring = 0;  // step t is stored at t mod `ring`; 0: at t
  Cell cell;
};

// The variables that the body of a loop binds, except by Let.
std::set<VarId> bound_in(const Loop& n);

// Nothing if the address is not a sum, or moves in another way. `moving`: variables that may change
// while the loop runs.
std::optional<Address> address_in(const Program& p, const Lets& lets, VarId step,
                                  const std::set<VarId>& moving, const std::vector<ExprId>& at);

}  // namespace ein::loops
