// Long blocks, cut: the code generator takes time in the square of the length of a block of
// instructions without branches (a step of a recurrence that computes thousands of values, a sum of
// as many terms). Such a block becomes calls, one after the other, of functions that hold a
// piece of it each; values that one piece computes and another needs go through memory.
#pragma once

namespace llvm {
class Module;
}

namespace ein::codegen {

// Whether there were any.
bool split_long_blocks(llvm::Module& mod);

}  // namespace ein::codegen
