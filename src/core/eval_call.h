// Scalar functions of a module, evaluated: the definition of Call. A node is evaluated once per
// call of the function it stands in, and only when its value is needed.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/core.h"
#include "core/scalar.h"

namespace ein::core {

std::string too_deep_text(const std::string& function);

class Calls {
 public:
  Calls(const Module& m, bool check_overflow) : m_(m), check_overflow_(check_overflow) {}

  struct Fault {
    Code code;
    std::string message;
    Span at;
  };
  // Throws a Fault: integer division by zero, an overflow that is checked, or more than
  // kMaxRecursion nested calls.
  Scalar call(FunctionId f, const std::vector<Scalar>& args);

 private:
  struct Frame {
    const std::vector<Scalar>& args;
    const std::unordered_map<ExprId, uint32_t>& number;  // of the body's nodes
    std::vector<Scalar> values;
    std::vector<bool> known;
  };
  const std::unordered_map<ExprId, uint32_t>& numbers(FunctionId f);
  Scalar eval(Frame& frame, ExprId e);
  Scalar compute(Frame& frame, const Expr& x);
  Scalar apply(Frame& frame, const Apply& n, const Expr& x);
  Scalar arithmetic(Op op, DType type, DType to, Scalar a, Scalar b, Span at);

  const Module& m_;
  bool check_overflow_;
  int depth_ = 0;
  std::unordered_map<FunctionId, std::unordered_map<ExprId, uint32_t>> numbers_;
};

}  // namespace ein::core
