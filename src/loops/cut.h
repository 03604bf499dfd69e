// Cuts long lists of statements. An array literal of thousands of values is that many statements,
// and the code generator's time grows faster than the length of a function.
#pragma once

#include <vector>

#include "loops/loops.h"

namespace ein::loops {

// Cuts a long block (more than `kernel_statements`) into several, in order, so that none mentions a
// variable that another one binds. The pass `cut_kernels` makes kernels of them; code generation
// cuts long loop bodies in the same way (codegen/emit_parts.cc).
std::vector<Block> independent_parts(const Program& p, const Block& body);

}  // namespace ein::loops
