// Long kernels, cut: an array literal of thousands of values is as many statements, and one
// function of them all would take the code generator longer than in proportion. Statements that
// share no variable go into functions of their own, called one after the other.
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

// All kernels in order, each in one or more parts; `cut` keeps those that are new.
std::vector<KernelPart> parts_of(const loops::Program& p, std::deque<loops::Kernel>& cut);

}  // namespace ein::codegen
