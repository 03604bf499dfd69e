#include "core/scalar.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "runtime/integers.h"
#include "runtime/random.h"
#include "runtime/tensor.h"

namespace ein::core {
namespace {

Scalar real(double v) { return {.f = v}; }
Scalar whole(int64_t v) { return {.i = v}; }

// NaN beats numbers, the first NaN wins.
double max_of(double a, double b) { return std::isnan(a) || !(b > a || std::isnan(b)) ? a : b; }
double min_of(double a, double b) { return std::isnan(a) || !(b < a || std::isnan(b)) ? a : b; }

double apply_real(Op op, double a, double b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::Mod: return std::fmod(a, b);
    case Op::Pow: return std::pow(a, b);
    case Op::Neg: return -a;
    case Op::Min: return min_of(a, b);
    case Op::Max: return max_of(a, b);
    case Op::Abs: return std::fabs(a);
    case Op::Sign: return a > 0 ? 1.0 : a < 0 ? -1.0 : a;
    case Op::Stop: return a;
    case Op::Exp: return std::exp(a);
    case Op::Expm1: return std::expm1(a);
    case Op::Log: return std::log(a);
    case Op::Log1p: return std::log1p(a);
    case Op::Sqrt: return std::sqrt(a);
    case Op::Sin: return std::sin(a);
    case Op::Cos: return std::cos(a);
    case Op::Tan: return std::tan(a);
    case Op::Sinh: return std::sinh(a);
    case Op::Cosh: return std::cosh(a);
    case Op::Tanh: return std::tanh(a);
    case Op::Asin: return std::asin(a);
    case Op::Acos: return std::acos(a);
    case Op::Atan: return std::atan(a);
    case Op::Atan2: return std::atan2(a, b);
    case Op::Erf: return std::erf(a);
    case Op::Floor: return std::floor(a);
    case Op::Ceil: return std::ceil(a);
    case Op::Round: return std::nearbyint(a);
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
    case Op::BitNot:
    case Op::BitLength:
    case Op::Shl:
    case Op::Shr:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne:
    case Op::And:
    case Op::Or:
    case Op::Not:
    case Op::Select:
    case Op::Cast:
    case Op::Rule:
    case Op::Tangent:
    case Op::Mark:
    case Op::Factor:
    case Op::Moved:
    case Op::Philox:
    case Op::Uniform:
    case Op::Normal: break;
  }
  EIN_UNREACHABLE("not an operation on reals");
}

std::optional<int64_t> apply_whole(Op op, DType type, int64_t a, int64_t b) {
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  auto s = [&](uint64_t v) { return wrap_to(type, static_cast<int64_t>(v)); };
  switch (op) {
    case Op::Add: return s(u(a) + u(b));
    case Op::Sub: return s(u(a) - u(b));
    case Op::Mul: return s(u(a) * u(b));
    case Op::Div:
      if (b == 0) return std::nullopt;
      return b == -1 ? s(0 - u(a)) : s(u(a / b));  // the most negative value over −1 wraps
    case Op::Mod:
      if (b == 0) return std::nullopt;
      return b == -1 ? 0 : a % b;
    case Op::Pow: return s(u(int_power(a, b)));
    case Op::Neg: return s(0 - u(a));
    case Op::Min: return b < a ? b : a;
    case Op::Max: return b > a ? b : a;
    case Op::Abs: return a < 0 ? s(0 - u(a)) : a;
    case Op::Sign: return a > 0 ? 1 : a < 0 ? -1 : 0;
    case Op::Stop: return a;
    case Op::BitAnd: return a & b;
    case Op::BitOr: return a | b;
    case Op::BitXor: return a ^ b;
    case Op::BitNot: return s(~u(a));
    case Op::BitLength: return bit_length(a);
    case Op::Shl:
      if (!shifts_within(type, b)) return std::nullopt;
      return s(u(a) << b);
    case Op::Shr:
      if (!shifts_within(type, b)) return std::nullopt;
      return a >> b;  // a u8 is never negative here, so zeros come in
    default: EIN_UNREACHABLE("not an operation on integers");
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    case Op::Ge: return a >= b;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    default: EIN_UNREACHABLE("not a comparison");
  }
}

Scalar convert(DType from, DType to, Scalar a) {
  if (is_float(from)) {
    if (is_float(to)) return real(round_to(to, a.f));
    if (to == DType::Bool) return whole(a.f != 0);
    // Out of range saturates and NaN is 0, so that every cast is total.
    double v = std::trunc(a.f);
    if (std::isnan(v)) return whole(0);
    int64_t wide = v >= 9.2233720368547758e18    ? INT64_MAX
                   : v <= -9.2233720368547758e18 ? INT64_MIN
                                                 : static_cast<int64_t>(v);
    auto clamp = [&](int64_t lo, int64_t hi) { return wide < lo ? lo : wide > hi ? hi : wide; };
    switch (to) {
      case DType::I8: return whole(clamp(INT8_MIN, INT8_MAX));
      case DType::I16: return whole(clamp(INT16_MIN, INT16_MAX));
      case DType::I32: return whole(clamp(INT32_MIN, INT32_MAX));
      case DType::U8: return whole(clamp(0, UINT8_MAX));
      default: return whole(wide);
    }
  }
  if (is_float(to)) return real(round_to(to, static_cast<double>(a.i)));
  if (to == DType::Bool) return whole(a.i != 0);
  return whole(wrap_to(to, a.i));
}

}  // namespace

double round_to(DType type, double value) {
  if (type == DType::F64) return value;
  if (type == DType::F32) return static_cast<float>(value);
  Tensor cell(type, {});
  cell.set_float(0, value);
  return cell.get_float(0);
}

bool overflows(Op op, DType type, int64_t a, int64_t b) {
  int64_t exact = 0;
  bool wide = false;  // does not even fit in i64
  switch (op) {
    case Op::Add: wide = __builtin_add_overflow(a, b, &exact); break;
    case Op::Sub: wide = __builtin_sub_overflow(a, b, &exact); break;
    case Op::Mul: wide = __builtin_mul_overflow(a, b, &exact); break;
    case Op::Neg: wide = __builtin_sub_overflow(int64_t{0}, a, &exact); break;
    case Op::Abs: wide = a < 0 && __builtin_sub_overflow(int64_t{0}, a, &exact); break;
    case Op::Div: wide = b == -1 && __builtin_sub_overflow(int64_t{0}, a, &exact); break;
    case Op::Pow:
      exact = 1;
      if (a == 0 || a == 1) break;
      if (a == -1) break;
      for (int64_t n = b; n > 0 && !wide; --n) wide = __builtin_mul_overflow(exact, a, &exact);
      break;
    default: return false;
  }
  return wide || wrap_to(type, exact) != exact;
}

std::string overflow_text(Op op, DType type, int64_t a, int64_t b) {
  const OpInfo& o = info(op);
  std::string what = op == Op::Abs  ? fmt::format("abs({})", a)
                     : o.arity == 1 ? fmt::format("{}({})", o.spelling, a)
                                    : fmt::format("{} {} {}", a, o.spelling, b);
  return fmt::format("integer overflow: {} does not fit in {}", what, name_of(type));
}

std::string failure_text(Op op, DType type, int64_t b) {
  bool shifts = op == Op::Shl || op == Op::Shr;
  return shifts ? shift_text(type, b) : "integer division by zero";
}

std::optional<Scalar> apply_scalar(Op op, DType type, DType to, Scalar a, Scalar b) {
  switch (info(op).cls) {
    case OpClass::Cast: return convert(type, to, a);
    case OpClass::Compare:
      return whole(is_float(type) ? compare(op, a.f, b.f) : compare(op, a.i, b.i));
    case OpClass::Logic: EIN_CHECK(op == Op::Not, "lazy operator"); return whole(a.i == 0);
    case OpClass::Real: return real(round_to(type, apply_real(op, a.f, b.f)));
    case OpClass::Arith:
      if (is_float(type)) return real(round_to(type, apply_real(op, a.f, b.f)));
      if (auto v = apply_whole(op, type, a.i, b.i)) return whole(*v);
      return std::nullopt;
    case OpClass::Whole:
      if (auto v = apply_whole(op, type, a.i, b.i)) return whole(*v);
      return std::nullopt;
    case OpClass::Bits: return whole(philox(a.i, b.i));
    case OpClass::Draw: return real(op == Op::Uniform ? uniform_of(a.i) : normal_of(a.i));
    case OpClass::Rule: EIN_UNREACHABLE("a rule is left after autodiff");
    case OpClass::Mark: EIN_UNREACHABLE("a mark is left after sema");
    case OpClass::Move:
    case OpClass::Matrix: EIN_UNREACHABLE("no scalar operation");
    case OpClass::Select: EIN_UNREACHABLE("lazy operator");
  }
  EIN_UNREACHABLE("op class");
}

std::optional<Op> combination(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return Op::Add;
    case ReduceOp::Prod: return Op::Mul;
    case ReduceOp::Max: return Op::Max;
    case ReduceOp::Min: return Op::Min;
    case ReduceOp::All: return Op::And;
    case ReduceOp::Any: return Op::Or;
    case ReduceOp::ArgMax:
    case ReduceOp::ArgMin:
    case ReduceOp::Collect: break;
  }
  return std::nullopt;
}

}  // namespace ein::core
