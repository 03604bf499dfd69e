// Cuts long blocks: the code generator takes quadratic time over a block of instructions without
// branches (a step of a recurrence that computes thousands of values, a sum of as many terms). Such
// a block becomes calls, one after the other, of functions that each hold a piece of it; values
// that one piece computes and another needs go through memory.
#pragma once

#include "base/tuning.h"

namespace llvm {
class Module;
}

namespace ein::codegen {

// Returns whether there were any.
bool split_long_blocks(llvm::Module& mod, const Tuning& tuning);

}  // namespace ein::codegen
