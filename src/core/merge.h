// Generated families that are defined exactly like another family become reads of it. Nodes are
// hash-consed, so "exactly like" is equality of ids; merging two families makes the bodies of their
// readers equal in turn, so it repeats until nothing changes. A derivative rule that calls its own
// function is where such twins come from.
#pragma once

#include "core/core.h"

namespace ein::core {

void merge_equal(Module& m);

}  // namespace ein::core
