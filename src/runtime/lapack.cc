#include "runtime/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "runtime/lapack_blocks.h"

namespace ein {
namespace {

using namespace lapack;

struct Library {
  std::string name;
  Routines<float> single;
  Routines<double> twice;
};

template <class F>
bool find(void* handle, char letter, const char* routine, F& into) {
  std::string name = std::string(1, letter) + routine + "_";
  into = reinterpret_cast<F>(dlsym(handle, name.c_str()));
  return into != nullptr;
}

template <class T>
bool find_all(void* handle, char letter, Routines<T>& r) {
  return find(handle, letter, "potrf", r.potrf) && find(handle, letter, "getrf", r.getrf) &&
         find(handle, letter, "geqrf", r.geqrf) && find(handle, letter, "orgqr", r.orgqr) &&
         find(handle, letter, "syevd", r.syevd) && find(handle, letter, "gesdd", r.gesdd) &&
         find(handle, letter, "trtri", r.trtri) && find(handle, letter, "trsm", r.trsm) &&
         find(handle, letter, "trsv", r.trsv) && find(handle, letter, "gemm", r.gemm) &&
         find(handle, letter, "laswp", r.laswp) && find(handle, letter, "larft", r.larft) &&
         find(handle, letter, "larfb", r.larfb);
}

bool open(const std::string& name, Library& out) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return false;
  if (!find_all(handle, 's', out.single) || !find_all(handle, 'd', out.twice)) {
    dlclose(handle);
    return false;
  }
  if (auto* one = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads")))
    one(1);
  out.name = name;
  return true;
}

// Null if there is none. Never closed.
const Library* library() {
  static const Library* const opened = []() -> const Library* {
    static Library l;
    const char* asked = std::getenv("EINLANG_LAPACK");
    std::string wish = asked ? asked : "";
    if (wish == "off") return nullptr;
    if (!wish.empty()) return open(wish, l) ? &l : nullptr;
    for (const char* name : {"libopenblas.so.0", "liblapack.so.3"}) {
      if (open(name, l)) return &l;
    }
    return nullptr;
  }();
  return opened;
}

template <class T>
const Routines<T>& routines(const Library& l) {
  if constexpr (std::is_same_v<T, float>) {
    return l.single;
  } else {
    return l.twice;
  }
}

// out[j, i] = a[i, j], tile by tile. `w` and `ow`: the distance between rows, in cells.
template <class T>
void transpose(int64_t rows, int64_t cols, const T* a, int64_t w, T* out, int64_t ow) {
  constexpr int64_t kTile = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
    for (int64_t j0 = 0; j0 < cols; j0 += kTile) {
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (int64_t j = j0; j < std::min(cols, j0 + kTile); ++j) out[j * ow + i] = a[i * w + j];
      }
    }
  }
}

template <class T>
bool finite(const T* a, int64_t count) {
  return std::all_of(a, a + count, [](T x) { return std::isfinite(x); });
}

// LAPACK stores matrices column by column, so it sees the transposes of ours.
template <class T>
struct Calls {
  const Routines<T>& r;
  Int info = 0;

  bool cholesky(int64_t rows, const T* a, T* out) {
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(a + i * rows, i + 1, out + i * rows);
      std::fill_n(out + i * rows + i + 1, rows - i - 1, T(0));
    }
    Int n = static_cast<Int>(rows);
    if (in_blocks(rows)) return cholesky_in_blocks(r, n, out);
    r.potrf("U", &n, out, &n, &info, 1);
    return info == 0;
  }

  bool lu(int64_t rows, const T* a, T* out) {
    Int n = static_cast<Int>(rows);
    std::vector<T> t = buffer<T>(rows * rows);
    transpose(rows, rows, a, rows, t.data(), rows);
    std::vector<Int> swapped = buffer<Int>(rows);
    if (in_blocks(rows)) {
      lu_in_blocks(r, n, t.data(), swapped.data());
    } else {
      r.getrf(&n, &n, t.data(), &n, swapped.data(), &info);
      if (info < 0) return false;
    }
    transpose(rows, rows, t.data(), rows, out, rows + 1);
    std::vector<int64_t> row(static_cast<size_t>(rows));
    std::iota(row.begin(), row.end(), 0);
    for (size_t k = 0; k < row.size(); ++k) {
      std::swap(row[k], row[static_cast<size_t>(swapped[k] - 1)]);
    }
    for (int64_t i = 0; i < rows; ++i) {
      out[i * (rows + 1) + rows] = static_cast<T>(row[static_cast<size_t>(i)]);
    }
    return true;
  }

  bool qr(int64_t rows, int64_t cols, const T* a, T* out) {
    const int64_t turns = std::min(rows, cols);
    Int m = static_cast<Int>(rows), n = static_cast<Int>(cols), k = static_cast<Int>(turns);
    std::vector<T> t = buffer<T>(rows * cols), q;
    transpose(rows, cols, a, cols, t.data(), rows);
    if (in_blocks(turns)) {
      q = buffer<T>(rows * turns);
      qr_in_blocks(r, m, n, t.data(), q.data());
    } else if (!reflect(m, n, k, t, q)) {
      return false;
    }
    T* upper = out + rows * cols;
    for (int64_t i = 0; i < cols; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        upper[i * cols + j] = j < i || i >= rows ? T(0) : t[j * rows + i];
      }
    }
    if (rows < cols) std::fill_n(out, rows * cols, T(0));
    transpose(turns, rows, q.data(), rows, out, cols);
    positive_diagonal(rows, cols, out, upper);
    return true;
  }

  // `t` becomes R, with what is left of the reflections below; `q` their product's first k columns.
  bool reflect(Int m, Int n, Int k, std::vector<T>& t, std::vector<T>& q) {
    Int ask = -1;
    std::vector<T> tau = buffer<T>(k);
    T need[2] = {};
    r.geqrf(&m, &n, t.data(), &m, tau.data(), &need[0], &ask, &info);
    r.orgqr(&m, &k, &k, t.data(), &m, tau.data(), &need[1], &ask, &info);
    Int size = static_cast<Int>(std::max({need[0], need[1], T(1)}));
    std::vector<T> work = buffer<T>(size);
    r.geqrf(&m, &n, t.data(), &m, tau.data(), work.data(), &size, &info);
    if (info != 0) return false;
    q.assign(t.begin(), t.begin() + int64_t{m} * k);
    r.orgqr(&m, &k, &k, q.data(), &m, tau.data(), work.data(), &size, &info);
    return info == 0;
  }

  bool eigen(int64_t rows, const T* a, T* out) {
    if (!finite(a, rows * rows)) return false;
    std::vector<T> v = buffer<T>(rows * rows), value = buffer<T>(rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        v[i * rows + j] = T(0.5) * (a[i * rows + j] + a[j * rows + i]);
      }
    }
    Int n = static_cast<Int>(rows), ask = -1, ints = 0;
    T need = 0;
    r.syevd("V", "L", &n, v.data(), &n, value.data(), &need, &ask, &ints, &ask, &info, 1, 1);
    Int size = static_cast<Int>(need);
    std::vector<T> work = buffer<T>(size);
    std::vector<Int> whole = buffer<Int>(ints);
    r.syevd("V", "L", &n, v.data(), &n, value.data(), work.data(), &size, whole.data(), &ints,
            &info, 1, 1);
    if (info != 0) return false;
    order_vectors(rows, v.data(), value.data(), false, out);
    return true;
  }

  bool svd(int64_t rows, int64_t cols, const T* a, T* out) {
    if (!finite(a, rows * cols)) return false;
    const char* wanted = rows < cols ? "A" : "S";  // all right-hand vectors, even of a wide matrix
    std::vector<T> t(a, a + rows * cols), v = buffer<T>(cols * cols), u = buffer<T>(rows * cols);
    std::vector<T> value = buffer<T>(cols);
    std::vector<Int> whole = buffer<Int>(8 * cols);
    Int m = static_cast<Int>(cols), n = static_cast<Int>(rows), k = std::min(m, n), ask = -1;
    T need = 0;
    r.gesdd(wanted, &m, &n, t.data(), &m, value.data(), v.data(), &m, u.data(), &k, &need, &ask,
            whole.data(), &info, 1);
    Int size = static_cast<Int>(need);
    std::vector<T> work = buffer<T>(size);
    r.gesdd(wanted, &m, &n, t.data(), &m, value.data(), v.data(), &m, u.data(), &k, work.data(),
            &size, whole.data(), &info, 1);
    if (info != 0) return false;
    order_vectors(cols, v.data(), value.data(), true, out);
    return true;
  }

  bool invert_triangle(bool lower, int64_t rows, const T* a, T* out) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        out[i * rows + j] = (lower ? j <= i : j >= i) ? a[i * rows + j] : T(0);
      }
    }
    Int n = static_cast<Int>(rows);
    if (in_blocks(rows)) return invert_triangle_in_blocks(r, lower, n, a, out);
    r.trtri(lower ? "U" : "L", "N", &n, out, &n, &info, 1, 1);
    return info == 0;
  }

  // Solves for the columns of the identity: two products with triangles, which libraries do faster
  // than their own inversion (getri). `transposed`: the inverse of the transpose.
  bool invert_lu(bool transposed, int64_t rows, const T* a, T* out) {
    std::fill_n(out, rows * rows, T(0));
    for (int64_t i = 0; i < rows; ++i) out[i * (rows + 1)] = T(1);
    return solve_lu(transposed, rows, a, rows, false, out);
  }

  // Computes cofactors from the inverse, unless the matrix is nearly singular.
  bool cofactors(int64_t rows, const T* a, T* out) {
    std::vector<T> w = buffer<T>(rows * (rows + 1));
    if (!lu(rows, a, w.data())) return false;
    T most = 0, least = std::numeric_limits<T>::infinity(), det = 1;
    for (int64_t k = 0; k < rows; ++k) {
      T pivot = w[k * (rows + 2)];
      most = std::max(most, std::fabs(pivot));
      least = std::min(least, std::fabs(pivot));
      det *= pivot;
    }
    bool regular = least > most * std::sqrt(std::numeric_limits<T>::epsilon());
    if (!regular || !std::isfinite(det) || det == 0) return false;
    if (odd(rows, w.data())) det = -det;
    if (!invert_lu(true, rows, w.data(), out)) return false;
    for (int64_t i = 0; i < rows * rows; ++i) out[i] *= det;
    return true;
  }
  // Whether the pivots amount to an odd number of exchanges.
  static bool odd(int64_t rows, const T* lu) {
    std::vector<bool> seen(static_cast<size_t>(rows), false);
    bool out = false;
    for (size_t i = 0; i < seen.size(); ++i) {
      for (size_t at = i; !seen[at];) {
        seen[at] = true;
        at = static_cast<size_t>(lu[at * (seen.size() + 1) + seen.size()]);
        out ^= at != i;
      }
    }
    return out;
  }

  // Solves for, or inverts, the triangle of a matrix whose rows are `w` cells apart.
  void triangle(bool lower, bool transposed, bool unit, int64_t rows, int64_t w, const T* a,
                int64_t columns, bool upright, T* x) {
    const char* which = lower ? "U" : "L";
    const char* diagonal = unit ? "U" : "N";
    Int n = static_cast<Int>(rows), c = static_cast<Int>(columns), ld = static_cast<Int>(w);
    Int one = 1;
    const T scale = 1;
    if (columns == 1) {
      r.trsv(which, transposed ? "N" : "T", diagonal, &n, a, &ld, x, &one, 1, 1, 1);
      return;
    }
    for_each_block(rows, columns, [&](int64_t from, int64_t count) {
      Int some = static_cast<Int>(count);
      if (upright) {
        r.trsm("L", which, transposed ? "N" : "T", diagonal, &n, &some, &scale, a, &ld,
               x + from * rows, &n, 1, 1, 1, 1);
      } else {
        r.trsm("R", which, transposed ? "T" : "N", diagonal, &some, &n, &scale, a, &ld, x + from,
               &c, 1, 1, 1, 1);
      }
    });
  }

  bool solve_lu(bool transposed, int64_t rows, const T* a, int64_t columns, bool upright, T* x) {
    if (!has_pivots(rows, a)) return false;
    auto exchange = [&] {
      if (!upright) return exchange_rows(rows, a, transposed, columns, x);
      for (int64_t c = 0; c < columns; ++c) exchange_rows(rows, a, transposed, 1, x + c * rows);
    };
    if (!transposed) exchange();
    triangle(!transposed, transposed, !transposed, rows, rows + 1, a, columns, upright, x);
    triangle(transposed, transposed, transposed, rows, rows + 1, a, columns, upright, x);
    if (transposed) exchange();
    return true;
  }
};

}  // namespace

template <class T>
bool factor_lapack(Factor f, int64_t rows, int64_t cols, const T* a, int64_t columns, bool upright,
                   T* out) {
  const Library* l = library();
  // The largest size for which the sizes of work areas fit.
  constexpr int64_t kMost = std::numeric_limits<Int>::max() / 8;
  if (!l || rows * cols > kMost || rows * columns > kMost) return false;
  Calls<T> call{routines<T>(*l)};
  switch (f) {
    case Factor::Cholesky: return call.cholesky(rows, a, out);
    case Factor::Lu: return call.lu(rows, a, out);
    case Factor::Cofactors: return call.cofactors(rows, a, out);
    case Factor::Qr: return call.qr(rows, cols, a, out);
    case Factor::Eigen: return call.eigen(rows, a, out);
    case Factor::Svd: return call.svd(rows, cols, a, out);
    case Factor::InverseLower:
    case Factor::InverseUpper: return call.invert_triangle(f == Factor::InverseLower, rows, a, out);
    case Factor::InverseLu: return call.invert_lu(false, rows, a, out);
    case Factor::SolveLower:
    case Factor::SolveUpper:
      call.triangle(f == Factor::SolveLower, false, false, rows, rows, a, columns, upright, out);
      return true;
    case Factor::SolveLu:
    case Factor::SolveLuTransposed:
      return call.solve_lu(f == Factor::SolveLuTransposed, rows, a, columns, upright, out);
  }
  return false;
}
template bool factor_lapack(Factor, int64_t, int64_t, const float*, int64_t, bool, float*);
template bool factor_lapack(Factor, int64_t, int64_t, const double*, int64_t, bool, double*);

std::string lapack_name() { return library() ? library()->name : std::string(); }

}  // namespace ein
