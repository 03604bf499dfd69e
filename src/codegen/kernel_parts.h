// Cuts long kernels: an array literal of thousands of values is as many statements, and the code
// generator would take more than proportionally long over one function with all of them. Statements
// that share no variable go into functions of their own, called one after the other.
#pragma once

#include <deque>
#include <vector>

#include "loops/loops.h"

namespace ein::codegen {

struct KernelPart {
  const loops::Kernel* code;
  size_t kernel;  // its number in the program
};

// A long block as several, in order, none of which mentions a variable that another one binds.
std::vector<loops::Block> independent_parts(const loops::Program& p, const loops::Block& body);

// All kernels in order, each in one or more parts; `cut` owns the new ones.
std::vector<KernelPart> parts_of(const loops::Program& p, std::deque<loops::Kernel>& cut);

}  // namespace ein::codegen
