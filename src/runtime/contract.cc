// Both operands are copied into packed panels, which turns any layout into one, and a register tile
// runs over the panels. b is packed once for all threads, a by each thread for the rows it
// computes. The tile is written once, over the compiler's vector types, and compiled for three
// instruction sets and every number of rows. Threads share the rows and columns of the result; the
// sum over k has one order whatever their number, because its blocks are the same for all. It keeps
// its digits however long it is (emit_sums.cc says how many): runs of kRun products are added up in
// registers, runs are added up in memory, and spans of kSpan in a sum that keeps track of its
// rounding errors.
#include "runtime/contract.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/batches.h"
#include "runtime/dots.h"
#include "runtime/panels.h"
#include "runtime/pool.h"
#include "runtime/team.h"
#include "runtime/transpose.h"
#include "runtime/tuned.h"

namespace ein {
namespace {

using namespace tuned;

template <class T>
constexpr int64_t kBlockK = block_bytes / static_cast<int64_t>(sizeof(T));
constexpr int64_t kRun = 128, kSpan = 16384;
constexpr int64_t packed_cells = 1 << 14;  // copies worth handing to a thread

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

// Whether every offset is one more than the one before.
bool consecutive(const int64_t* offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

// The stretches of a row of offsets in which every one is one more than the one before:
// begin and length.
struct Runs {
  std::array<std::pair<int64_t, int64_t>, 16> at;
  int64_t count = 0;  // more than there is room for: too many to be of use

  Runs(const int64_t* offsets, int64_t size) {
    for (int64_t i = 0, end = 0; i < size && count <= room(); i = end, ++count) {
      for (end = i + 1; end < size && offsets[end] == offsets[end - 1] + 1;) ++end;
      if (count < room()) at[static_cast<size_t>(count)] = {i, end - i};
    }
  }
  int64_t room() const { return static_cast<int64_t>(at.size()); }
  // Whether the runs are at least this long on average.
  bool long_enough(int64_t size, int64_t length) const {
    return count <= room() && count * length <= size;
  }
};

template <class T>
[[gnu::always_inline]] inline void copy(T* to, const T* from, int64_t count) {
  constexpr int64_t lanes = 16 / static_cast<int64_t>(sizeof(T));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) std::memcpy(to + i, from + i, 16);
  for (; i < count; ++i) to[i] = from[i];
}

// Overwrites a row of the result, or adds to it.
template <class T>
void add_row(T* to, const T* from, int64_t count, bool add) {
  if (!add) return copy(to, from, count);
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// panel[k][r] for the rows of one tile; missing rows are zero.
template <class T>
void pack(T* panel, const T* from, const int64_t* rows, int64_t have, int64_t wide,
          const int64_t* ks, int64_t k_count) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T)), lanes = line / 4;
  if (Runs runs(rows, have); runs.long_enough(have, 2 * lanes)) {
    for (int64_t k = 0; k < k_count; ++k, panel += wide) {
      for (int64_t i = 0; i < runs.count; ++i) {
        auto [r, length] = runs.at[static_cast<size_t>(i)];
        copy(panel + r, from + ks[k] + rows[r], length);
      }
      for (int64_t r = have; r < wide; ++r) panel[r] = T(0);
    }
    return;
  }
  // A line of the operand at a time: rows that are a power of two apart share few lines of the
  // cache.
  for (int64_t k0 = 0; k0 < k_count; k0 += line, panel += line * wide) {
    int64_t nk = std::min(line, k_count - k0), r = 0;
    bool squares[4];
    for (int64_t q = 0; q < 4; ++q) {
      squares[q] = (q + 1) * lanes <= nk && consecutive(ks + k0 + q * lanes, lanes);
    }
    for (; r + lanes <= have; r += lanes) {
      for (int64_t q = 0; q * lanes < nk; ++q) {
        int64_t k = q * lanes;
        if (squares[q]) {
          transpose(panel + k * wide + r, wide, from + ks[k0 + k], rows + r);
          continue;
        }
        for (; k < std::min(nk, (q + 1) * lanes); ++k) {
          for (int64_t i = r; i < r + lanes; ++i) panel[k * wide + i] = from[rows[i] + ks[k0 + k]];
        }
      }
    }
    for (; r < have; ++r) {
      for (int64_t k = 0; k < nk; ++k) panel[k * wide + r] = from[rows[r] + ks[k0 + k]];
    }
    for (; r < wide; ++r) {
      for (int64_t k = 0; k < nk; ++k) panel[k * wide + r] = T(0);
    }
  }
}

// One tile of the result: row r goes to out + rows[r], with its columns contiguous. The tile
// overwrites them, or adds to them when `add`. The rows of b are packed in a panel or, with
// `ks`, read from the operand itself.
template <class T>
using Tile = void (*)(const T* a, const T* b, const int64_t* ks, int64_t k_count, T* out,
                      const int64_t* rows, bool add);

template <class T, int Bytes, int64_t Rows, int64_t Vectors, bool InPlace>
[[gnu::always_inline]] inline void tile(const T* a, const T* b, const int64_t* ks, int64_t k_count,
                                        T* out, const int64_t* rows, bool add) {
  using V [[gnu::vector_size(Bytes)]] = T;
  using U [[gnu::vector_size(Bytes), gnu::aligned(alignof(T))]] = T;
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t begin = 0; begin < k_count; begin += kRun) {
    int64_t end = begin + kRun < k_count ? begin + kRun : k_count;
    V sum[Rows][Vectors] = {};
    for (int64_t k = begin; k < end; ++k, a += Rows) {
      V row[Vectors];
      const T* at = InPlace ? b + ks[k] : b + k * Vectors * lanes;
#pragma GCC unroll 4
      for (int64_t v = 0; v < Vectors; ++v) row[v] = *reinterpret_cast<const U*>(at + v * lanes);
#pragma GCC unroll 14
      for (int64_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < Vectors; ++v) sum[r][v] += a[r] * row[v];
      }
    }
#pragma GCC unroll 14
    for (int64_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < Vectors; ++v) {
        U* to = reinterpret_cast<U*>(out + rows[r] + v * lanes);
        *to = add ? *to + sum[r][v] : sum[r][v];
      }
    }
    add = true;
  }
}

// Tiles fill the registers: few rows of many vectors, which need the fewest loads, or many rows of
// few for results that have few columns.
constexpr int64_t kTallVectors = 2;
template <Level level>
constexpr int64_t kWideVectors = level == Level::Avx512 ? 4 : 2;
template <Level level>
constexpr int64_t kTallRows = level == Level::Avx512 ? 14 : 6;
constexpr size_t kMostRows = 14, kMostVectors = 4;
template <Level level>
constexpr int kBytes = level == Level::Avx512 ? 64
                       : level == Level::Avx2 ? 32
                                              : 16;

#define EIN_TILE(name, level, ...)                                                          \
  template <class T, int64_t Rows, int64_t Vectors, bool InPlace>                           \
  __VA_ARGS__ void name(const T* a, const T* b, const int64_t* ks, int64_t k_count, T* out, \
                        const int64_t* rows, bool add) {                                    \
    tile<T, kBytes<level>, Rows, Vectors, InPlace>(a, b, ks, k_count, out, rows, add);      \
  }
EIN_TILE(tile_avx512, Level::Avx512, [[gnu::target("avx512f,fma"), gnu::optimize("O3")]])
EIN_TILE(tile_avx2, Level::Avx2, [[gnu::target("avx2,fma"), gnu::optimize("O3")]])
EIN_TILE(tile_plain, Level::Plain, [[gnu::optimize("O3")]])
#undef EIN_TILE

// Tiles of at most `rows` rows and `vectors` vectors, by their number of rows; the last tile of a
// result may have fewer vectors.
template <class T>
struct Tiles {
  using ByRows = std::array<Tile<T>, kMostRows + 1>;
  int64_t rows, vectors, lanes;
  std::array<ByRows, kMostVectors + 1> packed;  // by the number of vectors
  ByRows in_place;

  int64_t cols() const { return vectors * lanes; }
};

template <class T, Level level, int64_t Rows, int64_t Vectors, bool InPlace>
constexpr Tile<T> tile_for() {
  if constexpr (level == Level::Avx512) {
    return tile_avx512<T, Rows, Vectors, InPlace>;
  } else if constexpr (level == Level::Avx2) {
    return tile_avx2<T, Rows, Vectors, InPlace>;
  } else {
    return tile_plain<T, Rows, Vectors, InPlace>;
  }
}

template <class T, Level level, int64_t Vectors, bool InPlace, size_t... Below>
constexpr typename Tiles<T>::ByRows tiles_by_rows(std::index_sequence<Below...>) {
  return {nullptr, tile_for<T, level, static_cast<int64_t>(Below) + 1, Vectors, InPlace>()...};
}

template <class T, Level level, int64_t Rows, int64_t Vectors, size_t... Below>
constexpr Tiles<T> tiles_of(std::index_sequence<Below...>) {
  using Numbers = std::make_index_sequence<static_cast<size_t>(Rows)>;
  return {Rows,
          Vectors,
          kBytes<level> / static_cast<int64_t>(sizeof(T)),
          {typename Tiles<T>::ByRows{},
           tiles_by_rows<T, level, static_cast<int64_t>(Below) + 1, false>(Numbers())...},
          tiles_by_rows<T, level, Vectors, true>(Numbers())};
}

template <class T, Level level, int64_t Rows, int64_t Vectors>
constexpr Tiles<T> kTiles =
    tiles_of<T, level, Rows, Vectors>(std::make_index_sequence<static_cast<size_t>(Vectors)>());

template <class T, Level level>
const Tiles<T>& tiles_for(int64_t columns) {
  const Tiles<T>& tall = kTiles<T, level, kTallRows<level>, kTallVectors>;
  return columns <= tall.cols() ? tall : kTiles<T, level, wide_rows, kWideVectors<level>>;
}

// Splits 0..size into `count` parts, as equal as possible: where part i begins.
int64_t part_begin(int64_t size, int64_t count, int64_t i) {
  return size / count * i + std::min(i, size % count);
}

int64_t ceil_div(int64_t size, int64_t unit) { return (size + unit - 1) / unit; }

// A range of rows, columns or ks.
struct Range {
  int64_t lo, hi;
  int64_t size() const { return hi - lo; }
};

// How the columns of a tile lie in the result.
enum class Columns : uint8_t {
  Apart,
  Row,    // one after the other
  Whole,  // so, and whole vectors of them: a tile can write them itself
};

// What the products of one call have in common.
template <class T>
struct Shape {
  const Tiles<T>& tiles;
  Offsets m, n, k;
  bool in_place;                 // b is read in place, at least for whole tiles of columns
  int64_t blocks;                // of k
  std::vector<Columns> columns;  // of the result, by tile

  // Where the blocks of k begin and end.
  Range ks(Range which) const {
    return {part_begin(k.size(), blocks, which.lo), part_begin(k.size(), blocks, which.hi)};
  }
};

// A number that no other round has, of this thread or another.
uint64_t next_round() {
  static std::atomic<uint64_t> threads_seen{0};
  thread_local uint64_t rounds = ++threads_seen << 40;
  return ++rounds;
}

// Which rows of which round a thread has packed.
struct Packed {
  uint64_t round = 0;  // 0: none
  int64_t lo = 0, hi = 0;
  bool operator==(const Packed&) const = default;
};

template <class T>
struct Product {
  const Shape<T>& shape;
  const T *a, *b;
  T* out;
  const Tiles<T>& tiles = shape.tiles;
  const Offsets &m = shape.m, &n = shape.n, &k = shape.k;

  // A panel of b holds one tile of columns, the last may be narrow.
  int64_t width(int64_t j) const {
    return std::min(ceil_div(n.size() - j, tiles.lanes), tiles.vectors) * tiles.lanes;
  }

  // Packs blocks of k for the tile of columns at j.
  void pack_b(T* panel, int64_t j, Range which) const {
    int64_t wide = width(j), have = std::min(wide, n.size() - j);
    for (int64_t i = which.lo; i < which.hi; ++i) {
      Range now = shape.ks({i, i + 1});
      pack(panel, b, &n.x[static_cast<size_t>(j)], have, wide, &k.y[static_cast<size_t>(now.lo)],
           now.size());
      panel += now.size() * wide;
    }
  }

  // Adds the products of some blocks of k to the rows and columns, whose panels of b begin at `pb`;
  // null: they are packed when they are needed.
  void compute(uint64_t number, const T* pb, Range rows, Range cols, Range which) const {
    thread_local Panels<T> mine;
    thread_local Packed packed;  // the rows in `mine`
    Packed wanted{number, rows.lo, rows.hi};
    bool once = rows.size() <= block_rows && which.size() == 1, there = once && packed == wanted;
    packed = once ? wanted : Packed{};
    int64_t edge = tiles.rows * tiles.cols(), depth = 2 * kBlockK<T>;
    T* pa = mine.reserve(edge + (block_rows + tiles.cols()) * depth);
    T* late = pa + edge + block_rows * depth;
    int64_t blocks = ceil_div(rows.size(), block_rows);
    for (int64_t block = 0; block < blocks; ++block) {
      Range part{rows.lo + part_begin(rows.size(), blocks, block),
                 rows.lo + part_begin(rows.size(), blocks, block + 1)};
      for (int64_t i = which.lo; i < which.hi; ++i) {
        if (!there) pack_a(pa + edge, part, shape.ks({i, i + 1}));
        compute_block(pa, pa + edge, pb, late, part, cols, shape.ks(which), shape.ks({i, i + 1}));
      }
    }
  }

  void pack_a(T* pa, Range rows, Range now) const {
    int64_t count = ceil_div(rows.size(), tiles.rows), nk = now.size();
    for (int64_t t = 0; t < count; ++t) {
      int64_t lo = part_begin(rows.size(), count, t), hi = part_begin(rows.size(), count, t + 1);
      pack(pa + lo * nk, a, &m.x[static_cast<size_t>(rows.lo + lo)], hi - lo, hi - lo,
           &k.x[static_cast<size_t>(now.lo)], nk);
    }
  }

  void compute_block(T* edge, const T* pa, const T* pb, T* late, Range rows, Range cols, Range ks,
                     Range now) const {
    int64_t count = ceil_div(rows.size(), tiles.rows), nk = now.size();
    const int64_t* kb = &k.y[static_cast<size_t>(now.lo)];
    for (int64_t j = cols.lo; j < cols.hi; j += tiles.cols()) {
      int64_t wide = width(j), have = std::min(wide, n.size() - j);
      const int64_t* columns = &n.y[static_cast<size_t>(j)];
      bool here = shape.in_place && have == tiles.cols();
      const T* tile_b = here ? b + n.x[static_cast<size_t>(j)]
                        : pb ? pb + (j - cols.lo) * ks.size() + (now.lo - ks.lo) * wide
                             : late;
      if (!here && !pb) { pack(late, b, &n.x[static_cast<size_t>(j)], have, wide, kb, nk); }
      const auto& table =
          here ? tiles.in_place : tiles.packed[static_cast<size_t>(wide / tiles.lanes)];
      for (int64_t t = 0; t < count; ++t) {
        int64_t lo = part_begin(rows.size(), count, t), hi = part_begin(rows.size(), count, t + 1);
        Tile<T> fill = table[static_cast<size_t>(hi - lo)];
        const int64_t* to = &m.y[static_cast<size_t>(rows.lo + lo)];
        // Prefetches what this tile adds to, and a part of the next panel.
        constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
        for (int64_t r = 0; r < hi - lo; ++r) {
          for (int64_t c = 0; c < wide; c += line) {
            __builtin_prefetch(out + columns[0] + to[r] + c, 1);
          }
        }
        if (!here && pb && t * prefetched_lines * line < nk * wide) {
          const T* next = tile_b + ks.size() * wide + t * prefetched_lines * line;
          for (int64_t l = 0; l < prefetched_lines; ++l) __builtin_prefetch(next + l * line, 0, 2);
        }
        Columns lie = shape.columns[static_cast<size_t>(j / tiles.cols())];
        if (lie == Columns::Whole) {
          fill(pa + lo * nk, tile_b, kb, nk, out + columns[0], to, now.lo > 0);
          continue;
        }
        std::array<int64_t, kMostRows> edge_rows;
        for (int64_t r = 0; r < hi - lo; ++r) edge_rows[static_cast<size_t>(r)] = r * wide;
        fill(pa + lo * nk, tile_b, kb, nk, edge, edge_rows.data(), false);
        for (int64_t r = 0; r < hi - lo; ++r) {
          const T* from = edge + r * wide;
          T* row = out + to[r];
          if (lie == Columns::Row) {
            add_row(row + columns[0], from, have, now.lo > 0);
            continue;
          }
          for (int64_t c = 0; c < have; ++c) {
            T& cell = row[columns[c]];
            cell = now.lo > 0 ? cell + from[c] : from[c];
          }
        }
      }
    }
  }

  // Packs as many columns and ks of b as fit at a time, then runs over all rows.
  void run() const {
    int64_t columns = std::min(packed_columns, n.size());
    int64_t block = std::max<int64_t>(1, k.size() / shape.blocks);
    int64_t at_once = packed_bytes / (columns * static_cast<int64_t>(sizeof(T))) / block;
    for (int64_t j = 0; j < n.size() && k.size() > 0; j += columns) {
      for (int64_t i = 0; i < shape.blocks; i += std::max<int64_t>(at_once, 1)) {
        if (i > 0) all_done();  // it adds to what the round before has computed
        round({j, std::min(j + columns, n.size())},
              {i, std::min(i + std::max<int64_t>(at_once, 1), shape.blocks)});
      }
    }
    if (k.size() > 0) return;
    for_each_chunk(1, [&](int64_t, int) {
      for (int64_t row : m.y) {
        for (int64_t column : n.y) out[row + column] = T(0);
      }
    });
  }

  // How the work of a round is cut, by extents alone.
  struct Cut {
    int64_t rows = 1, columns = 1;  // tasks along them
    bool late = false;              // panels of b are packed by the tasks that use them
  };
  Cut cut(Range cols, int64_t depth) const {
    int64_t tiles_n = ceil_div(cols.size(), tiles.cols()), cells = cols.size() * depth;
    // With few rows, reading b takes longer than multiplying.
    int64_t worth = std::max(m.size() * cells / task_work,
                             cells * static_cast<int64_t>(sizeof(T)) / task_bytes);
    int64_t tasks = threads() == 1 ? 1 : std::clamp<int64_t>(worth, 1, most_tasks);
    // If the rows are one block, a panel of b is used once: it is packed just before, and stays in
    // cache.
    if (m.size() <= block_rows && tiles_n >= 2 * std::min<int64_t>(tasks, most_tasks / 8)) {
      return {1, std::min(tasks, tiles_n), true};
    }
    int64_t most = ceil_div(m.size(), 4 * tiles.rows);
    int64_t columns =
        std::min(std::max<int64_t>(4, ceil_div(tasks, most)), std::min(tasks, tiles_n));
    columns = ceil_div(tiles_n, ceil_div(tiles_n, columns));  // of equal width
    return {std::clamp<int64_t>(tasks / columns, 1, most), columns, false};
  }

  void round(Range cols, Range which) const {
    int64_t tiles_n = ceil_div(cols.size(), tiles.cols()), depth = shape.ks(which).size();
    Cut tasks = cut(cols, depth);
    int64_t first = shape.in_place ? cols.size() / tiles.cols() : 0;
    int64_t panels = tasks.late ? 0 : tiles_n - first;
    T* pb = panels > 0 ? memory_for_all<T>(panels_now(), tiles_n * tiles.cols() * depth) : nullptr;
    int64_t packs = std::min(panels, ceil_div(panels * tiles.cols() * depth, packed_cells));
    for_each_chunk(packs, [&](int64_t task, int) {
      int64_t end = first + part_begin(panels, packs, task + 1);
      for (int64_t t = first + part_begin(panels, packs, task); t < end; ++t) {
        pack_b(pb + t * tiles.cols() * depth, cols.lo + t * tiles.cols(), which);
      }
    });
    if (packs > 0) all_done();
    uint64_t number = next_round();
    // Tasks of the same rows follow each other, so that a thread packs them once.
    for_each_chunk(tasks.rows * tasks.columns, [&](int64_t task, int) {
      int64_t tm = task / tasks.columns, tn = task % tasks.columns;
      int64_t lo = part_begin(tiles_n, tasks.columns, tn) * tiles.cols();
      int64_t hi = std::min(part_begin(tiles_n, tasks.columns, tn + 1) * tiles.cols(), cols.size());
      compute(number, pb ? pb + lo * depth : nullptr,
              {part_begin(m.size(), tasks.rows, tm), part_begin(m.size(), tasks.rows, tm + 1)},
              {cols.lo + lo, cols.lo + hi}, which);
    });
  }
};

template <class T>
Shape<T> shape_of(const Tiles<T>& tiles, Offsets m, Offsets n, Offsets k) {
  int64_t rows = m.size(), columns = n.size();
  bool panel = k.size() > 1 && k.y[1] - k.y[0] == tiles.cols();  // b looks like one already
  bool small = columns * k.size() * static_cast<int64_t>(sizeof(T)) <= in_place_bytes;
  bool in_place = rows <= in_place_rows || small || panel;
  // As equal as possible, and rather one block that is longer than one that is short.
  int64_t blocks = std::max<int64_t>(1, (k.size() + kBlockK<T> / 2) / kBlockK<T>);
  Shape<T> out{tiles, std::move(m), std::move(n), std::move(k), in_place, blocks, {}};
  for (int64_t j = 0; j < columns; j += tiles.cols()) {
    int64_t have = std::min(tiles.cols(), columns - j);
    auto at = static_cast<size_t>(j);
    out.columns.push_back(!consecutive(&out.n.y[at], have) ? Columns::Apart
                          : have % tiles.lanes == 0        ? Columns::Whole
                                                           : Columns::Row);
    if (!consecutive(&out.n.x[at], have)) out.in_place = false;
  }
  return out;
}

// A sum over very many ks is taken span by span: the first goes to the result itself, every other
// one beside it, from where it is added.
template <class T>
struct Spans {
  std::vector<Shape<T>> all;

  Spans(const Tiles<T>& tiles, Offsets m, Offsets n, Offsets k) {
    int64_t count = std::max<int64_t>(1, ceil_div(k.size(), kSpan));
    if (count == 1) {
      all.push_back(shape_of<T>(tiles, std::move(m), std::move(n), std::move(k)));
      return;
    }
    Offsets rows = std::move(m), columns = n;
    for (int64_t i = 0; i < count; ++i) {
      auto lo = part_begin(k.size(), count, i), hi = part_begin(k.size(), count, i + 1);
      Offsets part{{k.x.begin() + lo, k.x.begin() + hi}, {k.y.begin() + lo, k.y.begin() + hi}};
      all.push_back(shape_of<T>(tiles, rows, columns, std::move(part)));
      for (size_t r = 0; r < rows.y.size(); ++r) rows.y[r] = static_cast<int64_t>(r) * n.size();
      for (size_t c = 0; c < columns.y.size(); ++c) columns.y[c] = static_cast<int64_t>(c);
    }
  }

  void run(const T* a, const T* b, T* out) const {
    const Offsets &m = all[0].m, &n = all[0].n;
    int64_t rows = m.size(), columns = n.size();
    Product<T>{all[0], a, b, out}.run();
    if (all.size() == 1) return;
    T* now = memory_for_all<T>(kSpanSums, 2 * rows * columns);
    T* lost = now + rows * columns;
    auto each_cell = [&](auto&& f) {
      int64_t tasks = std::clamp<int64_t>(rows * columns / (task_work / 16), 1, rows);
      for_each_chunk(tasks, [&](int64_t task, int) {
        int64_t end = part_begin(rows, tasks, task + 1);
        for (int64_t r = part_begin(rows, tasks, task); r < end; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            f(out[m.y[static_cast<size_t>(r)] + n.y[static_cast<size_t>(c)]], r * columns + c);
          }
        }
      });
    };
    for (size_t i = 1; i < all.size(); ++i) {
      Product<T>{all[i], a, b, now}.run();
      all_done();
      // total + part, exactly; what is lost of a total that is not finite is NaN.
      each_cell([&](T& total, int64_t at) {
        T part = now[at], both = total + part, of_part = both - total;
        T rest = (total - (both - of_part)) + (part - of_part);
        lost[at] = i == 1 ? rest : lost[at] + rest;
        total = both;
      });
      all_done();
    }
    each_cell([&](T& total, int64_t at) {
      if (lost[at] == lost[at]) total += lost[at];
    });
    all_done();
  }
};

// Calls `product` for every batch, with where its operands and its result begin.
template <class F>
void for_each_batch(const Offsets& ab, const Offsets& out, int64_t work, const F& product) {
  // Many products, or those that are small, go to threads whole, one or several at a time; threads
  // share each of a few large ones.
  int64_t batches = ab.size(), together = batches;
  if (batches >= std::min<int64_t>(most_tasks / 4, work / task_work)) {
    together = std::max<int64_t>(1, task_work / std::max<int64_t>(1, work));
  }
  auto some = [&](int64_t chunk, int) {
    for (int64_t i = chunk * together; i < std::min(batches, (chunk + 1) * together); ++i) {
      auto s = static_cast<size_t>(i);
      product(ab.x[s], ab.y[s], out.x[s]);
    }
  };
  int64_t chunks = ceil_div(batches, together);
  if (chunks == 1) return some(0, 0);  // all members of a team share what is inside
  for_each_chunk(chunks, some);
}

template <class T, Level level>
void products(const int64_t* shape, const T* a, const T* b, T* out) {
  const int64_t* index = shape + 4;
  Offsets batch_ab = offsets(index, shape[0], 1, 2), batch_out = offsets(index, shape[0], 3, 3);
  index += 4 * shape[0];
  Offsets m = offsets(index, shape[1], 1, 3);
  index += 4 * shape[1];
  Offsets n = offsets(index, shape[2], 2, 3);
  index += 4 * shape[2];
  if (m.size() == 0 || n.size() == 0 || batch_ab.size() == 0) return;
  int64_t depth = 1;
  for (int64_t i = 0; i < shape[3]; ++i) depth *= std::max<int64_t>(index[4 * i], 0);
  int64_t work = m.size() * n.size() * depth;
  if (std::optional<Dots> dots = dots_of(shape)) {
    for_each_batch(batch_ab, batch_out, work, [&](int64_t x, int64_t y, int64_t to) {
      if constexpr (sizeof(T) == 4) {
        dots_f32(level)(*dots, a + x, b + y, out + to);
      } else {
        dots_f64(level)(*dots, a + x, b + y, out + to);
      }
    });
    return;
  }
  Offsets k = offsets(index, shape[3], 1, 2);
  const Tiles<T>& tiles = tiles_for<T, level>(n.size());
  const Spans<T> spans(tiles, std::move(m), std::move(n), std::move(k));
  for_each_batch(batch_ab, batch_out, work,
                 [&](int64_t x, int64_t y, int64_t to) { spans.run(a + x, b + y, out + to); });
}

template <class T, Level level>
void contract(const int64_t* shape, const T* a, const T* b, T* out) {
  std::optional<Batches> cut = batches_to_copy<T>(shape);
  if (!cut) return products<T, level>(shape, a, b, out);
  const int64_t cells = copied_cells<T>(*cut);
  for_each_chunk(cut->blocks(), [&](int64_t number, int) {
    thread_local Panels<T> copies;
    T* memory = copies.reserve(cells);
    BatchBlock<T> block = batch_block(*cut, number, a, b, out, memory);
    products<T, level>(block.shape.data(), block.a, block.b, block.out);
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
