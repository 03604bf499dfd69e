// Private: the routines of LAPACK that we call, and factorisations of large matrices in blocks of
// columns. LAPACK factors a block, and threads share what then has to be done to the others; it does
// not share its own loops, because their bits would depend on the number of threads. Here the blocks
// depend on the size of the matrix alone.
//
// Matrices are as LAPACK has them: columns one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/pool.h"

namespace ein::lapack {

using Int = int32_t;    // Fortran's INTEGER, as in Debian's libraries
using Length = size_t;  // the length of a character argument, passed after all others

template <class T>
struct Routines {
  void (*potrf)(const char*, const Int*, T*, const Int*, Int*, Length);
  void (*getrf)(const Int*, const Int*, T*, const Int*, Int*, Int*);
  void (*geqrf)(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);
  void (*orgqr)(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);
  void (*syevd)(const char*, const char*, const Int*, T*, const Int*, T*, T*, const Int*, Int*,
                const Int*, Int*, Length, Length);
  void (*gesdd)(const char*, const Int*, const Int*, T*, const Int*, T*, T*, const Int*, T*,
                const Int*, T*, const Int*, Int*, Int*, Length);
  void (*trtri)(const char*, const char*, const Int*, T*, const Int*, Int*, Length, Length);
  void (*trsm)(const char*, const char*, const char*, const char*, const Int*, const Int*, const T*,
               const T*, const Int*, T*, const Int*, Length, Length, Length, Length);
  void (*trsv)(const char*, const char*, const char*, const Int*, const T*, const Int*, T*,
               const Int*, Length, Length, Length);
  void (*gemm)(const char*, const char*, const Int*, const Int*, const Int*, const T*, const T*,
               const Int*, const T*, const Int*, const T*, T*, const Int*, Length, Length);
  void (*laswp)(const Int*, T*, const Int*, const Int*, const Int*, const Int*, const Int*);
  void (*larft)(const char*, const char*, const Int*, const Int*, T*, const Int*, const T*, T*,
                const Int*, Length, Length);
  void (*larfb)(const char*, const char*, const char*, const char*, const Int*, const Int*,
                const Int*, const T*, const Int*, const T*, const Int*, T*, const Int*, T*,
                const Int*, Length, Length, Length, Length);
};

template <class T>
std::vector<T> buffer(int64_t count) {
  return std::vector<T>(static_cast<size_t>(std::max<int64_t>(1, count)));
}

constexpr int64_t kBlockColumns = 48;
constexpr int64_t kFewestInBlocks = 192;  // smaller matrices are done by LAPACK alone

inline bool in_blocks(int64_t n) { return n >= kFewestInBlocks; }

// `block(from, count)` for the columns of each block; blocks are as wide as is worth a thread.
template <class F>
void for_each_block(int64_t rows, int64_t columns, F&& block) {
  constexpr int64_t kCells = 1 << 14, kFewest = 96;
  int64_t wide = std::max(kFewest, kCells / std::max<int64_t>(1, rows));
  for_each_chunk((columns + wide - 1) / wide,
                 [&](int64_t i, int) { block(i * wide, std::min(wide, columns - i * wide)); });
}

// A square or rectangular matrix in blocks of columns, each of which is factored in turn.
template <class T>
struct Blocks {
  const Routines<T>& r;
  T* a;
  Int rows, cols;

  int64_t count() const { return (cols + kBlockColumns - 1) / kBlockColumns; }
  Int begin(int64_t block) const { return static_cast<Int>(block * kBlockColumns); }
  Int width(int64_t block) const {
    return std::min(static_cast<Int>(kBlockColumns), cols - begin(block));
  }
  T* at(Int row, Int col) const { return a + int64_t{col} * rows + row; }

  // `factor(k)` for every block, in order, and `update(k, c)` for every later block `c` after it. A
  // block is factored as soon as it is up to date, while others are still being updated.
  template <class F, class U>
  void run(F&& factor, U&& update) const {
    factor(0);
    for (int64_t k = 0; k + 1 < count(); ++k) {
      for_each_chunk(count() - k - 1, [&](int64_t i, int) {
        update(k, k + 1 + i);
        if (i == 0) factor(k + 1);
      });
    }
  }

  void subtract(const char* transposed, Int m, Int n, Int k, const T* x, const T* y,
                T* from) const {
    const T minus = -1, one = 1;
    if (m > 0) {
      r.gemm(transposed, "N", &m, &n, &k, &minus, x, &rows, y, &rows, &one, from, &rows, 1, 1);
    }
  }
};

// As getrf of an n × n matrix.
template <class T>
void lu_in_blocks(const Routines<T>& r, Int n, T* a, Int* swapped) {
  const Blocks<T> b{r, a, n, n};
  const Int step = 1;
  const T one = 1;
  auto exchange = [&](int64_t block, Int from, Int to) {  // the rows that swapped[from .. to] names
    Int wide = b.width(block), first = from + 1;
    r.laswp(&wide, b.at(0, b.begin(block)), &n, &first, &to, swapped, &step);
  };
  auto factor = [&](int64_t k) {
    Int from = b.begin(k), wide = b.width(k), high = n - from, info = 0;
    r.getrf(&high, &wide, b.at(from, from), &n, swapped + from, &info);
    for (Int i = from; i < from + wide; ++i) swapped[i] += from;
  };
  auto update = [&](int64_t k, int64_t c) {
    Int from = b.begin(k), wide = b.width(k), col = b.begin(c), some = b.width(c);
    exchange(c, from, from + wide);
    r.trsm("L", "L", "N", "U", &wide, &some, &one, b.at(from, from), &n, b.at(from, col), &n, 1, 1,
           1, 1);
    b.subtract("N", n - from - wide, some, wide, b.at(from + wide, from), b.at(from, col),
               b.at(from + wide, col));
  };
  b.run(factor, update);
  for_each_chunk(b.count() - 1, [&](int64_t c, int) { exchange(c, b.begin(c + 1), n); });
}

// As potrf of the upper triangle. The lower one must be 0, and stays so.
template <class T>
bool cholesky_in_blocks(const Routines<T>& r, Int n, T* a) {
  const Blocks<T> b{r, a, n, n};
  const T one = 1;
  Int failed = 0;
  auto factor = [&](int64_t k) {
    Int from = b.begin(k), wide = b.width(k);
    r.potrf("U", &wide, b.at(from, from), &n, &failed, 1);
  };
  factor(0);
  for (int64_t k = 0; k + 1 < b.count() && failed == 0; ++k) {
    Int from = b.begin(k), wide = b.width(k), next = from + wide;
    for_each_chunk(b.count() - k - 1, [&](int64_t i, int) {
      Int col = b.begin(k + 1 + i), some = b.width(k + 1 + i);
      r.trsm("L", "U", "T", "N", &wide, &some, &one, b.at(from, from), &n, b.at(from, col), &n, 1,
             1, 1, 1);
    });
    for_each_chunk(b.count() - k - 1, [&](int64_t i, int) {
      Int col = b.begin(k + 1 + i), some = b.width(k + 1 + i);
      b.subtract("T", col + some - next, some, wide, b.at(from, next), b.at(from, col),
                 b.at(next, col));
      for (Int j = col; j < col + some; ++j) std::fill(b.at(j + 1, j), b.at(col + some, j), T(0));
      if (i == 0) factor(k + 1);
    });
  }
  return failed == 0;
}

// As geqrf; `q`: the first min(rows, cols) columns of Q.
template <class T>
void qr_in_blocks(const Routines<T>& r, Int rows, Int cols, T* a, T* q) {
  const Int turns = std::min(rows, cols);
  const Blocks<T> b{r, a, rows, cols}, out{r, q, rows, turns};
  const Int ld = static_cast<Int>(kBlockColumns);
  std::vector<T> tau = buffer<T>(turns), triangles = buffer<T>(out.count() * ld * ld);
  auto triangle = [&](int64_t k) { return triangles.data() + k * ld * ld; };
  auto factor = [&](int64_t k) {
    if (k >= out.count()) return;
    Int from = b.begin(k), high = rows - from, wide = b.width(k), info = 0;
    Int size = ld * ld, reflections = std::min(high, wide);
    std::vector<T> work = buffer<T>(size);
    r.geqrf(&high, &wide, b.at(from, from), &rows, tau.data() + from, work.data(), &size, &info);
    r.larft("F", "C", &high, &reflections, b.at(from, from), &rows, tau.data() + from, triangle(k),
            &ld, 1, 1);
  };
  // The reflections of block k, from the left, to the columns of block c of `to`.
  auto reflect = [&](const char* transposed, int64_t k, const Blocks<T>& to, int64_t c) {
    if (k >= out.count()) return;
    Int from = b.begin(k), high = rows - from, some = to.width(c);
    Int reflections = std::min(high, b.width(k));
    std::vector<T> work = buffer<T>(some * ld);
    r.larfb("L", transposed, "F", "C", &high, &some, &reflections, b.at(from, from), &rows,
            triangle(k), &ld, to.at(from, to.begin(c)), &rows, work.data(), &some, 1, 1, 1, 1);
  };
  b.run(factor, [&](int64_t k, int64_t c) { reflect("T", k, b, c); });
  // A column of the identity is moved by the reflections that reach its row: the last blocks first,
  // which are the most work.
  for_each_chunk(out.count(), [&](int64_t i, int) {
    int64_t c = out.count() - 1 - i;
    for (Int j = out.begin(c); j < out.begin(c) + out.width(c); ++j) {
      std::fill(out.at(0, j), out.at(0, j) + rows, T(0));
      *out.at(j, j) = T(1);
    }
    for (int64_t k = c; k >= 0; --k) reflect("N", k, out, c);
  });
}

// The inverse of a triangle of `a` into `x`, which already has 0 in the other one; `lower`: of our
// rows, which are the columns here.
template <class T>
bool invert_triangle_in_blocks(const Routines<T>& r, bool lower, Int n, const T* a, T* x) {
  for (Int i = 0; i < n; ++i) {
    if (a[int64_t{i} * (n + 1)] == 0) return false;
  }
  const Blocks<T> out{r, x, n, n};
  const T one = 1;
  for_each_chunk(out.count(), [&](int64_t c, int) {
    Int col = out.begin(c), some = out.width(c);
    // Rows of the solution that are not 0: those down to the block's, or those from there on.
    Int from = lower ? 0 : col, high = lower ? col + some : n - col;
    for (Int j = col; j < col + some; ++j) {
      std::fill(out.at(0, j), out.at(0, j) + n, T(0));
      *out.at(j, j) = T(1);
    }
    r.trsm("L", lower ? "U" : "L", "N", "N", &high, &some, &one, a + int64_t{from} * (n + 1), &n,
           out.at(from, col), &n, 1, 1, 1, 1);
  });
  return true;
}

}  // namespace ein::lapack
