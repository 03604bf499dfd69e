#include "runtime/dots.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "runtime/packing.h"
#include "runtime/panels.h"
#include "runtime/pool.h"
#include "runtime/team.h"
#include "runtime/tuned.h"

namespace ein {
namespace {

constexpr int kVector = 64;  // bytes that are added in lanes, on every processor alike
// Vectors that are added before the sum joins the total of its cell.
constexpr int64_t kSteps = 128;
template <class T>
constexpr int64_t kLanes = kVector / static_cast<int64_t>(sizeof(T));

struct DotIndex {
  int64_t extent, a, b, out;
};
using Steps = std::pair<std::vector<int64_t>, std::vector<int64_t>>;

// The offsets in two operands for all values of the indices, the last one fastest.
Steps steps_of(const std::vector<DotIndex>& indices, int64_t DotIndex::*x, int64_t DotIndex::*y) {
  Steps out{{0}, {0}};
  for (const DotIndex& index : indices) {
    Steps next;
    for (size_t i = 0; i < out.first.size(); ++i) {
      for (int64_t e = 0; e < index.extent; ++e) {
        next.first.push_back(out.first[i] + e * (index.*x));
        next.second.push_back(out.second[i] + e * (index.*y));
      }
    }
    out = std::move(next);
  }
  return out;
}

int64_t cells_of(const std::vector<DotIndex>& indices) {
  int64_t out = 1;
  for (const DotIndex& index : indices) out *= index.extent;
  return out;
}

// Adds `part` to a sum, and the rounding error to `lost`.
template <class V>
[[gnu::always_inline]] inline void add_exactly(V& sum, V& lost, const V& part) {
  V both = sum + part, of_part = both - sum;
  lost += (sum - (both - of_part)) + (part - of_part);
  sum = both;
}

// A sum and its rounding error.
template <class T>
struct Total {
  T sum = 0, lost = 0;

  void add(T part) { add_exactly(sum, lost, part); }
};

// If a sum is not finite, its compensation is NaN.
template <class T>
T value_of(const Total<T>& total) {
  return total.lost == total.lost ? total.sum + total.lost : total.sum;
}

// One call: the product, and how its ks are cut. A unit is a piece of a line; a part is some units.
template <class How>
struct Cut {
  using T = typename How::Sum;
  const Dots& dots;
  const typename How::Cell *a, *b;
  int64_t most = kSteps * kLanes<T>;  // the most ks of a unit
  int64_t per_line = (dots.length + most - 1) / most;
  int64_t units = per_line * static_cast<int64_t>(dots.a_lines.size());

  size_t rows() const { return dots.a_rows.size(); }
  size_t columns() const { return dots.b_columns.size(); }
  int64_t units_of_part() const {
    auto term = static_cast<int64_t>((rows() + columns()) * sizeof(T));
    return std::max<int64_t>(1, tuned::dots_bytes / (term * std::min(most, dots.length)));
  }
};

// The totals of Rows × Columns cells over the units lo..hi.
template <class How>
using Square = void (*)(const Cut<How>& cut, size_t row, size_t column, int64_t lo, int64_t hi,
                        Total<typename How::Sum>* out);

template <class How, size_t Rows, size_t Columns>
[[gnu::always_inline]] inline void square(const Cut<How>& cut, size_t row, size_t column,
                                          int64_t lo, int64_t hi, Total<typename How::Sum>* out) {
  using Cell = typename How::Cell;
  using T = typename How::Sum;
  using V [[gnu::vector_size(kVector)]] = T;
  constexpr int64_t lanes = kLanes<T>;
  const Dots& d = cut.dots;
  V sum[Rows][Columns] = {}, total[Rows][Columns] = {}, lost[Rows][Columns] = {};
  int64_t steps = 0;
  for (int64_t unit = lo; unit < hi; ++unit) {
    auto line = static_cast<size_t>(unit / cut.per_line);
    int64_t begin = unit % cut.per_line * cut.most, end = std::min(d.length, begin + cut.most);
    const Cell *a[Rows], *b[Columns];
    for (size_t r = 0; r < Rows; ++r) a[r] = cut.a + d.a_rows[row + r] + d.a_lines[line];
    for (size_t c = 0; c < Columns; ++c) b[c] = cut.b + d.b_columns[column + c] + d.b_lines[line];
    auto add = [&](auto&& load, int64_t k) __attribute__((always_inline)) {
      V x[Columns];
#pragma GCC unroll 4
      for (size_t c = 0; c < Columns; ++c) load(x[c], b[c] + k);
#pragma GCC unroll 4
      for (size_t r = 0; r < Rows; ++r) {
        V y;
        load(y, a[r] + k);
#pragma GCC unroll 4
        for (size_t c = 0; c < Columns; ++c) sum[r][c] += y * x[c];
      }
    };
    int64_t k = begin;
    for (; k + lanes <= end; k += lanes) {
      add(
          [](V & to, const Cell* at) __attribute__((always_inline)) { How::load_wide(to, at); }, k);
    }
    if (k < end) {
      size_t rest = static_cast<size_t>(end - k) * sizeof(Cell);
      add(
          [&](V & to, const Cell* at) __attribute__((always_inline)) {
            Cell cells[lanes] = {};
            std::memcpy(cells, at, rest);
            How::load_wide(to, cells);
          },
          k);
    }
    steps += (end - begin + lanes - 1) / lanes;
    if (steps < kSteps && unit + 1 < hi) continue;
    for (size_t r = 0; r < Rows; ++r) {
      for (size_t c = 0; c < Columns; ++c) {
        add_exactly(total[r][c], lost[r][c], sum[r][c]);
        sum[r][c] = V{};
      }
    }
    steps = 0;
  }
  for (size_t r = 0; r < Rows; ++r) {
    for (size_t c = 0; c < Columns; ++c) {
      Total<T> cell;
      T of_lanes = 0;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        cell.add(total[r][c][lane]);
        of_lanes += lost[r][c][lane];
      }
      cell.lost += of_lanes;
      out[(row + r) * cut.columns() + column + c] = cell;
    }
  }
}

#define EIN_SQUARE(name, ...)                                                                   \
  template <class How, size_t Rows, size_t Columns>                                             \
  __VA_ARGS__ void name(const Cut<How>& cut, size_t row, size_t column, int64_t lo, int64_t hi, \
                        Total<typename How::Sum>* out) {                                        \
    square<How, Rows, Columns>(cut, row, column, lo, hi, out);                                  \
  }
EIN_SQUARE(square_avx512, [[gnu::target("avx512f,fma"), gnu::optimize("O3")]])
EIN_SQUARE(square_avx2, [[gnu::target("avx2,fma"), gnu::optimize("O3")]])
EIN_SQUARE(square_plain, [[gnu::optimize("O3")]])
#undef EIN_SQUARE

// The sums of a square of cells fill the registers.
template <Level level>
constexpr size_t kSide = level == Level::Avx512 ? 4 : 2;

template <class How, Level level, size_t Rows, size_t Columns>
constexpr Square<How> square_for() {
  if constexpr (level == Level::Avx512) {
    return square_avx512<How, Rows, Columns>;
  } else if constexpr (level == Level::Avx2) {
    return square_avx2<How, Rows, Columns>;
  } else {
    return square_plain<How, Rows, Columns>;
  }
}

template <class How, Level level, size_t... Number>
constexpr std::array<Square<How>, sizeof...(Number)> squares(std::index_sequence<Number...>) {
  return {square_for<How, level, Number / kSide<level> + 1, Number % kSide<level> + 1>()...};
}

template <class How, Level level>
void run(const Dots& dots, const typename How::Cell* a, const typename How::Cell* b,
         typename How::Sum* out) {
  using T = typename How::Sum;
  constexpr size_t side = kSide<level>;
  static constexpr auto table = squares<How, level>(std::make_index_sequence<side * side>());
  const Cut<How> cut{dots, a, b};
  size_t rows = cut.rows(), columns = cut.columns(), cells = rows * columns;
  int64_t together = cut.units_of_part(), parts = (cut.units + together - 1) / together;
  auto* sums = memory_for_all<Total<T>>(kSpanSums,
                                        std::max<int64_t>(1, parts) * static_cast<int64_t>(cells));
  for_each_chunk(parts, [&](int64_t part, int) {
    int64_t lo = part * together, hi = std::min(cut.units, lo + together);
    Total<T>* to = sums + static_cast<size_t>(part) * cells;
    for (size_t r = 0; r < rows; r += side) {
      for (size_t c = 0; c < columns; c += side) {
        size_t high = std::min(side, rows - r), wide = std::min(side, columns - c);
        table[(high - 1) * side + wide - 1](cut, r, c, lo, hi, to);
      }
    }
  });
  all_done();
  for_each_chunk(1, [&](int64_t, int) {
    for (size_t i = 0; i < cells; ++i) {
      Total<T> cell;
      T lost = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const Total<T>& next = sums[static_cast<size_t>(part) * cells + i];
        cell.add(next.sum);
        lost += next.lost;
      }
      cell.lost += lost;
      out[dots.out_rows[i / columns] + dots.out_columns[i % columns]] = value_of(cell);
    }
  });
  all_done();  // the next product uses the same memory
}

}  // namespace

std::optional<Dots> dots_of(const int64_t* shape) {
  std::array<std::vector<DotIndex>, 4> sets;
  const int64_t* at = shape + 4;
  for (size_t set = 0; set < 4; ++set) {
    for (int64_t i = 0; i < shape[set]; ++i, at += 4) {
      sets[set].push_back({std::max<int64_t>(at[0], 0), at[1], at[2], at[3]});
    }
  }
  auto& [batch, m, n, k] = sets;
  int64_t rows = cells_of(m), columns = cells_of(n);
  if (rows == 0 || columns == 0 || rows * columns > tuned::dots_cells) return {};
  // The longest contiguous line; lines that follow each other in memory become one.
  auto neighbours = [](const DotIndex& x) { return x.a == 1 && x.b == 1; };
  auto line = std::max_element(k.begin(), k.end(), [&](const DotIndex& x, const DotIndex& y) {
    return (neighbours(x) ? x.extent : 0) < (neighbours(y) ? y.extent : 0);
  });
  if (line == k.end() || !neighbours(*line)) return {};
  Dots out;
  out.length = line->extent;
  k.erase(line);
  auto follows = [&](const DotIndex& x) { return x.a == out.length && x.b == out.length; };
  for (auto next = k.begin(); (next = std::find_if(k.begin(), k.end(), follows)) != k.end();) {
    out.length *= next->extent;
    k.erase(next);
  }
  if (out.length < tuned::dots_length) return {};
  std::tie(out.a_rows, out.out_rows) = steps_of(m, &DotIndex::a, &DotIndex::out);
  std::tie(out.b_columns, out.out_columns) = steps_of(n, &DotIndex::b, &DotIndex::out);
  std::tie(out.a_lines, out.b_lines) = steps_of(k, &DotIndex::a, &DotIndex::b);
  return out;
}

template <class How>
DotsRun<How> dots_for(Level level) {
  return level >= Level::Avx512 ? run<How, Level::Avx512>
         : level == Level::Avx2 ? run<How, Level::Avx2>
                                : run<How, Level::Plain>;
}
template DotsRun<Same<float>> dots_for<Same<float>>(Level level);
template DotsRun<Same<double>> dots_for<Same<double>>(Level level);
template DotsRun<Widened<DType::F16>> dots_for<Widened<DType::F16>>(Level level);
template DotsRun<Widened<DType::BF16>> dots_for<Widened<DType::BF16>>(Level level);

}  // namespace ein
