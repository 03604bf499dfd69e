// Numbers with infinitesimals e1, e2, … whose squares are 0: the coefficient of e1·e2 in f(x + v·e1
// + w·e2) is the second derivative of f along v and w, exactly, and so on for every order. A number
// of depth d has a coefficient for each subset of e1 … ed; bit k of the position stands for e(k+1).
#pragma once

namespace oracle {

using Real = long double;
inline constexpr int kMaxDepth = 6;

struct Num {
  int depth = 0;
  Real c[1 << kMaxDepth];

  Num() { c[0] = 0; }
  Num(Real value) { c[0] = value; }
  Num(const Num& other) { *this = other; }
  Num& operator=(const Num& other) {
    depth = other.depth;
    for (int k = 0; k < 1 << depth; ++k) c[k] = other.c[k];
    return *this;
  }
  Real value() const { return c[0]; }
  Real at(int k) const { return k < 1 << depth ? c[k] : 0; }
};

Num operator+(const Num& a, const Num& b);
Num operator-(const Num& a, const Num& b);
Num operator*(const Num& a, const Num& b);
Num operator/(const Num& a, const Num& b);
Num scaled(const Num& a, Real by);

enum class Function { Tanh, Sin, Cos, Exp, Log, Sqrt, Sigmoid, Abs, Square, Cube };
// `error`: the relative error that the value from which slopes are computed may have: 1 − tanh² of
// a rounded tanh is less exact than the slope itself.
Num apply(Function f, const Num& x, Real error = 0);

// The number plus `weight` times the infinitesimal number `which` (from 1).
Num perturbed(const Num& x, int which, Real weight);
// The coefficient of that infinitesimal, which is the last one: a number of one depth less.
Num coefficient(const Num& x, int which);
bool finite(const Num& x);

}  // namespace oracle
