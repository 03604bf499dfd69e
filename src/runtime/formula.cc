#include <algorithm>

#include "base/check.h"
#include "runtime/image.h"
#include "runtime/integers.h"

namespace ein {
namespace {

enum class Wrong : uint8_t { No, Overflow, DivideByZero, Shift };
struct Value {
  int64_t v = 0;
  Wrong wrong = Wrong::No;
};

// `bits`: the width of the type, for shifts.
Value binary(Formula::Op op, int64_t bits, Value x, Value y) {
  using Op = Formula::Op;
  int64_t a = x.v, b = y.v, out = 0;
  if (op == Op::And && x.wrong == Wrong::No) return a ? y : x;
  if (op == Op::Or && x.wrong == Wrong::No) return a ? x : y;
  if (x.wrong != Wrong::No) return x;
  if (y.wrong != Wrong::No) return y;
  switch (op) {
    case Op::Add:
      return __builtin_add_overflow(a, b, &out) ? Value{0, Wrong::Overflow} : Value{out};
    case Op::Mul:
      return __builtin_mul_overflow(a, b, &out) ? Value{0, Wrong::Overflow} : Value{out};
    case Op::Div:
      if (b == 0) return {0, Wrong::DivideByZero};
      return {b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b};
    case Op::Mod:
      if (b == 0) return {0, Wrong::DivideByZero};
      return {b == -1 ? 0 : a % b};
    case Op::Pow: return {int_power(a, b)};
    case Op::Min: return {std::min(a, b)};
    case Op::Max: return {std::max(a, b)};
    case Op::Lt: return {a < b};
    case Op::Le: return {a <= b};
    case Op::Gt: return {a > b};
    case Op::Ge: return {a >= b};
    case Op::Eq: return {a == b};
    case Op::Ne: return {a != b};
    case Op::BitAnd: return {a & b};
    case Op::BitOr: return {a | b};
    case Op::BitXor: return {a ^ b};
    case Op::Shl:
      if (b < 0 || b >= bits) return {0, Wrong::Shift};
      return {static_cast<int64_t>(static_cast<uint64_t>(a) << b)};
    case Op::Shr:
      if (b < 0 || b >= bits) return {0, Wrong::Shift};
      return {a >> b};
    case Op::Const:
    case Op::Param:
    case Op::Abs:
    case Op::Sign:
    case Op::And:
    case Op::Or:
    case Op::Not:
    case Op::Select:
    case Op::BitNot:
    case Op::BitLength:
    case Op::Wrap: break;
  }
  EIN_UNREACHABLE("not an operation on two integers");
}

int64_t general(const Formula& f, const int64_t* params) {
  using Op = Formula::Op;
  Value few[16];  // usually no allocation in a call
  std::vector<Value> many(f.parts.size() > std::size(few) ? f.parts.size() : 0);
  Value* stack = many.empty() ? few : many.data();
  size_t size = 0;
  auto push = [&](Value v) { stack[size++] = v; };  // at most once per part
  auto pop = [&] {
    EIN_CHECK(size > 0, "an ill-formed extent");
    return stack[--size];
  };
  for (const Formula::Part& part : f.parts) {
    switch (part.op) {
      case Op::Const: push({part.value}); break;
      case Op::Param: push({params[part.value]}); break;
      case Op::Abs:
      case Op::Sign:
      case Op::Not:
      case Op::BitNot:
      case Op::BitLength:
      case Op::Wrap: {
        Value a = pop();
        auto negated = static_cast<int64_t>(0 - static_cast<uint64_t>(a.v));
        if (part.op == Op::Abs) a.v = a.v < 0 ? negated : a.v;
        if (part.op == Op::Sign) a.v = a.v > 0 ? 1 : a.v < 0 ? -1 : 0;
        if (part.op == Op::Not) a.v = a.v == 0;
        if (part.op == Op::BitNot) a.v = ~a.v;
        if (part.op == Op::BitLength) a.v = bit_length(a.v);
        if (part.op == Op::Wrap) a.v = wrap_to(static_cast<DType>(part.value), a.v);
        push(a);
        break;
      }
      case Op::Select: {
        Value otherwise = pop(), then = pop(), cond = pop();
        push(cond.wrong != Wrong::No ? cond : cond.v ? then : otherwise);
        break;
      }
      default: {
        Value b = pop(), a = pop();
        push(binary(part.op, part.value, a, b));
      }
    }
  }
  Value out = pop();
  if (out.wrong == Wrong::Overflow) {
    throw RuntimeError{Code::E0807, "an extent does not fit in 64 bits"};
  }
  if (out.wrong == Wrong::DivideByZero) {
    throw RuntimeError{Code::E0806, "an extent divides by zero"};
  }
  if (out.wrong == Wrong::Shift) {
    throw RuntimeError{Code::E0806, "an extent shifts by more than its width"};
  }
  return out.v;
}

}  // namespace

int64_t evaluate(const Formula& f, const int64_t* params) {
  if (f.parts.size() == 1) {  // the usual case, and calls should be quick
    const Formula::Part& part = f.parts[0];
    if (part.op == Formula::Op::Const) return part.value;
    if (part.op == Formula::Op::Param) return params[part.value];
  }
  return general(f, params);
}

}  // namespace ein
