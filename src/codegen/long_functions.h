// Long functions, cut: register allocation takes time in the square of a function's length once
// values live across hundreds of loops and branches (the cell of a third derivative may hold as
// many). Parts of such a function become functions of their own. The numbers stay the same bits.
#pragma once

namespace llvm {
class Module;
}

namespace ein::codegen {

// Whether there were any.
bool split_long_functions(llvm::Module& mod);

}  // namespace ein::codegen
