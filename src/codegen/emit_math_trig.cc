// Circular functions and their inverses.
#include <limits>

#include "codegen/emit_math.h"
#include "codegen/math_coefficients.h"

namespace ein::codegen {

using llvm::Value;

namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

// a - n·pi/2. The products with all parts of pi/2 but the last are exact up to the limit, so what
// is left is right to the last bit however close a comes to a multiple.
Math::Turn Math::turn(Real a, bool middle) {
  Real t = mad(a, 2 / kPi, constant(magic()));
  Real n = t - magic();
  Real r, low = constant(0);
  if (middle) {
    r = mad(n, -kHalfPiSingle[1], mad(n, -kHalfPiSingle[0], a));
  } else {
    Pair p = two_sum(mad(n, -kHalfPi[0], a), n * -kHalfPi[1]);
    Real rest = mad(n, -kHalfPi[2], p.low);
    r = p.high + rest;
    low = (p.high - r) + rest;
  }
  Real z = r * r, half = z * 0.5, w = 1.0 - half;
  if (middle) {
    Real sin = mad(r * z, polynomial(z, kSinMiddle), r);
    return {sin, mad(z * z, polynomial(z, kCosMiddle), w), bits(t)};
  }
  // `low` moves the sine by low·cos(r) and the cosine by -low·sin(r).
  Real sin = r + mad(r * z, polynomial(z, kSin), low * w);
  Real cos = w + (((1.0 - w) - half) + mad(z * z, polynomial(z, kCos), -(r * low)));
  return {sin, cos, bits(t)};
}

Real Math::sin(Real x, bool middle) {
  Turn p = turn(abs(x), middle);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(p.quadrant, integer(1)), integer(0));
  Real y = select(odd, p.cos, p.sin);
  // The second half of the circle is negative.
  Value* flip = b_.CreateShl(b_.CreateAnd(p.quadrant, integer(2)), integer(wide_ ? 62 : 30));
  Value* sign = b_.CreateAnd(bits(x), integer(uint64_t{1} << (wide_ ? 63 : 31)));
  return from_bits(b_.CreateXor(bits(y), b_.CreateXor(flip, sign)));
}

Real Math::cos(Real x, bool middle) {
  Turn p = turn(abs(x), middle);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(p.quadrant, integer(1)), integer(0));
  Real y = select(odd, p.sin, p.cos);
  Value* quarter = b_.CreateAdd(p.quadrant, integer(1));
  Value* flip = b_.CreateShl(b_.CreateAnd(quarter, integer(2)), integer(wide_ ? 62 : 30));
  return from_bits(b_.CreateXor(bits(y), flip));
}

Real Math::tan_middle(Real x) {
  Turn p = turn(abs(x), true);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(p.quadrant, integer(1)), integer(0));
  Real y = select(odd, -p.cos, p.sin) / select(odd, p.sin, p.cos);
  Value* sign = b_.CreateAnd(bits(x), integer(uint64_t{1} << 63));
  return from_bits(b_.CreateXor(bits(y), sign));
}

Real Math::atan2_middle(Real y, Real x) {
  Real rise = abs(y), run = abs(x);
  Value* steep = less(run, rise);
  Real top = select(steep, run, rise), bottom = select(steep, rise, run);
  Real q = top / bottom;
  q = select(equal(bottom, 0), 0.0, select(equal(top, kInf), 1.0, q));
  Real z = q * q;
  Real ratio = polynomial(z, kAtanMiddleTop) / polynomial(z, kAtanMiddleBottom);
  Real angle = mad(q * z, ratio, q);
  angle = select(steep, kPi / 2 - angle, angle);
  angle = select(negative(x), kPi - angle, angle);
  return select(unordered(y, x), x + y, with_sign(angle, y));
}

}  // namespace ein::codegen
