// Textbook algorithms, as plain loops over rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "runtime/factor.h"

namespace ein {
namespace {

// The root of a² + b² without overflow. The C library's hypot would require a newer C library than
// wheels may assume.
template <class T>
T length(T a, T b) {
  a = std::abs(a);
  b = std::abs(b);
  if (a < b) std::swap(a, b);
  if (!(a > 0) || std::isinf(a)) return a + b;
  T ratio = b / a;
  return a * std::sqrt(1 + ratio * ratio);
}

template <class T>
void fill_nan(int64_t count, T* out) {
  std::fill_n(out, count, std::numeric_limits<T>::quiet_NaN());
}

template <class T>
void cholesky(int64_t n, const T* a, T* l) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      T s = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) s -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? std::sqrt(s) : s / l[j * n + j];
    }
    for (int64_t j = i + 1; j < n; ++j) l[i * n + j] = 0;
  }
}

// With row exchanges. A column without a nonzero pivot gets factors of 0.
template <class T>
void lu(int64_t n, const T* a, T* out) {
  std::vector<int64_t> row(static_cast<size_t>(n));
  std::iota(row.begin(), row.end(), 0);
  const int64_t w = n + 1;
  for (int64_t i = 0; i < n; ++i) std::copy_n(a + i * n, n, out + i * w);
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k; i < n && !std::isnan(out[best * w + k]); ++i) {
      T x = std::fabs(out[i * w + k]);
      if (std::isnan(x) || x > std::fabs(out[best * w + k])) best = i;
    }
    if (best != k) {
      std::swap_ranges(out + k * w, out + k * w + n, out + best * w);
      std::swap(row[static_cast<size_t>(k)], row[static_cast<size_t>(best)]);
    }
    for (int64_t i = k + 1; i < n; ++i) {
      T f = out[k * w + k] == 0 ? T(0) : out[i * w + k] / out[k * w + k];
      out[i * w + k] = f;
      for (int64_t j = k + 1; j < n; ++j) out[i * w + j] -= f * out[k * w + j];
    }
  }
  for (int64_t i = 0; i < n; ++i) out[i * w + n] = static_cast<T>(row[static_cast<size_t>(i)]);
}

// Householder reflections of the columns. In a wide matrix only the first m columns give columns of
// Q.
template <class T>
void qr(int64_t m, int64_t n, const T* a, T* out) {
  const int64_t turns = std::min(m, n);
  T* q = out;
  T* r = out + m * n;
  std::vector<T> w(a, a + m * n), v(static_cast<size_t>(m * n), 0), b(static_cast<size_t>(n), 0);
  for (int64_t k = 0; k < turns; ++k) {
    T size = 0;
    for (int64_t i = k; i < m; ++i) size = length(size, w[i * n + k]);
    T alpha = w[k * n + k] > 0 ? -size : size, square = 0;
    for (int64_t i = k; i < m; ++i) {
      v[i * n + k] = w[i * n + k] - (i == k ? alpha : T(0));
      square += v[i * n + k] * v[i * n + k];
    }
    b[k] = square == 0 ? T(0) : T(2) / square;
    for (int64_t j = k; j < n; ++j) {
      T s = 0;
      for (int64_t i = k; i < m; ++i) s += v[i * n + k] * w[i * n + j];
      for (int64_t i = k; i < m; ++i) w[i * n + j] -= b[k] * s * v[i * n + k];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = j < i || i >= m ? T(0) : w[i * n + j];
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) q[i * n + j] = i == j ? T(1) : T(0);
  }
  for (int64_t k = turns; k-- > 0;) {
    for (int64_t j = k; j < turns; ++j) {
      T s = 0;
      for (int64_t i = k; i < m; ++i) s += v[i * n + k] * q[i * n + j];
      for (int64_t i = k; i < m; ++i) q[i * n + j] -= b[k] * s * v[i * n + k];
    }
  }
  positive_diagonal(m, n, q, r);
}

// Jacobi's method converges quadratically, so this many sweeps are more than enough.
constexpr int kSweeps = 30;

template <class T>
struct Rotation {
  T c, s;
};
// The rotation that makes the product `off` of a pair 0.
template <class T>
Rotation<T> rotation(T low, T high, T off) {
  T tau = (high - low) / (2 * off);
  T t = (tau < 0 ? T(-1) : T(1)) / (std::fabs(tau) + std::sqrt(1 + tau * tau));
  T c = 1 / std::sqrt(1 + t * t);
  return {c, t * c};
}

template <class T>
void eigen(int64_t n, const T* a, T* out) {
  std::vector<T> d(static_cast<size_t>(n * n)), v(static_cast<size_t>(n * n), 0);
  T total = 0;
  for (int64_t i = 0; i < n; ++i) {
    v[i * n + i] = 1;
    for (int64_t j = 0; j < n; ++j) {
      d[i * n + j] = T(0.5) * (a[i * n + j] + a[j * n + i]);
      total = length(total, d[i * n + j]);
    }
  }
  const T small = std::numeric_limits<T>::epsilon() * total * T(1e-3);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        T off = d[p * n + q];
        if (!(std::fabs(off) > small)) continue;
        turned = true;
        auto [c, s] = rotation(d[p * n + p], d[q * n + q], off);
        for (int64_t k = 0; k < n; ++k) {
          T x = d[k * n + p], y = d[k * n + q];
          d[k * n + p] = c * x - s * y;
          d[k * n + q] = s * x + c * y;
        }
        for (int64_t k = 0; k < n; ++k) {
          T x = d[p * n + k], y = d[q * n + k];
          d[p * n + k] = c * x - s * y;
          d[q * n + k] = s * x + c * y;
        }
        for (int64_t k = 0; k < n; ++k) {
          T x = v[p * n + k], y = v[q * n + k];
          v[p * n + k] = c * x - s * y;
          v[q * n + k] = s * x + c * y;
        }
      }
    }
    if (!turned) break;
  }
  std::vector<T> value(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) value[k] = d[k * n + k];
  if (!std::isfinite(total)) return fill_nan((n + 1) * n, out);
  order_vectors(n, v.data(), value.data(), false, out);
}

// Jacobi's method, applied to the columns.
template <class T>
void svd(int64_t m, int64_t n, const T* a, T* out) {
  // The columns of `b` and `v` are contiguous.
  std::vector<T> b(static_cast<size_t>(m * n)), v(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) b[j * m + i] = a[i * n + j];
  }
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  auto dot = [&](int64_t p, int64_t q) {
    T s = 0;
    for (int64_t i = 0; i < m; ++i) s += b[p * m + i] * b[q * m + i];
    return s;
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        T x = dot(p, p), y = dot(q, q), off = dot(p, q);
        if (!(std::fabs(off) > std::numeric_limits<T>::epsilon() * std::sqrt(x) * std::sqrt(y))) {
          continue;
        }
        turned = true;
        auto [c, s] = rotation(x, y, off);
        auto turn = [&](std::vector<T>& w, int64_t rows) {
          for (int64_t i = 0; i < rows; ++i) {
            T u = w[p * rows + i], z = w[q * rows + i];
            w[p * rows + i] = c * u - s * z;
            w[q * rows + i] = s * u + c * z;
          }
        };
        turn(b, m);
        turn(v, n);
      }
    }
    if (!turned) break;
  }
  std::vector<T> value(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) value[k] = std::sqrt(dot(k, k));
  for (T x : value) {
    if (!std::isfinite(x)) return fill_nan((n + 1) * n, out);
  }
  order_vectors(n, v.data(), value.data(), true, out);
}

// `w`: the distance between rows of `a`, in cells. `transposed`: use the triangle of the transpose.
template <class T>
void solve_triangle(bool lower, bool transposed, bool unit, int64_t n, int64_t w, const T* a,
                    int64_t columns, T* x) {
  auto at = [&](int64_t i, int64_t j) { return transposed ? a[j * w + i] : a[i * w + j]; };
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = lower ? step : n - 1 - step;
    for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) {
      for (int64_t c = 0; c < columns; ++c) x[i * columns + c] -= at(i, k) * x[k * columns + c];
    }
    if (unit) continue;
    for (int64_t c = 0; c < columns; ++c) x[i * columns + c] /= at(i, i);
  }
}

template <class T>
void solve_lu(bool transposed, int64_t n, const T* a, int64_t columns, T* x) {
  const int64_t w = n + 1;
  if (!has_pivots(n, a)) return fill_nan(n * columns, x);
  if (!transposed) {
    exchange_rows(n, a, false, columns, x);
    solve_triangle(true, false, true, n, w, a, columns, x);
    solve_triangle(false, false, false, n, w, a, columns, x);
  } else {
    solve_triangle(true, true, false, n, w, a, columns, x);
    solve_triangle(false, true, true, n, w, a, columns, x);
    exchange_rows(n, a, true, columns, x);
  }
}

template <class T>
void identity(int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = i == j ? T(1) : T(0);
  }
}

// The pivots are chosen from the whole remaining matrix, so after a pivot of 0 everything is 0. L
// and U of A = L D U have diagonals of 1; the cofactors are those of D between the inverses of the
// transposes of L and U, and nothing divides by a pivot of 0.
template <class T>
void cofactors(int64_t n, const T* a, T* out) {
  std::vector<T> w(a, a + n * n), d(static_cast<size_t>(n), 0), lower, upper;
  std::vector<int64_t> row(static_cast<size_t>(n)), col;
  std::iota(row.begin(), row.end(), 0);
  col = row;
  T sign = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t p = k, q = k;
    for (int64_t i = k; i < n; ++i) {
      for (int64_t j = k; j < n; ++j) {
        T x = std::fabs(w[i * n + j]), best = std::fabs(w[p * n + q]);
        if (x > best || (std::isnan(x) && !std::isnan(best))) p = i, q = j;
      }
    }
    if (p != k) {
      sign = -sign;
      std::swap_ranges(w.begin() + k * n, w.begin() + (k + 1) * n, w.begin() + p * n);
      std::swap(row[k], row[p]);
    }
    if (q != k) {
      sign = -sign;
      for (int64_t i = 0; i < n; ++i) std::swap(w[i * n + k], w[i * n + q]);
      std::swap(col[k], col[q]);
    }
    d[k] = w[k * n + k];
    if (d[k] == 0) {
      for (int64_t i = k; i < n; ++i) {
        for (int64_t j = k; j < n; ++j) w[i * n + j] = 0;
      }
      break;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      T f = w[i * n + k] / d[k];
      w[i * n + k] = f;
      for (int64_t j = k + 1; j < n; ++j) w[i * n + j] -= f * w[k * n + j];
    }
    for (int64_t j = k + 1; j < n; ++j) w[k * n + j] /= d[k];
  }
  lower.resize(static_cast<size_t>(n * n));
  upper.resize(static_cast<size_t>(n * n));
  identity(n, lower.data());
  identity(n, upper.data());
  solve_triangle(true, false, true, n, n, w.data(), n, lower.data());
  solve_triangle(false, false, true, n, n, w.data(), n, upper.data());
  std::vector<T> others(static_cast<size_t>(n), sign);  // for each pivot, the product of the others
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) others[i] *= i == j ? T(1) : d[j];
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T s = 0;
      for (int64_t k = 0; k < n; ++k) {
        if (others[k] != 0) s += lower[k * n + i] * others[k] * upper[j * n + k];
      }
      out[row[i] * n + col[j]] = s;
    }
  }
}

}  // namespace

template <class T>
bool has_pivots(int64_t n, const T* lu) {
  for (int64_t i = 0; i < n; ++i) {
    T pivot = lu[i * (n + 1) + n];
    if (!(pivot >= 0 && pivot < static_cast<T>(n))) return false;
  }
  return true;
}

template <class T>
void exchange_rows(int64_t n, const T* lu, bool back, int64_t columns, T* x) {
  std::vector<T> b(x, x + n * columns);
  for (int64_t i = 0; i < n; ++i) {
    auto row = static_cast<int64_t>(lu[i * (n + 1) + n]);
    std::copy_n(b.data() + (back ? i : row) * columns, columns, x + (back ? row : i) * columns);
  }
}

template <class T>
void order_vectors(int64_t n, const T* vectors, const T* value, bool falling, T* out) {
  std::vector<int64_t> at(static_cast<size_t>(n));
  std::iota(at.begin(), at.end(), 0);
  std::stable_sort(at.begin(), at.end(), [&](int64_t p, int64_t q) {
    return falling ? value[p] > value[q] : value[p] < value[q];
  });
  for (int64_t k = 0; k < n; ++k) {
    const T* v = vectors + at[static_cast<size_t>(k)] * n;
    T largest = 0, sign = 1;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(v[i]));
    for (int64_t i = 0; i < n; ++i) {
      if (std::fabs(v[i]) < largest * static_cast<T>(kNearlyLargest)) continue;
      sign = v[i] < 0 ? T(-1) : T(1);
      break;
    }
    for (int64_t i = 0; i < n; ++i) out[i * n + k] = sign * v[i];
    out[n * n + k] = value[at[static_cast<size_t>(k)]];
  }
}

template <class T>
void positive_diagonal(int64_t m, int64_t n, T* q, T* r) {
  for (int64_t k = 0; k < n; ++k) {
    if (!(r[k * n + k] < 0)) continue;
    for (int64_t j = k; j < n; ++j) r[k * n + j] = -r[k * n + j];
    for (int64_t i = 0; i < m; ++i) q[i * n + k] = -q[i * n + k];
  }
}

const char* name_of(Factor f) {
  static const char* const names[kFactors] = {"cholesky",      "lu",         "qr",
                                              "eigen",         "svd",        "inverse_lower",
                                              "inverse_upper", "inverse_lu", "solve_lower",
                                              "solve_upper",   "solve_lu",   "solve_lu_transposed",
                                              "cofactors"};
  return names[static_cast<int64_t>(f)];
}

FactorShape factor_shape(Factor f, int64_t rows, int64_t cols) {
  switch (f) {
    case Factor::Cholesky:
    case Factor::Cofactors:
    case Factor::InverseLower:
    case Factor::InverseUpper:
    case Factor::InverseLu: return {rows, rows};
    case Factor::Lu: return {rows, rows + 1};
    case Factor::Qr: return {rows + cols, cols};
    case Factor::Eigen:
    case Factor::Svd: return {cols + 1, cols};
    case Factor::SolveLower:
    case Factor::SolveUpper:
    case Factor::SolveLu:
    case Factor::SolveLuTransposed: return {rows, 1};
  }
  EIN_UNREACHABLE("factor");
}

template <class T>
void factor_plain(Factor f, int64_t rows, int64_t cols, const T* a, int64_t columns, T* out) {
  const int64_t n = rows;
  switch (f) {
    case Factor::Cholesky: return cholesky(n, a, out);
    case Factor::Lu: return lu(n, a, out);
    case Factor::Cofactors: return cofactors(n, a, out);
    case Factor::Qr: return qr(rows, cols, a, out);
    case Factor::Eigen: return eigen(n, a, out);
    case Factor::Svd: return svd(rows, cols, a, out);
    case Factor::InverseLower:
    case Factor::InverseUpper:
      identity(n, out);
      return solve_triangle(f == Factor::InverseLower, false, false, n, n, a, n, out);
    case Factor::InverseLu: identity(n, out); return solve_lu(false, n, a, n, out);
    case Factor::SolveLower:
    case Factor::SolveUpper:
      return solve_triangle(f == Factor::SolveLower, false, false, n, n, a, columns, out);
    case Factor::SolveLu:
    case Factor::SolveLuTransposed:
      return solve_lu(f == Factor::SolveLuTransposed, n, a, columns, out);
  }
}

template void factor_plain(Factor, int64_t, int64_t, const float*, int64_t, float*);
template bool has_pivots(int64_t, const float*);
template void exchange_rows(int64_t, const float*, bool, int64_t, float*);
template void order_vectors(int64_t, const float*, const float*, bool, float*);
template void positive_diagonal(int64_t, int64_t, float*, float*);
template void factor_plain(Factor, int64_t, int64_t, const double*, int64_t, double*);
template bool has_pivots(int64_t, const double*);
template void exchange_rows(int64_t, const double*, bool, int64_t, double*);
template void order_vectors(int64_t, const double*, const double*, bool, double*);
template void positive_diagonal(int64_t, int64_t, double*, double*);

}  // namespace ein
