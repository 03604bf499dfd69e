// The launches of a program as PTX, the assembly language that NVIDIA's driver compiles for the
// device it finds. One text serves every device from compute capability 8.0 on.
#pragma once

#include <string>

#include "loops/loops.h"

namespace ein::codegen {

std::string ptx_of(const loops::Program& p);

}  // namespace ein::codegen
