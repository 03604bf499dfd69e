// A product taken apart, for the rules that move some of its factors elsewhere.
#pragma once

#include <vector>

#include "core/core.h"

namespace ein::core {

// ± num… / den…, in source order.
struct Product {
  bool negative = false;
  std::vector<ExprId> num, den;
};

Product as_product(const Module& m, ExprId e);
// Put together again, without the sign; 1 of that type when there is no factor.
ExprId from_product(Module& m, const Product& p, DType type);

}  // namespace ein::core
