// Cuts long functions: register allocation takes time quadratic in a function's length once values
// live across hundreds of loops and branches (the cell of a third derivative may have as many).
// Parts of such a function become functions of their own. Results stay the same to the bit.
#pragma once

#include "base/tuning.h"

namespace llvm {
class Module;
}

namespace ein::codegen {

// Returns whether there were any.
bool split_long_functions(llvm::Module& mod, const Tuning& tuning);

}  // namespace ein::codegen
