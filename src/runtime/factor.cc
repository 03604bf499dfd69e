#include "runtime/factor.h"

#include <algorithm>
#include <vector>

#include "runtime/lapack.h"
#include "runtime/pool.h"

namespace ein {
namespace {

// Smaller matrices always use our own loops, whose bits do not depend on what is installed.
int64_t smallest_for_lapack(Factor f) { return f == Factor::Eigen || f == Factor::Svd ? 16 : 32; }

// Matrices with less work than this share a chunk.
constexpr int64_t kChunkWork = 1 << 16;

struct Index {
  int64_t extent, a, b, out;
};

template <class T>
struct FactorJob {
  Factor f;
  std::vector<Index> batch, columns;  // columns: right-hand sides for the same matrix
  Index row, col, k, q;               // of the result, then of `a`
  FactorShape shape;
  int64_t right = 1;  // how many right-hand sides `columns` has in total

  void one(const T* a, const T* b, T* out) const {
    std::vector<T> packed;
    if (q.a != 1 || k.a != q.extent) {
      packed.resize(static_cast<size_t>(k.extent * q.extent));
      for (int64_t i = 0; i < k.extent; ++i) {
        for (int64_t j = 0; j < q.extent; ++j) packed[i * q.extent + j] = a[i * k.a + j * q.a];
      }
      a = packed.data();
    }
    is_solve(f) ? solve(a, b, out) : factor(a, out);
  }

  bool for_lapack() const { return std::min(k.extent, q.extent) > smallest_for_lapack(f); }

  void factor(const T* a, T* out) const {
    std::vector<T> result;
    bool direct = row.out == shape.cols && col.out == 1;
    if (!direct) result.resize(static_cast<size_t>(shape.rows * shape.cols));
    T* cells = direct ? out : result.data();
    if (!for_lapack() || !factor_lapack(f, k.extent, q.extent, a, shape.cols, false, cells)) {
      factor_plain(f, k.extent, q.extent, a, shape.cols, cells);
    }
    for (int64_t i = 0; i < shape.rows && !direct; ++i) {
      for (int64_t j = 0; j < shape.cols; ++j) {
        out[i * row.out + j * col.out] = cells[i * shape.cols + j];
      }
    }
  }

  void solve(const T* a, const T* b, T* out) const {
    const int64_t n = shape.rows;
    // Whether each right-hand side is contiguous; then they stay as they are in memory, one after
    // the other.
    bool upright = for_lapack() && k.b == 1 && row.out == 1;
    std::vector<T> result(static_cast<size_t>(n * right));
    std::vector<Index> sides(static_cast<size_t>(right));  // where each begins
    for (int64_t c = 0; c < right; ++c) sides[static_cast<size_t>(c)] = place(columns, c);
    auto each = [&](auto visit) {  // in the order in which `result` has them
      for (int64_t o = 0; o < (upright ? right : n); ++o) {
        for (int64_t p = 0; p < (upright ? n : right); ++p) {
          int64_t i = upright ? p : o, c = upright ? o : p;
          visit(result[static_cast<size_t>(upright ? c * n + i : i * right + c)], i,
                sides[static_cast<size_t>(c)]);
        }
      }
    };
    auto take = [&] { each([&](T& x, int64_t i, const Index& from) { x = b[i * k.b + from.b]; }); };
    take();
    if (!for_lapack() || !factor_lapack(f, k.extent, q.extent, a, right, upright, result.data())) {
      upright = false;
      take();
      factor_plain(f, k.extent, q.extent, a, right, result.data());
    }
    each([&](T& x, int64_t i, const Index& to) { out[i * row.out + to.out] = x; });
  }

  static Index place(const std::vector<Index>& set, int64_t number) {
    Index at{0, 0, 0, 0};
    for (size_t i = set.size(); i-- > 0;) {
      int64_t step = number % set[i].extent;
      number /= set[i].extent;
      at.a += step * set[i].a;
      at.b += step * set[i].b;
      at.out += step * set[i].out;
    }
    return at;
  }
};

template <class T>
void run(const int64_t* shape, const T* a, const T* b, T* out, int64_t factor) {
  FactorJob<T> job;
  job.f = static_cast<Factor>(factor);
  const int64_t* next = shape + 4;
  int64_t matrices = 1;
  for (int64_t i = 0; i < shape[0]; ++i, next += 4) {
    Index index{next[0], next[1], next[2], next[3]};
    if (index.extent <= 0) return;
    bool column = is_solve(job.f) && index.a == 0;
    (column ? job.right : matrices) *= index.extent;
    (column ? job.columns : job.batch).push_back(index);
  }
  auto take = [&](bool there) {
    Index index{1, 0, 0, 0};
    if (there) index = {next[0], next[1], next[2], next[3]}, next += 4;
    return index;
  };
  job.row = take(shape[1] > 0);
  job.col = take(shape[2] > 0);
  job.k = take(true);
  job.q = take(true);
  job.shape = factor_shape(job.f, job.k.extent, job.q.extent);
  if (job.shape.rows <= 0 || job.shape.cols <= 0) return;
  int64_t work = job.k.extent * job.q.extent *
                 (is_solve(job.f) ? job.right : std::max<int64_t>(1, job.q.extent));
  int64_t together = std::max<int64_t>(1, kChunkWork / std::max<int64_t>(1, work));
  for_each_chunk((matrices + together - 1) / together, [&](int64_t chunk, int) {
    int64_t end = std::min(matrices, (chunk + 1) * together);
    for (int64_t i = chunk * together; i < end; ++i) {
      Index at = FactorJob<T>::place(job.batch, i);
      job.one(a + at.a, b + at.b, out + at.out);
    }
  });
}

}  // namespace

void factor_f32(const int64_t* shape, const float* a, const float* b, float* out, int64_t factor) {
  run(shape, a, b, out, factor);
}
void factor_f64(const int64_t* shape, const double* a, const double* b, double* out,
                int64_t factor) {
  run(shape, a, b, out, factor);
}

}  // namespace ein
