// The scalar operations on run-time values, exactly as Core defines them: f32 arithmetic rounds to
// f32, integers wrap at their width, / and % truncate toward zero. Used by the evaluator and
// wherever the compiler needs the value of a closed expression.
#pragma once

#include <optional>
#include <string>

#include "core/core.h"

namespace ein::core {

union Scalar {
  double f;
  int64_t i;  // integers and bool
};

// Every op except Select, And and Or, which are lazy and belong to the evaluator. `type` is the
// type of the arguments; for Cast, `to` is the type of the result. Empty: integer division by
// zero, or a shift outside the width of the type.
std::optional<Scalar> apply_scalar(Op op, DType type, DType to, Scalar a, Scalar b);

// Why apply_scalar gave nothing.
std::string failure_text(Op op, DType type, int64_t b);

// Whether the exact result of an integer operation does not fit its type.
bool overflows(Op op, DType type, int64_t a, int64_t b);
// "2147483647 + 1 does not fit in i32", for messages.
std::string overflow_text(Op op, DType type, int64_t a, int64_t b);

double round_to(DType type, double value);  // to the nearest value of a float type

// The operation that adds one cell to a reduction; none where one cell is not enough.
std::optional<Op> combination(ReduceOp op);

}  // namespace ein::core
