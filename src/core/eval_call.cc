#include "core/eval_call.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/match.h"
#include "core/rewrite.h"

namespace ein::core {

std::string too_deep_text(const std::string& function) {
  return fmt::format("calls of `{}` are nested more than {} deep", function, kMaxRecursion);
}

const std::unordered_map<ExprId, uint32_t>& Calls::numbers(FunctionId f) {
  auto [it, fresh] = numbers_.try_emplace(f);
  if (fresh) {
    for_each_node(m_, m_.functions[f].body, [&, &of = it->second](ExprId e) {
      of.emplace(e, static_cast<uint32_t>(of.size()));
    });
  }
  return it->second;
}

Scalar Calls::call(FunctionId f, const std::vector<Scalar>& args) {
  const Function& function = m_.functions[f];
  if (depth_ == kMaxRecursion) {
    depth_ = 0;
    throw Fault{Code::E0810, too_deep_text(text(function.name)), function.span};
  }
  ++depth_;
  const auto& number = numbers(f);
  Frame frame{args, number, std::vector<Scalar>(number.size()), std::vector<bool>(number.size())};
  Scalar v = eval(frame, function.body);
  --depth_;
  return v;
}

Scalar Calls::eval(Frame& frame, ExprId e) {
  uint32_t n = frame.number.at(e);
  if (!frame.known[n]) {
    frame.values[n] = compute(frame, m_[e]);
    frame.known[n] = true;
  }
  return frame.values[n];
}

Scalar Calls::compute(Frame& frame, const Expr& x) {
  if (const auto* n = std::get_if<FloatLit>(&x.node)) return {.f = n->value};
  if (const auto* n = std::get_if<IntLit>(&x.node)) return {.i = n->value};
  if (const auto* n = std::get_if<BoolLit>(&x.node)) return {.i = n->value};
  if (const auto* n = std::get_if<Arg>(&x.node)) return frame.args[n->n];
  if (const auto* n = std::get_if<Apply>(&x.node)) return apply(frame, *n, x);
  if (const auto* n = std::get_if<Affine>(&x.node)) {
    Scalar sum{.i = n->constant};
    for (const auto& t : n->terms) {
      auto i64 = [&](Op op, Scalar a, Scalar b) {
        return arithmetic(op, DType::I64, DType::I64, a, b, x.span);
      };
      sum = i64(Op::Add, sum, i64(Op::Mul, {.i = t.coef}, eval(frame, t.atom)));
    }
    return sum;
  }
  const auto* n = std::get_if<Call>(&x.node);
  EIN_CHECK(n, "the body of a function reads more than its parameters");
  std::vector<Scalar> args;
  for (ExprId a : n->args) args.push_back(eval(frame, a));
  return call(n->function, args);
}

Scalar Calls::apply(Frame& frame, const Apply& n, const Expr& x) {
  Scalar a = eval(frame, n.args[0]);
  switch (n.op) {
    case Op::Select: return eval(frame, n.args[a.i ? 1 : 2]);
    case Op::And: return a.i ? eval(frame, n.args[1]) : a;
    case Op::Or: return a.i ? a : eval(frame, n.args[1]);
    default: break;
  }
  Scalar b = n.args.size() > 1 ? eval(frame, n.args[1]) : Scalar{.i = 0};
  return arithmetic(n.op, m_[n.args[0]].type, x.type, a, b, x.span);
}

Scalar Calls::arithmetic(Op op, DType type, DType to, Scalar a, Scalar b, Span at) {
  if (check_overflow_ && is_int(type) && overflows(op, type, a.i, b.i)) {
    throw Fault{Code::E0809, overflow_text(op, type, a.i, b.i), at};
  }
  auto v = apply_scalar(op, type, to, a, b);
  if (!v) throw Fault{Code::E0806, failure_text(op, type, b.i), at};
  return *v;
}

}  // namespace ein::core
