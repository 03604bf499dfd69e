#include "number.h"

#include <algorithm>
#include <cmath>

namespace oracle {
namespace {

// f(c0 + rest) = Σ f_k · rest^k, where f_k are Taylor coefficients at c0; rest^(depth+1) is 0.
Num compose(const Num& x, const Real* coefficients) {
  Num rest = x;
  rest.c[0] = 0;
  Num out(coefficients[x.depth]);
  for (int k = x.depth - 1; k >= 0; --k) {
    out = out * rest;
    out.c[0] += coefficients[k];
  }
  return out;
}

// y' = f(y) for tanh and sigmoid: the coefficients one after another from the equation.
void from_equation(Real first, Real a, Real b, int depth, Real* y) {  // y' = a·y + b·y² (+1 if a=0)
  y[0] = first;
  for (int k = 0; k < depth; ++k) {
    Real square = 0;
    for (int j = 0; j <= k; ++j) square += y[j] * y[k - j];
    y[k + 1] = (a * y[k] + b * square + (a == 0 && k == 0 ? 1 : 0)) / static_cast<Real>(k + 1);
  }
}

}  // namespace

Num operator+(const Num& a, const Num& b) {
  const Num& wide = a.depth >= b.depth ? a : b;
  const Num& other = a.depth >= b.depth ? b : a;
  Num out = wide;
  for (int k = 0; k < 1 << other.depth; ++k) out.c[k] += other.c[k];
  return out;
}

Num scaled(const Num& a, Real by) {
  Num out = a;
  for (int k = 0; k < 1 << a.depth; ++k) out.c[k] *= by;
  return out;
}

Num operator-(const Num& a, const Num& b) { return a + scaled(b, -1); }

Num operator*(const Num& a, const Num& b) {
  Num out;
  out.depth = std::max(a.depth, b.depth);
  for (int s = 0; s < 1 << out.depth; ++s) {
    Real sum = 0;
    for (int t = s;; t = (t - 1) & s) {  // every subset of s
      if (t < 1 << a.depth && (s ^ t) < 1 << b.depth) {
        Real p = a.c[t], q = b.c[s ^ t];
        // A coefficient of 0 counts as absent.
        if (s == 0 || (p != 0 && q != 0)) sum += p * q;
      }
      if (t == 0) break;
    }
    out.c[s] = sum;
  }
  return out;
}

Num operator/(const Num& a, const Num& b) {
  Real y[kMaxDepth + 1];
  y[0] = 1 / b.c[0];
  for (int k = 1; k <= b.depth; ++k) y[k] = -y[k - 1] / b.c[0];
  Num out = a * compose(b, y);
  out.c[0] = a.c[0] / b.c[0];
  return out;
}

Num apply(Function f, const Num& x, Real error) {
  Real v = x.c[0];
  Real y[kMaxDepth + 1] = {};
  switch (f) {
    case Function::Tanh: from_equation(std::tanh(v) * (1 + error), 0, -1, x.depth, y); break;
    case Function::Sigmoid:
      from_equation((1 + error) / (1 + std::exp(-v)), 1, -1, x.depth, y);
      break;
    case Function::Sin:
    case Function::Cos: {
      Real s = std::sin(v), c = std::cos(v), factorial = 1;
      int from = f == Function::Cos;  // cos is the first derivative of sin
      for (int k = 0; k <= x.depth; ++k) {
        if (k > 0) factorial *= static_cast<Real>(k);
        const Real turns[4] = {s, c, -s, -c};
        y[k] = turns[(k + from) % 4] / factorial;
      }
      break;
    }
    case Function::Exp:
      y[0] = std::exp(v);
      for (int k = 1; k <= x.depth; ++k) y[k] = y[k - 1] / static_cast<Real>(k);
      break;
    case Function::Log: {
      y[0] = std::log(v);
      Real power = 1;
      for (int k = 1; k <= x.depth; ++k) {
        power /= v;
        y[k] = (k % 2 == 1 ? power : -power) / static_cast<Real>(k);
      }
      break;
    }
    case Function::Sqrt:
      y[0] = std::sqrt(v);
      for (int k = 1; k <= x.depth; ++k)
        y[k] =
            y[k - 1] * (static_cast<Real>(1.5) - static_cast<Real>(k)) / static_cast<Real>(k) / v;
      break;
    case Function::Abs: return v < 0 ? scaled(x, -1) : x;
    case Function::Square: return x * x;
    case Function::Cube: return x * x * x;
  }
  return compose(x, y);
}

Num perturbed(const Num& x, int which, Real weight) {
  Num out = x;
  for (; out.depth < which; ++out.depth)
    std::fill(out.c + (1 << out.depth), out.c + (2 << out.depth), Real{0});
  out.c[1 << (which - 1)] += weight;
  return out;
}

Num coefficient(const Num& x, int which) {
  Num out;
  if (x.depth < which) return out;
  out.depth = which - 1;
  for (int k = 0; k < 1 << out.depth; ++k) out.c[k] = x.c[k + (1 << (which - 1))];
  return out;
}

bool finite(const Num& x) {
  return std::all_of(x.c, x.c + (1 << x.depth), [](Real c) { return std::isfinite(c); });
}

}  // namespace oracle
