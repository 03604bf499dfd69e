#include "core/cost.h"

#include "base/check.h"
#include "base/match.h"
#include "core/rewrite.h"

namespace ein::core {

uint64_t cost(Op op) {
  constexpr uint64_t kFunction = 12;
  switch (op) {
    case Op::Exp:
    case Op::Expm1:
    case Op::Log:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Tanh:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Atan2:
    case Op::Erf:
    case Op::Pow:
    case Op::Philox:
    case Op::Uniform:
    case Op::Normal: return kFunction;
    case Op::Div:
    case Op::Mod:
    case Op::Sqrt: return 4;
    default: return 1;
  }
}

namespace {

uint64_t own_cost(const Module& m, ExprId e) {
  constexpr uint64_t kLoop = 1000;
  return match(
      m[e].node, [](const FloatLit&) -> uint64_t { return 0; },
      [](const IntLit&) -> uint64_t { return 0; }, [](const BoolLit&) -> uint64_t { return 0; },
      [](const Slot&) -> uint64_t { return 0; }, [](const ParamRef&) -> uint64_t { return 0; },
      [](const Affine&) -> uint64_t { return 0; }, [](const Apply& n) { return cost(n.op); },
      [](const Access&) -> uint64_t { return 1; }, [](const Reduce&) { return kLoop; },
      [](const Request&) -> uint64_t { EIN_UNREACHABLE("a request reached planning"); },
      [&](const Call& n) {
        const Function& f = m.functions[n.function];
        return f.recursive ? kLoop : cost(m, f.body);
      },
      [](const Arg&) -> uint64_t { return 0; });
}

}  // namespace

uint64_t cost(const Module& m, ExprId e) {
  uint64_t sum = 0;
  for_each_node(m, e, [&](ExprId x) { sum += own_cost(m, x); });
  return sum;
}

}  // namespace ein::core
