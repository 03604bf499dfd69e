// Integer expressions as sums: a constant plus multiples of variables and parameters. That is
// enough to compare the bounds of loops and the addresses of steps.
#pragma once

#include <optional>
#include <vector>

#include "loops/walk.h"

namespace ein::loops {

struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Node, int64_t>> terms = {};  // each is a Get or a Param
};

struct Sums {
  const Program& p;
  const Lets& lets;

  std::optional<Linear> of(ExprId e) const;
  // The distance from `from` to `to`, if it is a constant.
  std::optional<int64_t> distance(ExprId from, ExprId to) const;
  // The constant c for which `e` is `v` + c.
  std::optional<int64_t> offset(ExprId e, VarId v) const;
  // Whether two expressions are the same once variables are replaced by their values; expressions
  // with loads never are.
  bool equal(ExprId a, ExprId b) const;
  // `e` without the `max(0, …)` that keeps a range from ending before it begins.
  ExprId bare(ExprId e) const;

 private:
  bool add(ExprId e, int64_t factor, Linear& out) const;
};

}  // namespace ein::loops
