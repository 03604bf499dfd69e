// Conditions as bounds of a loop: where a gate says `kh <= ih`, the loop over kh ends there instead of
// testing the rest of its range.
#pragma once

#include <optional>

#include "core/core.h"

namespace ein::core {

// lo ≤ slot < hi; one of them, or both for an equality.
struct Bound {
  ExprId lo, hi;
};

// `cond` as a bound on `slot` whose other side mentions only lower slots; nothing
// when it is not one.
std::optional<Bound> bound_on(Module& m, ExprId cond, uint32_t slot);

}  // namespace ein::core
