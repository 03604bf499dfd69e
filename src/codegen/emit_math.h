// Private to src/codegen: elementary functions as generated code, with one definition for every
// width and every target. A formula works on scalars and vectors alike, and takes the same steps on
// both, so the tail of a loop gives the same bits as lanes would.
//
// `mad` rounds once if the target has the instruction and twice if not; nothing else here is ever
// contracted. Either way, every formula keeps its error bound (docs/reference.md): products that
// must be exact are exact because their factors are short.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <limits>
#include <span>

namespace ein::codegen {

constexpr double kInf = std::numeric_limits<double>::infinity();

class Math;

// A float or a double, or lanes of them, with the arithmetic of C++.
struct Real {
  Math* m = nullptr;
  llvm::Value* v = nullptr;
};
Real operator+(Real a, Real b);
Real operator-(Real a, Real b);
Real operator*(Real a, Real b);
Real operator/(Real a, Real b);
Real operator-(Real a);
Real operator+(Real a, double b);
Real operator-(Real a, double b);
Real operator*(Real a, double b);
Real operator+(double a, Real b);
Real operator-(double a, Real b);
Real operator/(double a, Real b);

// An exact sum: `high` is its rounded value, `low` the rest.
struct Pair {
  Real high, low;
};

class Math {
 public:
  // `type` is float or double, or a vector of them. `fma`: the target has the instruction.
  Math(llvm::IRBuilder<>& builder, llvm::Type* type, bool fma);

  Real real(llvm::Value* v) { return {this, v}; }
  Real constant(double v);
  Real mad(Real a, Real b, Real c);  // a·b + c
  Real mad(Real a, double b, Real c) { return mad(a, constant(b), c); }
  Real polynomial(Real x, std::span<const double> coefficients);
  Real abs(Real x);
  Real sqrt(Real x);
  Real with_sign(Real magnitude, Real sign);
  Real select(llvm::Value* condition, Real a, Real b);
  Real select(llvm::Value* condition, double a, Real b) {
    return select(condition, constant(a), b);
  }
  Real at_most(Real x, double hi);  // NaN stays
  Real clamp(Real x, double lo, double hi);
  Pair two_sum(Real a, Real b);
  Pair two_product(Real a, Real b);
  llvm::Value* less(Real a, Real b);  // false for NaN, as are the others
  llvm::Value* less(Real a, double b) { return less(a, constant(b)); }
  llvm::Value* equal(Real a, Real b);
  llvm::Value* equal(Real a, double b) { return equal(a, constant(b)); }
  llvm::Value* unordered(Real a, Real b);
  llvm::Value* both(llvm::Value* a, llvm::Value* b) { return b_.CreateAnd(a, b); }
  llvm::Value* either(llvm::Value* a, llvm::Value* b) { return b_.CreateOr(a, b); }
  llvm::Value* negated(llvm::Value* a) { return b_.CreateNot(a); }
  llvm::Value* negative(Real x);  // by its sign bit

  // Adding this leaves the nearest integer in the low bits.
  double magic() const { return wide_ ? 6755399441055744.0 : 12582912.0; }
  llvm::Value* bits(Real x);
  Real from_bits(llvm::Value* v);
  llvm::Constant* integer(uint64_t v);
  int fraction_bits() const { return wide_ ? 52 : 23; }
  int bias() const { return wide_ ? 1023 : 127; }
  // x · 2^n, rounded once, where `t` is n + magic and |n| < 1200 (150 for floats).
  Real scale(Real x, Real t);
  Real power_of_two(llvm::Value* n);  // n normal

  llvm::IRBuilder<>& b() { return b_; }
  llvm::Type* type() const { return type_; }
  bool fma() const { return fma_; }

  // The functions. `middle`: only about 35 bits are needed, enough for a float computed by way of
  // doubles.
  Real exp(Real x, bool middle = false);
  Real exp(Pair x);
  Real expm1(Real x, bool middle = false);
  Real log(Real x, bool middle = false);
  Real log1p(Real x, bool middle = false);
  Real pow(Real x, Real y, bool middle = false);
  struct Turn {
    Real sin, cos;          // of what is left, in -pi/4..pi/4
    llvm::Value* quadrant;  // an integer whose low two bits count quarter turns
  };
  Turn turn(Real magnitude, bool middle);  // up to the limits below
  static constexpr double kTurnLimit = 1e5, kTurnLimitMiddle = 4e6;
  Real sin(Real x, bool middle = false);
  Real cos(Real x, bool middle = false);
  Real tan_middle(Real x);
  Real tanh(Real x);
  Real erf(Real x);
  Real sinh_middle(Real x);
  Real cosh_middle(Real x);
  Real atan2_middle(Real y, Real x);

 private:
  struct Reduced {
    Real r;  // x - n·log(2)
    Real t;  // n + magic
    Real n;
    Real lost;  // what rounding lost of r
  };
  Reduced reduce_exp(Real x);
  struct Split {
    Real m, k;  // x = m · 2^k, m in sqrt(1/2)..sqrt(2)
  };
  Split split(Real x);  // positive and finite
  Real log_tail(Real f, Real k, Real correction, bool middle);
  Real log_special(Real x, Real result);
  Pair log_pair(Real x);
  llvm::Value* is_integer(Real magnitude);

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* int_type_;
  bool wide_, fma_;
};

}  // namespace ein::codegen
