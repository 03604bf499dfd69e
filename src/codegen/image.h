// What a lowered program needs to be called, without its code.
#pragma once

#include <string>
#include <variant>

#include "loops/loops.h"
#include "plan/plan.h"
#include "runtime/image.h"

namespace ein::codegen {

// Or the reason why an extent cannot be computed without the compiler.
std::variant<Image, std::string> make_image(const plan::Plan& plan, const loops::Program& program,
                                            Processor processor);

}  // namespace ein::codegen
