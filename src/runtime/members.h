// The names of the tensors in a file that may hold several.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// In the order of the file; none where a file holds one tensor and no name.
std::variant<std::vector<std::string>, RuntimeError> file_members(const std::string& path);

}  // namespace ein
