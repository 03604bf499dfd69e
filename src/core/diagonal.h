// Generated families that are read on a diagonal only lose the coordinate that repeats another.
//
// An index alone in a slot of an argument is a coordinate of it (decisions.md, 1), so
// `softmax[s](if s <= t { q[t, s] } else { -1e9 })` is a call over `t'` and `s` at each `t`, of
// which the statement takes `t' == t`. Without this it would be computed for all `t'`.
#pragma once

#include "core/core.h"

namespace ein::core {

void drop_diagonals(Module& m);

}  // namespace ein::core
