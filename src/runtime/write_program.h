// A file that may be run, written like all others (files.h).
#pragma once

#include <string>
#include <variant>

#include "runtime/tensor.h"

namespace ein {

std::variant<std::monostate, RuntimeError> write_program(const std::string& path,
                                                         const std::string& bytes);

}  // namespace ein
