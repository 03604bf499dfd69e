// exp, log and the functions made of them.
#include <cmath>
#include <limits>

#include "codegen/emit_math.h"
#include "codegen/math_coefficients.h"

namespace ein::codegen {

using llvm::Value;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// x is within the range where 2^n is a number (or nearly).
Math::Reduced Math::reduce_exp(Real x) {
  const double* log2 = wide_ ? kLog2 : kLog2Single;
  Real t = mad(x, 1.4426950408889634, constant(magic()));
  Real n = t - magic();
  Real high = mad(n, -log2[0], x);  // exact
  Real low = n * log2[1];
  Real r = high - low;
  return {r, t, n, (high - r) - low};
}

Real Math::exp(Real x, bool middle) {
  // Beyond these the result is 0 or infinite by its own rounding.
  Reduced e = reduce_exp(wide_ ? clamp(x, -746, 710) : clamp(x, -104.5, 89));
  Real q = !wide_   ? polynomial(e.r, kExpSingle)
           : middle ? polynomial(e.r, kExpMiddle)
                    : polynomial(e.r, kExp);
  return scale(1.0 + mad(e.r * e.r, q, e.r), e.t);
}

Real Math::exp(Pair x) {
  Reduced e = reduce_exp(clamp(x.high, -746, 710));
  Real r = e.r + (e.lost + x.low);
  return scale(1.0 + mad(r * r, polynomial(r, kExp), r), e.t);
}

// 2^n·(1 + r + q) - 1, with the large parts added exactly. Halved, so that 2^n is never too large.
Real Math::expm1(Real x, bool middle) {
  Reduced e = reduce_exp(clamp(x, -50, 710));
  Real q = mad(e.r * e.r, middle ? polynomial(e.r, kExpMiddle) : polynomial(e.r, kExp), e.lost);
  Value* n = b_.CreateSub(bits(e.t), bits(constant(magic())));
  Real half = power_of_two(b_.CreateSub(n, integer(1)));
  Pair sum = two_sum(half - 0.5, half * e.r);
  Real y = (sum.high + mad(half, q, sum.low)) * 2.0;
  return select(less(abs(x), 0x1p-54), x, y);
}

Math::Split Math::split(Real x) {
  double up = wide_ ? 54 : 25;
  Value* subnormal = less(x, wide_ ? 0x1p-1022 : 0x1p-126);
  x = select(subnormal, x * std::exp2(up), x);
  int shift = fraction_bits();
  // The exponent counts from sqrt(1/2); the top bit keeps it positive.
  uint64_t top = uint64_t{1} << (wide_ ? 63 : 31);
  double counted = wide_ ? 2048 : 256;
  Value* from = bits(constant(std::sqrt(0.5)));
  Value* all = bits(x);
  Value* e = b_.CreateLShr(b_.CreateAdd(b_.CreateSub(all, from), integer(top)), integer(shift));
  Real m =
      from_bits(b_.CreateSub(b_.CreateAdd(all, integer(top)), b_.CreateShl(e, integer(shift))));
  Real k = from_bits(b_.CreateAdd(e, bits(constant(magic())))) - (magic() + counted);
  return {m, select(subnormal, k - up, k)};
}

// k·log(2) + log(1 + f) + correction, f in sqrt(1/2) - 1 .. sqrt(2) - 1
Real Math::log_tail(Real f, Real k, Real correction, bool middle) {
  Real s = f / (2.0 + f);
  Real z = s * s;
  Real r = z * (middle ? polynomial(z, kLogMiddle) : polynomial(z, kLog));
  Real half = f * f * 0.5;
  // f - f²/2 + s·(f²/2 + r) is log(1 + f): what is rounded is small beside f.
  Real low = mad(s, half + r, mad(k, kLog2[1], correction));
  return mad(k, kLog2[0], f - (half - low));
}

Real Math::log_special(Real x, Real result) {
  result =
      select(less(constant(0), x), result, select(equal(x, 0), constant(-kInf), constant(kNaN)));
  return select(equal(x, kInf), x, result);
}

Real Math::log(Real x, bool middle) {
  Split p = split(x);
  Real f = p.m - 1.0;
  if (wide_) return log_special(x, log_tail(f, p.k, constant(0), middle));
  Real square = f * f;
  Real y = f * square * polynomial(f, kLogSingle);
  y = mad(p.k, kLog2Single[1], y);
  y = mad(square, -0.5, y);
  return log_special(x, mad(p.k, kLog2Single[0], f + y));
}

Real Math::log1p(Real x, bool middle) {
  Pair u = two_sum(constant(1), x);
  Split p = split(u.high);
  Value* near = equal(p.k, 0);
  Real f = select(near, x, p.m - 1.0);
  // What 1 + x lost, times m/u (a power of two), divided by m: it is tiny, and 1/m is 2 - m well
  // enough. Far out it is nothing, and the power would be out of range.
  Value* nothing = either(near, less(constant(0x1p60), x));
  Value* down = b_.CreateSub(bits(p.m), bits(u.high));
  Real lost = u.low * from_bits(b_.CreateAdd(down, bits(constant(1)))) * (2.0 - p.m);
  Real y = log_tail(f, p.k, select(nothing, 0.0, lost), middle);
  y = log_special(u.high, y);
  return select(less(abs(x), 0x1p-54), x, y);
}

// log(x) to about 64 bits: 2·s + 2/3·s³ in pairs, the rest in single numbers.
Pair Math::log_pair(Real x) {
  Split p = split(x);
  Real f = p.m - 1.0;
  Pair g = two_sum(p.m, constant(1));
  Real inverse = 1.0 / g.high;
  Real s = f * inverse;
  Pair back = two_product(s, g.high);
  Real s_low = (((f - back.high) - back.low) - s * g.low) * inverse;
  Pair z = two_product(s, s);
  z.low = mad(s * 2.0, s_low, z.low);
  constexpr double third_low = 2.0L / 3.0L - static_cast<long double>(2.0 / 3.0);
  Pair c = two_sum(constant(2.0 / 3.0), z.high * polynomial(z.high, kLogTail));
  c.low = c.low + third_low;
  Pair q = two_product(z.high, c.high);
  q.low = mad(z.high, c.low, mad(z.low, c.high, q.low));
  Pair v = two_product(s, q.high);
  v.low = mad(s, q.low, mad(s_low, q.high, v.low));
  Pair u = two_sum(s * 2.0, v.high);
  u.low = u.low + (v.low + s_low * 2.0);
  Pair sum = two_sum(p.k * kLog2Long[0], u.high);
  Real low = sum.low + mad(p.k, kLog2Long[1], u.low);
  Real high = sum.high + low;
  return {high, (sum.high - high) + low};
}

Value* Math::is_integer(Real magnitude) {
  constexpr double large = 0x1p52;
  Value* is = equal((magnitude + large) - large, magnitude);
  return either(is, less(constant(large), magnitude));
}

Real Math::pow(Real x, Real y, bool middle) {
  Real a = abs(x), size = abs(y);
  Real result;
  if (middle) {
    result = exp(y * log(a, true), true);
  } else {
    Pair l = log_pair(a);
    Pair p = two_product(y, l.high);
    p.low = mad(y, l.low, p.low);
    // Logarithms of 0 and of infinity have no pair; a huge product has no low part, and that of a
    // huge exponent need not be a number.
    Value* finite = both(less(constant(0), a), less(a, kInf));
    Real plain = y * select(equal(a, 0), -kInf, a);
    p.high = select(finite, p.high, plain);
    p.low =
        select(both(both(finite, less(abs(p.high), 800)), less(size, 0x1p900)), p.low, constant(0));
    result = exp(p);
  }
  Value* whole = is_integer(size);
  Value* odd = both(whole, negated(is_integer(size * 0.5)));
  result = select(both(odd, negative(x)), -result, result);
  Value* below = both(less(x, 0), less(constant(-kInf), x));
  result = select(both(below, negated(whole)), kNaN, result);
  Value* unit = both(equal(a, 1), equal(size, kInf));
  result = select(unit, 1.0, result);
  return select(either(equal(x, 1), equal(y, 0)), 1.0, result);
}

// base + top/bottom, one division for both sides.
Real Math::tanh(Real x) {
  Real a = abs(x), z = a * a;
  Value* small = less(a, 0.625);
  Real e = exp(at_most(a, 22) * 2.0) + 1.0;
  if (wide_) {
    Real top = select(small, a * z * polynomial(z, kTanhTop), constant(-2));
    Real bottom = select(small, polynomial(z, kTanhBottom), e);
    return with_sign(select(small, a, constant(1)) + top / bottom, x);
  }
  Real near = mad(a * z, polynomial(z, kTanhSingle), a);
  return with_sign(select(small, near, 1.0 - 2.0 / e), x);
}

Real Math::erf(Real x) {
  if (wide_) {
    Real a = at_most(abs(x), 6), z = a * a;
    Value* small = less(a, 0.85);
    Real top = select(small, a * polynomial(z, kErfTop), -(exp(-z) * polynomial(a, kErfcTop)));
    Real bottom = select(small, polynomial(z, kErfBottom), polynomial(a, kErfcBottom));
    return with_sign(select(small, a, constant(1)) + top / bottom, x);
  }
  Real a = at_most(abs(x), 4), z = a * a;
  Real near = mad(a, polynomial(z, kErfSingle), a);
  Real far = 1.0 - exp(-(a * polynomial(a, kErfcSingle)));
  return with_sign(select(less(a, 0.92), near, far), x);
}

Real Math::sinh_middle(Real x) {
  Real t = expm1(at_most(abs(x), 100), true);  // beyond 90 a float is infinite
  return with_sign((t + t / (t + 1.0)) * 0.5, x);
}

Real Math::cosh_middle(Real x) {
  Real e = exp(abs(x), true);
  return (e + 1.0 / e) * 0.5;
}

}  // namespace ein::codegen
