// Writes out short loops of known length, so that the cells they compute have constant addresses.
#pragma once

#include <optional>

#include "loops/loops.h"

namespace ein::loops {

// The block with its short loops written out, if that takes at most `room` nodes; otherwise
// nothing. Reduces `room` by the nodes taken.
std::optional<Block> written_out(Program& p, const Block& block, int64_t& room);

}  // namespace ein::loops
