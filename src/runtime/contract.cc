// Both operands are copied block by block into packed panels, which turns any layout into one, and
// a register tile runs over the panels. The tile is written once, over the compiler's vector types,
// and compiled for three instruction sets.
#include "runtime/contract.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace ein {
namespace {

constexpr int64_t kRows = 6;     // rows of a tile
constexpr int64_t kVectors = 2;  // vectors in a row of it
constexpr int64_t kBlockM = 96, kBlockK = 256, kBlockN = 1024;

// Offsets of a set of indices in two operands, the last index fastest.
struct Offsets {
  std::vector<int64_t> x, y;
  int64_t size() const { return static_cast<int64_t>(x.size()); }
};

// `index` holds (extent, a, b, out) per index; px and py pick two of the steps.
Offsets offsets(const int64_t* index, int64_t count, int px, int py) {
  Offsets out{{0}, {0}};
  for (int64_t i = 0; i < count; ++i, index += 4) {
    auto extent = static_cast<size_t>(std::max<int64_t>(index[0], 0));
    size_t n = out.x.size();
    Offsets next{std::vector<int64_t>(n * extent), std::vector<int64_t>(n * extent)};
    for (size_t j = 0; j < n; ++j) {
      for (size_t e = 0; e < extent; ++e) {
        next.x[j * extent + e] = out.x[j] + static_cast<int64_t>(e) * index[px];
        next.y[j * extent + e] = out.y[j] + static_cast<int64_t>(e) * index[py];
      }
    }
    out = std::move(next);
  }
  return out;
}

// Every offset one more than the one before.
bool consecutive(const int64_t* offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

// panel[p][k][r] for panels of `wide` rows; missing rows are zero.
template <class T>
void pack(T* panel, const T* from, const int64_t* rows, int64_t row_count, const int64_t* ks,
          int64_t k_count, int64_t wide) {
  for (int64_t r0 = 0; r0 < row_count; r0 += wide) {
    int64_t have = std::min(wide, row_count - r0);
    bool together = have == wide && consecutive(rows + r0, wide);
    for (int64_t k = 0; k < k_count; ++k, panel += wide) {
      const T* at = from + ks[k];
      if (together) {
        std::memcpy(panel, at + rows[r0], static_cast<size_t>(wide) * sizeof(T));
        continue;
      }
      for (int64_t r = 0; r < have; ++r) panel[r] = at[rows[r0 + r]];
      for (int64_t r = have; r < wide; ++r) panel[r] = T(0);
    }
  }
}

// acc[r][c] = Σ_k a[k][r] · b[k][c], with rows of kVectors vectors of `Bytes`.
template <class T, int Bytes>
[[gnu::always_inline]] inline void tile(const T* a, const T* b, int64_t k_count, T* acc) {
  using V [[gnu::vector_size(Bytes)]] = T;
  using U [[gnu::vector_size(Bytes), gnu::aligned(alignof(T))]] = T;
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(T));
  V sum[kRows][kVectors] = {};
  for (int64_t k = 0; k < k_count; ++k, a += kRows, b += kVectors * lanes) {
    V row[kVectors];
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const U*>(b + v * lanes);
#pragma GCC unroll 6
    for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) sum[r][v] += a[r] * row[v];
    }
  }
#pragma GCC unroll 6
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      *reinterpret_cast<U*>(acc + (r * kVectors + v) * lanes) = sum[r][v];
    }
  }
}

template <class T>
using Tile = void (*)(const T* a, const T* b, int64_t k_count, T* acc);
template <class T>
struct Kernel {
  Tile<T> run;
  int64_t cols;
};

#define EIN_TILES(suffix, bytes, ...)                                                            \
  __VA_ARGS__ void tile_f32_##suffix(const float* a, const float* b, int64_t k, float* acc) {    \
    tile<float, bytes>(a, b, k, acc);                                                            \
  }                                                                                              \
  __VA_ARGS__ void tile_f64_##suffix(const double* a, const double* b, int64_t k, double* acc) { \
    tile<double, bytes>(a, b, k, acc);                                                           \
  }
EIN_TILES(avx512, 64, [[gnu::target("avx512f,fma"), gnu::optimize("O3")]])
EIN_TILES(avx2, 32, [[gnu::target("avx2,fma"), gnu::optimize("O3")]])
EIN_TILES(plain, 16, [[gnu::optimize("O3")]])
#undef EIN_TILES

template <class T>
void contract(const int64_t* shape, const T* a, const T* b, T* out, Kernel<T> kernel) {
  const int64_t cols = kernel.cols;
  const int64_t* index = shape + 4;
  Offsets batch_ab = offsets(index, shape[0], 1, 2), batch_out = offsets(index, shape[0], 3, 3);
  index += 4 * shape[0];
  Offsets m = offsets(index, shape[1], 1, 3);
  index += 4 * shape[1];
  Offsets n = offsets(index, shape[2], 2, 3);
  index += 4 * shape[2];
  Offsets k = offsets(index, shape[3], 1, 2);
  int64_t block_k = std::min(kBlockK, k.size()), block_m = std::min(kBlockM, m.size());
  int64_t block_n = std::min(kBlockN, n.size());
  // Not cleared: packing writes what the tiles read.
  std::unique_ptr<T[]> pa(new T[static_cast<size_t>((block_m + kRows) * block_k)]);
  std::unique_ptr<T[]> pb(new T[static_cast<size_t>((block_n + cols) * block_k)]);
  T acc[kRows * kVectors * 64 / sizeof(T)];
  auto one_tile = [&](T* c0, int64_t i, int64_t j, int64_t rows, int64_t columns, bool first) {
    for (int64_t r = 0; r < rows; ++r) {
      T* row = c0 + m.y[static_cast<size_t>(i + r)];
      const int64_t* at = &n.y[static_cast<size_t>(j)];
      for (int64_t c = 0; c < columns; ++c) {
        T v = acc[r * cols + c];
        row[at[c]] = first ? v : row[at[c]] + v;
      }
    }
  };
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
        pack(pb.get(), b0, &n.x[static_cast<size_t>(jn)], nn, &k.y[static_cast<size_t>(kk)], nk,
             cols);
        for (int64_t im = 0; im < m.size(); im += kBlockM) {
          int64_t nm = std::min(kBlockM, m.size() - im);
          pack(pa.get(), a0, &m.x[static_cast<size_t>(im)], nm, &k.x[static_cast<size_t>(kk)], nk,
               kRows);
          for (int64_t j = 0; j < nn; j += cols) {
            for (int64_t i = 0; i < nm; i += kRows) {
              kernel.run(pa.get() + i * nk, pb.get() + j * nk, nk, acc);
              one_tile(c0, im + i, jn + j, std::min(kRows, nm - i), std::min(cols, nn - j),
                       kk == 0);
            }
          }
        }
      }
    }
  }
}

}  // namespace

// The same sums with the tile of each level.
#define EIN_CONTRACT(T, name, tiles)                                                          \
  template <Level level>                                                                      \
  void name##_at(const int64_t* shape, const T* a, const T* b, T* out) {                      \
    constexpr Tile<T> run = level == Level::Avx512 ? tiles##_avx512                           \
                            : level == Level::Avx2 ? tiles##_avx2                             \
                                                   : tiles##_plain;                           \
    constexpr int64_t bytes = level == Level::Avx512 ? 64 : level == Level::Avx2 ? 32 : 16;   \
    contract<T>(shape, a, b, out, {run, kVectors * bytes / static_cast<int64_t>(sizeof(T))}); \
  }                                                                                           \
  Contraction<T> name(Level level) {                                                          \
    return level == Level::Avx512 ? name##_at<Level::Avx512>                                  \
           : level == Level::Avx2 ? name##_at<Level::Avx2>                                    \
                                  : name##_at<Level::Plain>;                                  \
  }
EIN_CONTRACT(float, contract_f32, tile_f32)
EIN_CONTRACT(double, contract_f64, tile_f64)
#undef EIN_CONTRACT

}  // namespace ein
