// Writes an executable file, in the same way as all other files (files.h).
#pragma once

#include <string>
#include <variant>

#include "runtime/tensor.h"

namespace ein {

std::variant<std::monostate, RuntimeError> write_program(const std::string& path,
                                                         const std::string& bytes);

}  // namespace ein
