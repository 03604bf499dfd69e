// Values as text: what `print` writes and what `--format json` holds.
#pragma once

#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// One element. `format` is that of `"{x:.4f}"` (base/number_format.h) and fits the element type.
// Empty, or without digits and kind: the shortest text that reads back as the same value, always
// with a point or exponent for floats.
std::string show_scalar(const Tensor& t, int64_t i, const std::string& format = {});

// Why a format does not fit an element type: "`d` is for integers"; empty when it does.
std::string check_format(const std::string& format, DType dtype);

// A scalar alone; a tensor after its coordinates and extents: `[i: 3] [1.0, 2.0, 3.0]`, rows below
// each other from rank 2 on. More than 1000 elements are summarised by their ends. `coords` has one
// name per coordinate, empty where there is none.
std::string show(const Tensor& t, const std::vector<std::string>& coords,
                 const std::string& format = {});

// {"dtype": "f32", "coords": ["i", null], "shape": [2, 3], "data": [[…], […]]}
std::string show_json(const Tensor& t, const std::vector<std::string>& coords);

}  // namespace ein
