// Cuts long lists of statements: an array literal of thousands of values is as many statements, and
// the code generator would take more than proportionally long over one function with all of them.
#pragma once

#include <vector>

#include "loops/loops.h"

namespace ein::loops {

// A long block (more than `kernel_statements`) as several, in order, none of which mentions a
// variable that another one binds. The pass `cut_kernels` makes kernels of them; code generation
// cuts long loop bodies the same way (codegen/emit_parts.cc).
std::vector<Block> independent_parts(const Program& p, const Block& body);

}  // namespace ein::loops
