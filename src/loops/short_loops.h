// Writes out short loops of known length, so that what they compute has constant addresses.
#pragma once

#include <optional>

#include "loops/loops.h"

namespace ein::loops {

// The block without such loops, as long as it takes no more than `room` nodes; nothing otherwise.
// `room` becomes what is left.
std::optional<Block> written_out(Program& p, const Block& block, int64_t& room);

}  // namespace ein::loops
