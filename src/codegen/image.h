// Private to src/codegen: what a lowered program needs to be called, without its code.
#pragma once

#include <string>
#include <variant>

#include "lower/loops.h"
#include "plan/plan.h"
#include "runtime/image.h"

namespace ein::codegen {

// Or why an extent cannot be computed without the compiler.
std::variant<Image, std::string> make_image(const plan::Plan& plan, const loops::Program& program);

}  // namespace ein::codegen
