// Both operands are copied block by block into packed panels, which turns any layout into one, and
// a register tile of kRows × kCols runs over the panels. The compiler vectorises the tile's inner
// loop (fixed trip counts, no aliasing), so there is no intrinsic here.
#include "runtime/contract.h"

#include <algorithm>
#include <vector>

namespace ein {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kBlockM = 96, kBlockK = 256, kBlockN = 512;
template <class T>
constexpr int64_t kCols = 64 / static_cast<int64_t>(sizeof(T));  // one cache line of columns

// Offsets of a set of indices in two operands, the last index fastest.
struct Offsets {
  std::vector<int64_t> x, y;
  int64_t size() const { return static_cast<int64_t>(x.size()); }
};

// `index` holds (extent, a, b, out) per index; px and py pick two of the steps.
Offsets offsets(const int64_t* index, int64_t count, int px, int py) {
  Offsets out{{0}, {0}};
  for (int64_t i = 0; i < count; ++i, index += 4) {
    int64_t extent = std::max<int64_t>(index[0], 0), n = out.size();
    Offsets next;
    next.x.reserve(static_cast<size_t>(n * extent));
    next.y.reserve(static_cast<size_t>(n * extent));
    for (size_t j = 0; j < static_cast<size_t>(n); ++j) {
      for (int64_t e = 0; e < extent; ++e) {
        next.x.push_back(out.x[j] + e * index[px]);
        next.y.push_back(out.y[j] + e * index[py]);
      }
    }
    out = std::move(next);
  }
  return out;
}

// panel[p][k][r] for panels of `wide` rows; missing rows are zero.
template <class T>
void pack(T* panel, const T* from, const int64_t* rows, int64_t row_count, const int64_t* ks,
          int64_t k_count, int64_t wide) {
  for (int64_t r0 = 0; r0 < row_count; r0 += wide) {
    int64_t have = std::min(wide, row_count - r0);
    for (int64_t k = 0; k < k_count; ++k) {
      const T* at = from + ks[k];
      int64_t r = 0;
      for (; r < have; ++r) panel[r] = at[rows[r0 + r]];
      for (; r < wide; ++r) panel[r] = T(0);
      panel += wide;
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void tile(const T* __restrict a, const T* __restrict b, int64_t k_count,
                                        T* __restrict acc) {
  constexpr int64_t cols = kCols<T>;
  T sum[kRows][cols] = {};
  for (int64_t k = 0; k < k_count; ++k, a += kRows, b += cols) {
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < cols; ++c) sum[r][c] += a[r] * b[c];
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < cols; ++c) acc[r * cols + c] = sum[r][c];
  }
}

// One version per instruction set; the loader picks the best the machine has.
#define EIN_VERSIONS [[gnu::target_clones("avx512f", "arch=haswell", "default")]]
EIN_VERSIONS [[gnu::optimize("O3")]] void tile_f32(const float* a, const float* b, int64_t k,
                                                   float* acc) {
  tile<float>(a, b, k, acc);
}
EIN_VERSIONS [[gnu::optimize("O3")]] void tile_f64(const double* a, const double* b, int64_t k,
                                                   double* acc) {
  tile<double>(a, b, k, acc);
}
void run_tile(const float* a, const float* b, int64_t k, float* acc) { tile_f32(a, b, k, acc); }
void run_tile(const double* a, const double* b, int64_t k, double* acc) { tile_f64(a, b, k, acc); }

template <class T>
void contract(const int64_t* shape, const T* a, const T* b, T* out) {
  constexpr int64_t cols = kCols<T>;
  const int64_t* index = shape + 4;
  Offsets batch_ab = offsets(index, shape[0], 1, 2), batch_out = offsets(index, shape[0], 3, 3);
  index += 4 * shape[0];
  Offsets m = offsets(index, shape[1], 1, 3);
  index += 4 * shape[1];
  Offsets n = offsets(index, shape[2], 2, 3);
  index += 4 * shape[2];
  Offsets k = offsets(index, shape[3], 1, 2);
  int64_t block_k = std::min(kBlockK, k.size());
  std::vector<T> pa(static_cast<size_t>((kBlockM + kRows) * block_k));
  std::vector<T> pb(static_cast<size_t>((std::min(kBlockN, n.size()) + cols) * block_k));
  T acc[kRows * cols];
  for (size_t s = 0; s < batch_ab.x.size(); ++s) {
    const T* a0 = a + batch_ab.x[s];
    const T* b0 = b + batch_ab.y[s];
    T* c0 = out + batch_out.x[s];
    if (k.size() == 0) {
      for (int64_t i : m.y) {
        for (int64_t j : n.y) c0[i + j] = T(0);
      }
    }
    for (int64_t jn = 0; jn < n.size(); jn += kBlockN) {
      int64_t nn = std::min(kBlockN, n.size() - jn);
      for (int64_t kk = 0; kk < k.size(); kk += kBlockK) {
        int64_t nk = std::min(kBlockK, k.size() - kk);
        pack(pb.data(), b0, &n.x[static_cast<size_t>(jn)], nn, &k.y[static_cast<size_t>(kk)], nk, cols);
        for (int64_t im = 0; im < m.size(); im += kBlockM) {
          int64_t nm = std::min(kBlockM, m.size() - im);
          pack(pa.data(), a0, &m.x[static_cast<size_t>(im)], nm, &k.x[static_cast<size_t>(kk)], nk,
               kRows);
          for (int64_t j = 0; j < nn; j += cols) {
            for (int64_t i = 0; i < nm; i += kRows) {
              run_tile(pa.data() + i * nk, pb.data() + j * nk, nk, acc);
              for (int64_t r = 0; r < std::min(kRows, nm - i); ++r) {
                T* row = c0 + m.y[static_cast<size_t>(im + i + r)];
                for (int64_t c = 0; c < std::min(cols, nn - j); ++c) {
                  T& cell = row[n.y[static_cast<size_t>(jn + j + c)]];
                  cell = kk == 0 ? acc[r * cols + c] : cell + acc[r * cols + c];
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

void contract_f32(const int64_t* shape, const float* a, const float* b, float* out) {
  contract<float>(shape, a, b, out);
}
void contract_f64(const int64_t* shape, const double* a, const double* b, double* out) {
  contract<double>(shape, a, b, out);
}

}  // namespace ein
