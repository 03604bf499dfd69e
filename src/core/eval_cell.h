// What one cell was computed from, for `--trap nan`: the cells that its formula read, and what was
// there. Values come from whoever ran the program, so that the answer is about that run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/scalar.h"

namespace ein::core {

// The value of a cell; nothing when it is not kept.
using ReadCell = std::function<std::optional<Scalar>(FamilyId, const std::vector<int64_t>& at)>;

// "t = 3, i = 0": an address, with the names of the coordinates; empty for a scalar.
std::string address_text(const Family& f, const std::vector<int64_t>& at);

// "`x` is NaN at t = 3" and what it was computed from: "`x[2]` is 1e+30, `a` is 1e+30".
std::string not_finite_text(const Module& m, FamilyId family, const std::vector<int64_t>& at,
                            double value, const std::vector<int64_t>& params, const ReadCell& read);

}  // namespace ein::core
