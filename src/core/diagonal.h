// Generated families that are read on a diagonal only lose the coordinate that repeats another.
//
// `softmax[s](if s <= t { q[t, s] } else { -1e9 })` is, by decision 1, a call over `t'` and `s` at
// each `t`, of which the statement takes `t' == t`. Without this it would be computed for all `t'`.
#pragma once

#include "core/core.h"

namespace ein::core {

void drop_diagonals(Module& m);

}  // namespace ein::core
