// Both operands are copied into packed panels, which turns any layout into one, and a register tile
// runs over the panels. b is packed once for all threads, a by each thread for the rows it
// computes. Threads share the rows and columns of the result; the sum over k has one order whatever
// their number, because its blocks are the same for all. It keeps its digits however long it is
// (emit_sums.cc says how many): runs of kRun products are added up in registers, runs are added up
// in memory, and spans of kSpan in a sum that keeps track of its rounding errors.
#include "runtime/contract.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/batches.h"
#include "runtime/dots.h"
#include "runtime/packing.h"
#include "runtime/panels.h"
#include "runtime/pool.h"
#include "runtime/team.h"
#include "runtime/tiles.h"
#include "runtime/tuned.h"

namespace ein {
namespace {

using namespace tuned;

// Units of k in a block.
template <class How>
constexpr int64_t kBlockK = block_bytes / static_cast<int64_t>(sizeof(typename How::Unit));
constexpr int64_t kSpan = 16384;
// Copies of at least this many cells are worth handing to a thread.
constexpr int64_t packed_cells = 1 << 14;

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

// Where part i begins when 0..size is split into `count` parts, as equal as possible.
int64_t part_begin(int64_t size, int64_t count, int64_t i) {
  return size / count * i + std::min(i, size % count);
}

int64_t ceil_div(int64_t size, int64_t unit) { return (size + unit - 1) / unit; }

// A range of rows, columns or ks.
struct Range {
  int64_t lo, hi;
  int64_t size() const { return hi - lo; }
};

// Overwrites a row of the result, or adds to it.
template <class T>
void add_row(T* to, const T* from, int64_t count, bool add) {
  constexpr int64_t at_start = 0;
  if (!add) return Same<T>::copy(to, from, &at_start, count);
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

bool equal_steps(const std::vector<int64_t>& offsets, int64_t step) {
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[i - 1] + step) return false;
  }
  return true;
}

// How the columns of a tile lie in the result.
enum class Columns : uint8_t {
  Apart,
  Row,    // contiguous
  Whole,  // contiguous, and a whole number of vectors: a tile can write them itself
};
struct ColumnTile {
  Columns lie;
  bool in_place;  // b is read in place
};

// What all products of one call share.
template <class How>
struct Shape {
  const Tiles<How>& tiles;
  Offsets m, n, k;  // as many ks as fill whole units
  bool direct_a;    // tiles read a in place
  int64_t blocks;   // blocks of k
  std::vector<ColumnTile> columns;

  int64_t units() const { return k.size() / How::ks_per_unit; }  // units of k
  // Where the blocks of k begin and end, in units.
  Range ks(Range which) const {
    return {part_begin(units(), blocks, which.lo), part_begin(units(), blocks, which.hi)};
  }
};

// A number for a round that no other round has, of this thread or another.
uint64_t next_round() {
  static std::atomic<uint64_t> threads_seen{0};
  thread_local uint64_t rounds = ++threads_seen << 40;
  return ++rounds;
}

// Which rows a thread has packed, in which round.
struct Packed {
  uint64_t round = 0;  // 0: none
  int64_t lo = 0, hi = 0;
  bool operator==(const Packed&) const = default;
};

template <class How>
struct Product {
  using Cell = typename How::Cell;
  using Unit = typename How::Unit;
  using Sum = typename How::Sum;
  static constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(Unit));
  const Shape<How>& shape;
  const Cell *a, *b;
  Sum* out;
  bool symmetric = false;  // skip tiles below the diagonal
  const Tiles<How>& tiles = shape.tiles;
  const Offsets &m = shape.m, &n = shape.n, &k = shape.k;

  // How many columns tile j has: a panel of b holds one tile of columns, and the last tile may be
  // narrower.
  int64_t width(int64_t j) const {
    return std::min(ceil_div(n.size() - j, tiles.lanes), tiles.vectors) * tiles.lanes;
  }

  static const int64_t* unit_of(const std::vector<int64_t>& ks, int64_t unit) {
    return &ks[static_cast<size_t>(unit * How::ks_per_unit)];
  }

  // Packs blocks of k for the tile of columns at j.
  void pack_b(Unit* panel, int64_t j, Range which) const {
    int64_t wide = width(j), have = std::min(wide, n.size() - j);
    for (int64_t i = which.lo; i < which.hi; ++i) {
      Range now = shape.ks({i, i + 1});
      pack<How>(panel, b, &n.x[static_cast<size_t>(j)], have, wide, unit_of(k.y, now.lo),
                now.size());
      panel += now.size() * wide;
    }
  }

  // Adds the products of some blocks of k to these rows and columns. `pb`: the packed panels of b;
  // null if they are packed when they are needed.
  void compute(uint64_t number, const Unit* pb, Range rows, Range cols, Range which) const {
    thread_local Panels<Unit> mine;
    thread_local Packed packed;  // of the rows in `mine`
    Packed wanted{number, rows.lo, rows.hi};
    bool once = rows.size() <= block_rows && which.size() == 1, there = once && packed == wanted;
    packed = once ? wanted : Packed{};
    int64_t edge = tiles.rows * tiles.cols(), depth = 2 * kBlockK<How>;
    Unit* pa = mine.reserve(edge + (block_rows + tiles.cols()) * depth);
    Unit* late = pa + edge + block_rows * depth;
    int64_t blocks = ceil_div(rows.size(), block_rows);
    for (int64_t block = 0; block < blocks; ++block) {
      Range part{rows.lo + part_begin(rows.size(), blocks, block),
                 rows.lo + part_begin(rows.size(), blocks, block + 1)};
      for (int64_t i = which.lo; i < which.hi; ++i) {
        if (!there && !shape.direct_a) pack_a(pa + edge, part, shape.ks({i, i + 1}));
        compute_block(reinterpret_cast<Sum*>(pa), pa + edge, pb, late, part, cols, shape.ks(which),
                      shape.ks({i, i + 1}));
      }
    }
  }

  void pack_a(Unit* pa, Range rows, Range now) const {
    int64_t count = ceil_div(rows.size(), tiles.rows), nk = now.size();
    for (int64_t t = 0; t < count; ++t) {
      int64_t lo = part_begin(rows.size(), count, t), hi = part_begin(rows.size(), count, t + 1);
      pack<How>(pa + lo * nk, a, &m.x[static_cast<size_t>(rows.lo + lo)], hi - lo, hi - lo,
                unit_of(k.x, now.lo), nk);
    }
  }

  void compute_block(Sum* edge, const Unit* pa, const Unit* pb, Unit* late, Range rows, Range cols,
                     Range ks, Range now) const {
    int64_t count = ceil_div(rows.size(), tiles.rows), nk = now.size();
    const int64_t* kb = unit_of(k.y, now.lo);
    for (int64_t j = cols.lo; j < cols.hi; j += tiles.cols()) {
      int64_t wide = width(j), have = std::min(wide, n.size() - j);
      const int64_t* columns = &n.y[static_cast<size_t>(j)];
      const ColumnTile& place = shape.columns[static_cast<size_t>(j / tiles.cols())];
      const bool here = place.in_place;
      const Unit* panel = pb ? pb + (j - cols.lo) * ks.size() + (now.lo - ks.lo) * wide : late;
      const void* tile_b = panel;
      if (here) {
        tile_b = b + n.x[static_cast<size_t>(j)] + (shape.direct_a ? *kb : 0);
      } else if (!pb) {
        pack<How>(late, b, &n.x[static_cast<size_t>(j)], have, wide, kb, nk);
      }
      const auto vectors = static_cast<size_t>(wide / tiles.lanes);
      const auto& table = shape.direct_a ? tiles.direct_a[vectors]
                          : here         ? tiles.direct_b
                                         : tiles.packed[vectors];
      for (int64_t t = 0; t < count; ++t) {
        int64_t lo = part_begin(rows.size(), count, t), hi = part_begin(rows.size(), count, t + 1);
        if (symmetric && rows.lo + lo >= j + have) break;
        Tile<How> fill = table[static_cast<size_t>(hi - lo)];
        const int64_t* to = &m.y[static_cast<size_t>(rows.lo + lo)];
        const void* tile_a = pa + lo * nk;
        const int64_t* steps = kb;
        if (shape.direct_a) {
          tile_a = a + *unit_of(k.x, now.lo);
          steps = &m.x[static_cast<size_t>(rows.lo + lo)];
        }
        // Prefetches the cells that this tile adds to, and a part of the next panel.
        for (int64_t r = 0; r < hi - lo; ++r) {
          for (int64_t c = 0; c < wide; c += line) {
            __builtin_prefetch(out + columns[0] + to[r] + c, 1);
          }
        }
        if (!here && pb && t * prefetched_lines * line < nk * wide) {
          const Unit* next = panel + ks.size() * wide + t * prefetched_lines * line;
          for (int64_t l = 0; l < prefetched_lines; ++l) __builtin_prefetch(next + l * line, 0, 2);
        }
        if (place.lie == Columns::Whole) {
          fill(tile_a, tile_b, steps, nk, out + columns[0], to, now.lo > 0);
          continue;
        }
        std::array<int64_t, kMostRows> edge_rows;
        for (int64_t r = 0; r < hi - lo; ++r) edge_rows[static_cast<size_t>(r)] = r * wide;
        fill(tile_a, tile_b, steps, nk, edge, edge_rows.data(), false);
        for (int64_t r = 0; r < hi - lo; ++r) {
          const Sum* from = edge + r * wide;
          Sum* row = out + to[r];
          if (place.lie == Columns::Row) {
            add_row(row + columns[0], from, have, now.lo > 0);
            continue;
          }
          for (int64_t c = 0; c < have; ++c) {
            Sum& cell = row[columns[c]];
            cell = now.lo > 0 ? cell + from[c] : from[c];
          }
        }
      }
    }
  }

  // Packs as many columns and ks of b as fit at a time, then runs over all rows.
  void run() const {
    int64_t columns = std::min(packed_columns, n.size());
    int64_t block = std::max<int64_t>(1, shape.units() / shape.blocks);
    int64_t at_once = packed_bytes / (columns * static_cast<int64_t>(sizeof(Unit))) / block;
    for (int64_t j = 0; j < n.size() && k.size() > 0; j += columns) {
      for (int64_t i = 0; i < shape.blocks; i += std::max<int64_t>(at_once, 1)) {
        if (i > 0) all_done();  // this round adds to the results of the previous one
        round({j, std::min(j + columns, n.size())},
              {i, std::min(i + std::max<int64_t>(at_once, 1), shape.blocks)});
      }
    }
    if (k.size() > 0) return;
    for_each_chunk(1, [&](int64_t, int) {
      for (int64_t row : m.y) {
        for (int64_t column : n.y) out[row + column] = Sum(0);
      }
    });
  }

  // How the work of a round is cut; this depends on extents alone.
  struct Cut {
    int64_t rows = 1, columns = 1;  // how many tasks along each
    bool late = false;              // the tasks that use panels of b also pack them
  };
  Cut cut(Range cols, int64_t depth) const {
    int64_t tiles_n = ceil_div(cols.size(), tiles.cols()), cells = cols.size() * depth;
    // With few rows, reading b takes longer than multiplying.
    int64_t worth = std::max(m.size() * cells / task_work,
                             cells * static_cast<int64_t>(sizeof(Unit)) / task_bytes);
    int64_t tasks = threads() == 1 ? 1 : std::clamp<int64_t>(worth, 1, most_tasks);
    // If the rows are a single block, each panel of b is used once: it is packed just before its
    // use, and stays in cache.
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
    std::vector<int64_t> missing;  // tiles of columns whose panels of b must be packed now
    for (int64_t t = 0; t < tiles_n && !tasks.late; ++t) {
      if (!shape.columns[static_cast<size_t>(cols.lo / tiles.cols() + t)].in_place)
        missing.push_back(t);
    }
    auto panels = static_cast<int64_t>(missing.size());
    Unit* pb =
        panels > 0 ? memory_for_all<Unit>(panels_now(), tiles_n * tiles.cols() * depth) : nullptr;
    int64_t packs = std::min(panels, ceil_div(panels * tiles.cols() * depth, packed_cells));
    for_each_chunk(packs, [&](int64_t task, int) {
      int64_t end = part_begin(panels, packs, task + 1);
      for (int64_t i = part_begin(panels, packs, task); i < end; ++i) {
        int64_t t = missing[static_cast<size_t>(i)];
        pack_b(pb + t * tiles.cols() * depth, cols.lo + t * tiles.cols(), which);
      }
    });
    if (packs > 0) all_done();
    uint64_t number = next_round();
    // Tasks of the same rows are consecutive, so that a thread packs those rows once.
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

template <class How>
Shape<How> shape_of(const Tiles<How>& tiles, Offsets m, Offsets n, Offsets k) {
  constexpr auto bytes = static_cast<int64_t>(sizeof(typename How::Unit));
  int64_t rows = m.size(), columns = n.size(), units = k.size() / How::ks_per_unit;
  // Cells of b already lie in memory like a panel.
  bool panel = k.size() > 1 && k.y[1] - k.y[0] == tiles.cols();
  bool small = columns * units * bytes <= in_place_bytes;
  // Rows of a that are read only a few times are read in place if b is packed or as good as packed.
  bool direct_a = tiles.direct_a[1][1] && columns <= direct_uses * tiles.cols() &&
                  consecutive(k.x.data(), k.size());
  bool packed = columns == tiles.cols() && equal_steps(k.y, tiles.cols());
  bool in_place = tiles.direct_b[1] && (rows <= in_place_rows || small || panel);
  // Packing a would take longer than packing b.
  if (direct_a && rows >= columns && !packed) in_place = false;
  direct_a = direct_a && (!in_place || packed);
  // Blocks of equal size, as far as possible; rather one block that is longer than an extra one
  // that is short.
  int64_t blocks = std::max<int64_t>(1, (units + kBlockK<How> / 2) / kBlockK<How>);
  Shape<How> out{tiles, std::move(m), std::move(n), std::move(k), direct_a, blocks, {}};
  for (int64_t j = 0; j < columns; j += tiles.cols()) {
    int64_t have = std::min(tiles.cols(), columns - j);
    auto at = static_cast<size_t>(j);
    Columns lie = !consecutive(&out.n.y[at], have) ? Columns::Apart
                  : have % tiles.lanes == 0        ? Columns::Whole
                                                   : Columns::Row;
    bool whole_tile = have == tiles.cols() && consecutive(&out.n.x[at], have);
    out.columns.push_back({lie, in_place && whole_tile});
  }
  return out;
}

// A sum over very many ks is computed span by span. The first span goes to the result itself, every
// other one to separate memory, from which it is added.
template <class How>
struct Spans {
  using Cell = typename How::Cell;
  using Sum = typename How::Sum;
  std::vector<Shape<How>> all;

  Spans(const Tiles<How>& tiles, Offsets m, Offsets n, Offsets k) {
    constexpr int64_t per = How::ks_per_unit;
    int64_t count = std::max<int64_t>(1, ceil_div(k.size(), kSpan)), units = k.size() / per;
    if (count == 1) {
      all.push_back(shape_of<How>(tiles, std::move(m), std::move(n), std::move(k)));
      return;
    }
    Offsets rows = std::move(m), columns = n;
    for (int64_t i = 0; i < count; ++i) {
      auto lo = per * part_begin(units, count, i), hi = per * part_begin(units, count, i + 1);
      Offsets part{{k.x.begin() + lo, k.x.begin() + hi}, {k.y.begin() + lo, k.y.begin() + hi}};
      all.push_back(shape_of<How>(tiles, rows, columns, std::move(part)));
      for (size_t r = 0; r < rows.y.size(); ++r) rows.y[r] = static_cast<int64_t>(r) * n.size();
      for (size_t c = 0; c < columns.y.size(); ++c) columns.y[c] = static_cast<int64_t>(c);
    }
  }

  // Whether this is the product of an array with itself: then cell (i, j) equals cell (j, i).
  bool symmetric(const Cell* a, const Cell* b) const {
    const Shape<How>& first = all[0];
    return a == b && first.m.size() > 2 * first.tiles.cols() && first.m.x == first.n.x &&
           std::all_of(all.begin(), all.end(), [](const auto& s) { return s.k.x == s.k.y; });
  }

  // Copies the cells above the diagonal to those below it, square by square.
  void mirror(Sum* out) const {
    constexpr int64_t side = 32;
    const std::vector<int64_t>&r = all[0].m.y, &c = all[0].n.y;
    const auto size = static_cast<int64_t>(r.size()), squares = ceil_div(size, side);
    for_each_chunk(squares, [&](int64_t row, int) {
      for (int64_t column = 0; column <= row; ++column) {
        for (int64_t i = row * side; i < std::min(size, (row + 1) * side); ++i) {
          for (int64_t j = column * side; j < std::min(i, (column + 1) * side); ++j) {
            out[r[static_cast<size_t>(i)] + c[static_cast<size_t>(j)]] =
                out[r[static_cast<size_t>(j)] + c[static_cast<size_t>(i)]];
          }
        }
      }
    });
    all_done();
  }

  void run(const Cell* a, const Cell* b, Sum* out) const {
    if (!symmetric(a, b)) return run(a, b, out, false);
    run(a, b, out, true);
    all_done();
    mirror(out);
  }

  void run(const Cell* a, const Cell* b, Sum* out, bool half) const {
    const Offsets &m = all[0].m, &n = all[0].n;
    int64_t rows = m.size(), columns = n.size();
    Product<How>{all[0], a, b, out, half}.run();
    if (all.size() == 1) return;
    Sum* now = memory_for_all<Sum>(kSpanSums, 2 * rows * columns);
    Sum* lost = now + rows * columns;
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
      Product<How>{all[i], a, b, now, half}.run();
      all_done();
      // total + part with compensation. If a total is not finite, its compensation is NaN.
      each_cell([&](Sum& total, int64_t at) {
        Sum part = now[at], both = total + part, of_part = both - total;
        Sum rest = (total - (both - of_part)) + (part - of_part);
        lost[at] = i == 1 ? rest : lost[at] + rest;
        total = both;
      });
      all_done();
    }
    each_cell([&](Sum& total, int64_t at) {
      if (lost[at] == lost[at]) total += lost[at];
    });
    all_done();
  }
};

// Calls `product` for every batch, with the offsets of its operands and its result.
template <class F>
void for_each_batch(const Offsets& ab, const Offsets& out, int64_t work, const F& product) {
  // If there are many products, or they are small, threads get whole products, one or several at a
  // time. If there are a few large ones, threads share each of them.
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
  if (chunks == 1) return some(0, 0);  // all members of a team share the work inside
  for_each_chunk(chunks, some);
}

// Pairs of ks: a k without a partner is paired with zeros.
template <class How>
void fill_units(Offsets& k) {
  if constexpr (How::ks_per_unit == 2) {
    if (k.size() % 2 == 0) return;
    k.x.push_back(Paired::kNone);
    k.y.push_back(Paired::kNone);
  }
}

template <class How, Level level>
void products(const int64_t* shape, const typename How::Cell* a, const typename How::Cell* b,
              typename How::Sum* out) {
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
    auto run =
        dots_for<std::conditional_t<How::ks_per_unit == 2, Widened<DType::BF16>, How>>(level);
    for_each_batch(batch_ab, batch_out, work,
                   [&](int64_t x, int64_t y, int64_t to) { run(*dots, a + x, b + y, out + to); });
    return;
  }
  Offsets k = offsets(index, shape[3], 1, 2);
  fill_units<How>(k);
  const Tiles<How>& tiles = tiles_for<How, level>(n.size());
  const Spans<How> spans(tiles, std::move(m), std::move(n), std::move(k));
  for_each_batch(batch_ab, batch_out, work,
                 [&](int64_t x, int64_t y, int64_t to) { spans.run(a + x, b + y, out + to); });
}

template <class How, Level level>
void contract(const int64_t* shape, const typename How::Cell* a, const typename How::Cell* b,
              typename How::Sum* out) {
  using Cell = typename How::Cell;
  std::optional<Batches> cut = batches_to_copy<Cell>(shape);
  if (!cut) return products<How, level>(shape, a, b, out);
  const int64_t cells = copied_cells<Cell>(*cut);
  for_each_chunk(cut->blocks(), [&](int64_t number, int) {
    thread_local Panels<Cell> copies;
    Cell* memory = copies.reserve(cells);
    auto block = batch_block(*cut, number, a, b, memory);
    products<How, level>(block.shape.data(), block.a, block.b, out + block.out);
  });
}

template <class How>
auto contraction(Level level) {
  return level >= Level::Avx512 ? contract<How, Level::Avx512>
         : level == Level::Avx2 ? contract<How, Level::Avx2>
                                : contract<How, Level::Plain>;
}

}  // namespace

Contraction<float> contract_f32(Level level) { return contraction<Same<float>>(level); }
Contraction<double> contract_f64(Level level) { return contraction<Same<double>>(level); }
ShortContraction contract_f16(Level level) { return contraction<Widened<DType::F16>>(level); }
ShortContraction contract_bf16(Level level) { return contraction<Widened<DType::BF16>>(level); }
ShortContraction dot_bf16(Level level) {
  if (level < Level::Avx512Bf16) return contract_bf16(level);
  return contract<Paired, Level::Avx512Bf16>;
}

}  // namespace ein
