#include "autodiff/rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "core/build.h"

namespace ein::autodiff {

using core::apply;
using core::DType;
using core::Op;

namespace {

constexpr double kTwoOverSqrtPi = 1.1283791670955126;

// The slope in the base: n·x^(n−1). A literal n keeps it short, and n = 0 gives zero even at x = 0.
Coef power_base(Module& m, ExprId x, ExprId n, DType t) {
  if (const auto* lit = core::get_if<core::FloatLit>(m, n)) {
    double v = lit->value;
    if (v == 0) return {.zero = true};
    if (v == 1) return {};
    if (v == 2) return {.scale = 2, .num = x};
    return {.scale = v, .num = apply(m, Op::Pow, {x, core::float_lit(m, v - 1, t)})};
  }
  ExprId zero = core::float_lit(m, 0, t), one = core::float_lit(m, 1, t);
  ExprId slope = core::mul(m, n, apply(m, Op::Pow, {x, core::sub(m, n, one)}));
  return {.num = apply(m, Op::Select, {apply(m, Op::Eq, {n, zero}), zero, slope})};
}

// The sum that a value is; null when it is not one.
const core::Reduce* as_sum(const Module& m, ExprId e) {
  if (const auto* a = core::get_if<core::Access>(m, e)) {
    const core::Family& f = m[a->family];
    return f.generated && f.clauses.size() == 1 ? as_sum(m, f.clauses[0].body) : nullptr;
  }
  const auto* r = core::get_if<core::Reduce>(m, e);
  return r && r->op == core::ReduceOp::Sum ? r : nullptr;
}

// The symbolic extents whose product is `n`.
void factors_of(const Module& m, ExprId n, std::vector<ExprId>& out) {
  if (core::const_int(m, n)) return;
  if (const auto* a = core::get_if<core::Apply>(m, n); a && a->op == Op::Mul) {
    for (ExprId x : a->args) factors_of(m, x, out);
    return;
  }
  core::AffineForm f = core::affine_form(m, n);
  bool one = f.constant == 0 && f.terms.size() == 1;
  out.push_back(one ? f.terms[0].atom : n);
}

// Whether `n` is how many terms `sum` has: a sum of ones, or the product of its extents.
bool counts(Module& m, ExprId n, const core::Reduce& sum) {
  if (const core::Reduce* r = as_sum(m, n)) return core::get_if<core::IntLit>(m, r->body);
  std::vector<ExprId> factors, extents;
  factors_of(m, n, factors);
  for (const core::Range& o : std::vector(sum.over)) extents.push_back(core::sub(m, o.hi, o.lo));
  return std::all_of(factors.begin(), factors.end(), [&](ExprId f) {
    const auto* a = core::get_if<core::Apply>(m, f);  // a range that may end before it begins
    bool cut = a && a->op == Op::Max && core::const_int(m, a->args[1]) == 0;
    return std::find(extents.begin(), extents.end(), cut ? a->args[0] : f) != extents.end();
  });
}

// What divides the tangent of `a` in `a / b`. The mean of nothing is 0 / 0 and has no slope
// (decisions.md, 21): its tangent, also a sum of nothing, is divided by 1.
ExprId divisor(Module& m, ExprId a, ExprId b) {
  const auto* c = core::get_if<core::Apply>(m, b);
  const core::Reduce* sum = as_sum(m, a);
  if (!sum || !c || c->op != Op::Cast || m[c->args[0]].type != DType::I64) return b;
  ExprId n = c->args[0];
  if (core::const_int(m, n) || !counts(m, n, *sum)) return b;
  return core::cast(m, apply(m, Op::Max, {n, core::int_lit(m, 1)}), m[b].type);
}

}  // namespace

Partial partial(Module& m, Op op, const std::vector<ExprId>& args, ExprId r, size_t k) {
  ExprId a = args[0], b = args.size() > 1 ? args[1] : ExprId{};
  DType t = m[a].type;
  bool left = k == 0;
  auto lit = [&](double v) { return core::float_lit(m, v, t); };
  auto f = [&](Op o, ExprId x) { return apply(m, o, {x}); };
  auto mul = [&](ExprId x, ExprId y) { return core::mul(m, x, y); };
  auto add = [&](ExprId x, ExprId y) { return core::add(m, x, y); };
  auto sub = [&](ExprId x, ExprId y) { return core::sub(m, x, y); };
  auto by = [&](ExprId num) {
    if (const auto* l = core::get_if<core::FloatLit>(m, num))
      return Partial{{.scale = l->value}, {}};
    return Partial{{.num = num}, {}};
  };
  auto over = [](ExprId den) { return Partial{{.den = den}, {}}; };
  auto minus = [](Partial p) {
    p.coef.scale = -p.coef.scale;
    return p;
  };
  const Partial one{}, zero{{.zero = true}, {}};
  switch (op) {
    case Op::Add: return one;
    case Op::Sub: return left ? one : minus(one);
    case Op::Mul: return by(left ? b : a);
    case Op::Div: return left ? over(divisor(m, a, b)) : minus({{.num = r, .den = b}, {}});
    case Op::Neg: return minus(one);
    case Op::Pow:
      if (left) return {power_base(m, a, b, t), {}};
      // x^n·log x; at x = 0 the value does not change with n > 0.
      return by(
          apply(m, Op::Select, {apply(m, Op::Eq, {a, lit(0)}), lit(0), mul(r, f(Op::Log, a))}));
    case Op::Mod: {  // a − b·trunc(a/b)
      if (left) return one;
      ExprId q = apply(m, Op::Div, {a, b});
      ExprId below = apply(m, Op::Lt, {q, lit(0)});
      return minus(by(apply(m, Op::Select, {below, f(Op::Ceil, q), f(Op::Floor, q)})));
    }
    case Op::Max: {  // the first winner on ties
      ExprId second = apply(m, Op::Gt, {b, a});
      return {{}, left ? core::negate(m, second) : second};
    }
    case Op::Min: {
      ExprId second = apply(m, Op::Lt, {b, a});
      return {{}, left ? core::negate(m, second) : second};
    }
    case Op::Abs: return by(f(Op::Sign, a));
    case Op::Sign:
    case Op::Stop:
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
    case Op::BitNot:
    case Op::BitLength:
    case Op::Shl:
    case Op::Shr:
    case Op::Philox:
    case Op::Uniform:
    case Op::Normal:
    case Op::Mark: return zero;
    case Op::Moved: EIN_UNREACHABLE("values move after autodiff");
    case Op::Factor: EIN_UNREACHABLE("a matrix function has no derivative of its own");
    case Op::Rule: return left ? zero : Partial{};
    case Op::Tangent: return {};
    case Op::Exp: return by(r);
    case Op::Expm1: return by(add(r, lit(1)));
    case Op::Log: return over(a);
    case Op::Log1p: return over(add(lit(1), a));
    case Op::Sqrt: return {{.scale = 0.5, .den = r}, {}};
    case Op::Sin: return by(f(Op::Cos, a));
    case Op::Cos: return minus(by(f(Op::Sin, a)));
    case Op::Tan: return by(add(lit(1), mul(r, r)));
    case Op::Sinh: return by(f(Op::Cosh, a));
    case Op::Cosh: return by(f(Op::Sinh, a));
    case Op::Tanh: return by(sub(lit(1), mul(r, r)));
    case Op::Asin: return over(f(Op::Sqrt, sub(lit(1), mul(a, a))));
    case Op::Acos: return minus(over(f(Op::Sqrt, sub(lit(1), mul(a, a)))));
    case Op::Atan: return over(add(lit(1), mul(a, a)));
    case Op::Atan2: {
      ExprId norm = add(mul(a, a), mul(b, b));
      return {{.scale = left ? 1.0 : -1.0, .num = left ? b : a, .den = norm}, {}};
    }
    case Op::Erf:
      return {{.scale = kTwoOverSqrtPi, .num = f(Op::Exp, core::neg(m, mul(a, a)))}, {}};
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
    case Op::Cast: break;
  }
  EIN_UNREACHABLE("control has no partial derivative");
}

Coef times(Module& m, const Coef& a, const Coef& b) {
  auto join = [&](ExprId x, ExprId y) { return !x ? y : !y ? x : core::mul(m, x, y); };
  if (a.zero || b.zero) return {.zero = true};
  return {false, a.scale * b.scale, join(a.num, b.num), join(a.den, b.den)};
}

ExprId value(Module& m, const Coef& c, DType type) {
  if (c.zero) return core::float_lit(m, 0, type);
  double size = std::fabs(c.scale);
  ExprId v = c.num;
  if (!v || size != 1) {
    ExprId scale = core::float_lit(m, size, type);
    v = v ? core::mul(m, scale, v) : scale;
  }
  if (c.den) v = apply(m, Op::Div, {v, c.den});
  return std::signbit(c.scale) ? core::neg(m, v) : v;
}

Coef plus(Module& m, const Coef& a, const Coef& b, DType type) {
  if (a.zero) return b;
  if (b.zero) return a;
  // c·x + d·x; c + d = 0 is left as it stands, because x may be infinite.
  if (a.num == b.num && a.den == b.den && a.scale + b.scale != 0) {
    return {false, a.scale + b.scale, a.num, a.den};
  }
  Coef x = a, y = b;
  bool flip = std::signbit(x.scale);  // −(x' ∓ y')
  bool minus = std::signbit(y.scale) != flip;
  x.scale = std::fabs(x.scale);
  y.scale = std::fabs(y.scale);
  ExprId sum = apply(m, minus ? Op::Sub : Op::Add, {value(m, x, type), value(m, y, type)});
  return {.scale = flip ? -1.0 : 1.0, .num = sum};
}

}  // namespace ein::autodiff
