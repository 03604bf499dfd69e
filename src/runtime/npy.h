// NumPy's .npy files: read (versions 1–3, little-endian, C or Fortran order) and written (version
// 1).
#pragma once

#include <string>
#include <variant>

#include "runtime/tensor.h"

namespace ein {

std::variant<Tensor, RuntimeError> read_npy(const std::string& path);
std::variant<std::monostate, RuntimeError> write_npy(const std::string& path, const Tensor& tensor);

}  // namespace ein
