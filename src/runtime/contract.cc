// Both operands are copied block by block into packed panels, which turns any layout into one, and
// a register tile runs over the panels. The tile is written once, over the compiler's vector types,
// and compiled for three instruction sets. Blocks of the result are shared among threads; the sum
// over k has one order whatever their number.
#include "runtime/contract.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/block.h"
#include "runtime/pool.h"

namespace ein {
namespace {

constexpr int64_t kVectors = 2;  // vectors in a row of a tile
// A panel of b (kBlockK rows of a tile's width) stays in the first cache, a block of a in the
// second.
constexpr int64_t kBlockM = 336, kBlockK = 256, kBlockN = 512;
constexpr int64_t kInPlaceTiles = 3;    // so many tiles of rows, and b is read where it is
constexpr int64_t kTaskWork = 1 << 19;  // multiplications that are worth handing to a thread

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

// One tile of the result: row r goes to out + rows[r], all its columns next to each other, set or
// added to. The rows of b stand one after the other in a panel, or (`ks`) where they are in the
// operand.
template <class T>
using Tile = void (*)(const T* a, const T* b, const int64_t* ks, int64_t k_count, T* out,
                      const int64_t* rows, int64_t row_count, bool add);

template <class T, int Bytes, int64_t Rows, bool InPlace>
[[gnu::always_inline]] inline void tile(const T* a, const T* b, const int64_t* ks, int64_t k_count,
                                        T* out, const int64_t* rows, int64_t row_count, bool add) {
  using V [[gnu::vector_size(Bytes)]] = T;
  using U [[gnu::vector_size(Bytes), gnu::aligned(alignof(T))]] = T;
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(T));
  V sum[Rows][kVectors] = {};
  for (int64_t k = 0; k < k_count; ++k, a += Rows) {
    V row[kVectors];
    const T* at = InPlace ? b + ks[k] : b + k * kVectors * lanes;
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const U*>(at + v * lanes);
#pragma GCC unroll 14
    for (int64_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) sum[r][v] += a[r] * row[v];
    }
  }
#pragma GCC unroll 14
  for (int64_t r = 0; r < Rows; ++r) {
    if (r >= row_count) break;
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      U* to = reinterpret_cast<U*>(out + rows[r] + v * lanes);
      *to = add ? *to + sum[r][v] : sum[r][v];
    }
  }
}

// Rows of a tile: what the registers hold, and fewer for where that fits better.
template <Level level>
constexpr int64_t kRows = level == Level::Avx512 ? 14 : 6;
template <Level level>
constexpr int64_t kFewRows = level == Level::Avx512 ? 8 : 4;
template <Level level>
constexpr int kBytes = level == Level::Avx512 ? 64
                       : level == Level::Avx2 ? 32
                                              : 16;

#define EIN_TILE(name, level, ...)                                                          \
  template <class T, int64_t Rows, bool InPlace>                                            \
  __VA_ARGS__ void name(const T* a, const T* b, const int64_t* ks, int64_t k_count, T* out, \
                        const int64_t* rows, int64_t row_count, bool add) {                 \
    tile<T, kBytes<level>, Rows, InPlace>(a, b, ks, k_count, out, rows, row_count, add);    \
  }
EIN_TILE(tile_avx512, Level::Avx512, [[gnu::target("avx512f,fma"), gnu::optimize("O3")]])
EIN_TILE(tile_avx2, Level::Avx2, [[gnu::target("avx2,fma"), gnu::optimize("O3")]])
EIN_TILE(tile_plain, Level::Plain, [[gnu::optimize("O3")]])
#undef EIN_TILE

template <class T>
struct Kernel {
  Tile<T> packed, in_place;
  int64_t rows, cols;
};

template <class T, Level level, int64_t Rows>
Kernel<T> kernel_with() {
  constexpr int64_t cols = kVectors * kBytes<level> / static_cast<int64_t>(sizeof(T));
  if constexpr (level == Level::Avx512) {
    return {tile_avx512<T, Rows, false>, tile_avx512<T, Rows, true>, Rows, cols};
  } else if constexpr (level == Level::Avx2) {
    return {tile_avx2<T, Rows, false>, tile_avx2<T, Rows, true>, Rows, cols};
  } else {
    return {tile_plain<T, Rows, false>, tile_plain<T, Rows, true>, Rows, cols};
  }
}

int64_t round_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

// The tile that computes the fewest rows for nothing.
template <class T, Level level>
Kernel<T> kernel_for(int64_t rows) {
  bool few = round_up(rows, kFewRows<level>) < round_up(rows, kRows<level>);
  return few ? kernel_with<T, level, kFewRows<level>>() : kernel_with<T, level, kRows<level>>();
}

// `size` in equal parts of at most `most`, each a multiple of `unit`.
int64_t part_of(int64_t size, int64_t most, int64_t unit) {
  int64_t parts = std::max<int64_t>(1, (size + most - 1) / most);
  return std::max<int64_t>(unit, round_up((size + parts - 1) / parts, unit));
}

// Panels of one thread, kept from call to call.
template <class T>
T* panels(size_t count) {
  thread_local Block block;
  thread_local size_t have = 0;
  if (have < count * sizeof(T)) {
    block = Block();
    have = 0;
    block = Block(count * sizeof(T));
    have = count * sizeof(T);
  }
  return reinterpret_cast<T*>(block.at());
}

template <class T>
struct Work {
  Kernel<T> kernel;
  Offsets m, n, k;
  int64_t rows_at_a_time;  // of a block of a

  // Rows i0..i1 and columns j0..j1 of one product.
  void block(const T* a, const T* b, T* out, int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    const int64_t rows = kernel.rows, cols = kernel.cols;
    int64_t block_k = std::min(kBlockK, k.size());
    // Few rows do not pay for a copy of b, if its columns stand next to each other.
    bool in_place = i1 - i0 <= kInPlaceTiles * rows;
    for (int64_t j = j0; in_place && j + cols <= j1; j += cols) {
      in_place = consecutive(&n.x[static_cast<size_t>(j)], cols);
    }
    int64_t whole = in_place ? j0 + (j1 - j0) / cols * cols : j0;  // columns before that stay
    T* pa = panels<T>(static_cast<size_t>(
        (round_up(rows_at_a_time, rows) + round_up(j1 - j0, cols) + rows) * block_k + rows * cols +
        128));
    T* pb = pa + round_up(round_up(rows_at_a_time, rows) * block_k,
                          64 / static_cast<int64_t>(sizeof(T)));
    T* edge = pb + round_up(j1 - j0, cols) * block_k;
    std::vector<int64_t> edge_rows(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) edge_rows[static_cast<size_t>(r)] = r * cols;
    for (int64_t kk = 0; kk < k.size(); kk += kBlockK) {
      int64_t nk = std::min(kBlockK, k.size() - kk);
      const int64_t *ka = &k.x[static_cast<size_t>(kk)], *kb = &k.y[static_cast<size_t>(kk)];
      pack(pb, b, n.x.data() + whole, j1 - whole, kb, nk, cols);
      for (int64_t im = i0; im < i1; im += rows_at_a_time) {
        int64_t nm = std::min(rows_at_a_time, i1 - im);
        pack(pa, a, &m.x[static_cast<size_t>(im)], nm, ka, nk, rows);
        for (int64_t j = j0; j < j1; j += cols) {
          const int64_t* columns = &n.y[static_cast<size_t>(j)];
          int64_t wide = std::min(cols, j1 - j);
          bool direct = wide == cols && consecutive(columns, cols);
          for (int64_t i = 0; i < nm; i += rows) {
            const int64_t* to = &m.y[static_cast<size_t>(im + i)];
            int64_t high = std::min(rows, nm - i);
            bool packed = j >= whole;
            const T* tile_a = pa + i * nk;
            const T* tile_b = packed ? pb + (j - whole) * nk : b + n.x[static_cast<size_t>(j)];
            Tile<T> run = packed ? kernel.packed : kernel.in_place;
            if (direct) {
              run(tile_a, tile_b, kb, nk, out + columns[0], to, high, kk > 0);
              continue;
            }
            run(tile_a, tile_b, kb, nk, edge, edge_rows.data(), high, false);
            for (int64_t r = 0; r < high; ++r) {
              for (int64_t c = 0; c < wide; ++c) {
                T& cell = out[to[r] + columns[c]];
                cell = kk > 0 ? cell + edge[r * cols + c] : edge[r * cols + c];
              }
            }
          }
        }
      }
    }
    if (k.size() > 0) return;
    for (int64_t i = i0; i < i1; ++i) {
      for (int64_t j = j0; j < j1; ++j) {
        out[m.y[static_cast<size_t>(i)] + n.y[static_cast<size_t>(j)]] = T(0);
      }
    }
  }
};

template <class T, Level level>
void contract(const int64_t* shape, const T* a, const T* b, T* out) {
  const int64_t* index = shape + 4;
  Offsets batch_ab = offsets(index, shape[0], 1, 2), batch_out = offsets(index, shape[0], 3, 3);
  index += 4 * shape[0];
  Work<T> work{{}, offsets(index, shape[1], 1, 3), {}, {}, 0};
  index += 4 * shape[1];
  work.n = offsets(index, shape[2], 2, 3);
  index += 4 * shape[2];
  work.k = offsets(index, shape[3], 1, 2);
  int64_t rows = work.m.size(), columns = work.n.size();
  if (rows == 0 || columns == 0) return;
  work.kernel = kernel_for<T, level>(rows);
  int64_t part_m = part_of(rows, kBlockM, work.kernel.rows), part_n = part_of(columns, kBlockN, 64);
  work.rows_at_a_time = std::min(part_m, rows);
  int64_t tasks_m = (rows + part_m - 1) / part_m, tasks_n = (columns + part_n - 1) / part_n;
  int64_t tasks = batch_ab.size() * tasks_m * tasks_n;
  auto run_task = [&](int64_t task) {
    int64_t tm = task / tasks_n % tasks_m, tn = task % tasks_n;
    auto s = static_cast<size_t>(task / (tasks_n * tasks_m));
    work.block(a + batch_ab.x[s], b + batch_ab.y[s], out + batch_out.x[s], tm * part_m,
               std::min(rows, (tm + 1) * part_m), tn * part_n,
               std::min(columns, (tn + 1) * part_n));
  };
  int64_t each =
      std::min(rows, part_m) * std::min(columns, part_n) * std::max<int64_t>(1, work.k.size());
  int64_t together = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, each));
  for_each_chunk((tasks + together - 1) / together, [&](int64_t chunk, int) {
    for (int64_t t = chunk * together; t < std::min(tasks, (chunk + 1) * together); ++t) {
      run_task(t);
    }
  });
}

template <class T>
Contraction<T> contraction(Level level) {
  return level == Level::Avx512 ? contract<T, Level::Avx512>
         : level == Level::Avx2 ? contract<T, Level::Avx2>
                                : contract<T, Level::Plain>;
}

}  // namespace

Contraction<float> contract_f32(Level level) { return contraction<float>(level); }
Contraction<double> contract_f64(Level level) { return contraction<double>(level); }

}  // namespace ein
