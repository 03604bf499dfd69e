// Generated families that are only read on a diagonal lose the coordinate that repeats another.
//
// An index that stands alone in a slot of an argument is a coordinate of that argument
// (decisions.md, 1). So `softmax[s](if s <= t { q[t, s] } else { -1e9 })` is, for each `t`, a
// call over `t'` and `s` of which only `t' == t` is used. Without this pass it would be
// computed for all `t'`.
#pragma once

#include "core/core.h"

namespace ein::core {

void drop_diagonals(Module& m);

}  // namespace ein::core
