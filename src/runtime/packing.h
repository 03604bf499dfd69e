// Private to contractions: how cells of operands become the units that packed panels consist of.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/dtype.h"
#include "runtime/short_floats.h"
#include "runtime/transpose.h"

namespace ein {

// Cells that are packed as they are. `load` reads a vector of units whose cells are contiguous in
// memory, `unit` reads a single one. `ks`: the offsets of the ks that a unit holds.
template <class T>
struct Same {
  using Cell = T;
  using Unit = T;
  using Sum = T;
  static constexpr int64_t ks_per_unit = 1;
  using V [[gnu::vector_size(16)]] = T;

  static void load(V& to, const T* from) { std::memcpy(&to, from, sizeof to); }
  static T unit(const T* from, const int64_t* ks) { return from[ks[0]]; }
  static void copy(T* to, const T* from, const int64_t* ks, int64_t count) {
    constexpr int64_t lanes = 16 / static_cast<int64_t>(sizeof(T));
    from += ks[0];
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) std::memcpy(to + i, from + i, 16);
    for (; i < count; ++i) to[i] = from[i];
  }
  // Copies every second cell: what a convolution with a stride of two reads.
  static void copy_every_second(T* to, const T* from, const int64_t* ks, int64_t count) {
    constexpr int64_t lanes = 16 / static_cast<int64_t>(sizeof(T));
    from += ks[0];
    int64_t i = 0;
    for (V a, b; i + lanes < count;
         i += lanes) {  // no read goes beyond the last cell that is copied
      std::memcpy(&a, from + 2 * i, sizeof a);
      std::memcpy(&b, from + 2 * i + lanes, sizeof b);
      V even;
      if constexpr (lanes == 4) {
        even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
      } else {
        even = __builtin_shufflevector(a, b, 0, 2);
      }
      std::memcpy(to + i, &even, sizeof even);
    }
    for (; i < count; ++i) to[i] = from[2 * i];
  }
  template <class W>
  [[gnu::always_inline]] static void load_wide(W& to, const T* from) {
    std::memcpy(&to, from, sizeof to);
  }
};

// Cells of a short float, which become f32.
template <DType type>
struct Widened {
  using Cell = uint16_t;
  using Unit = float;
  using Sum = float;
  static constexpr int64_t ks_per_unit = 1;
  using V [[gnu::vector_size(16)]] = float;

  static void load(V& to, const Cell* from) { load_widened<type>(to, from); }
  static float unit(const Cell* from, const int64_t* ks) { return widened<type>(from[ks[0]]); }
  static void copy(float* to, const Cell* from, const int64_t* ks, int64_t count) {
    from += ks[0];
    int64_t i = 0;
    V four;
    for (; i + 4 <= count; i += 4) {
      load(four, from + i);
      std::memcpy(to + i, &four, sizeof four);
    }
    if (i < count && count >= 4) {
      load(four, from + count - 4);
      std::memcpy(to + count - 4, &four, sizeof four);
      return;
    }
    for (; i < count; ++i) to[i] = widened<type>(from[i]);
  }
  template <class W>
  [[gnu::always_inline]] static void load_wide(W& to, const Cell* from) {
    load_widened<type>(to, from);
  }
};

// Two consecutive ks of bf16 in one unit, the first in its low half: what a processor with
// vdpbf16ps multiplies at once.
struct Paired {
  using Cell = uint16_t;
  using Unit = uint32_t;
  using Sum = float;
  static constexpr int64_t ks_per_unit = 2;
  // A missing k, which counts as zero.
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  using V [[gnu::vector_size(16)]] = uint32_t;

  static void load(V& to, const Cell* from) { std::memcpy(&to, from, sizeof to); }
  static uint32_t unit(const Cell* from, const int64_t* ks) {
    uint32_t second = ks[1] == kNone ? 0 : from[ks[1]];
    return from[ks[0]] | second << 16;
  }
  static void copy(uint32_t* to, const Cell* from, const int64_t* ks, int64_t count) {
    using S [[gnu::vector_size(16)]] = uint16_t;
    int64_t i = 0;
    for (S a, b = {}; i + 8 <= count; i += 8) {
      std::memcpy(&a, from + ks[0] + i, sizeof a);
      if (ks[1] != kNone) std::memcpy(&b, from + ks[1] + i, sizeof b);
      S low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      S high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      std::memcpy(to + i, &low, sizeof low);
      std::memcpy(to + i + 4, &high, sizeof high);
    }
    for (; i < count; ++i) to[i] = unit(from + i, ks);
  }
};

// Whether every offset is one more than the one before.
inline bool consecutive(const int64_t* offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

// The runs of offsets that increase by `step` each time: begin and length.
struct Runs {
  std::array<std::pair<int64_t, int64_t>, 16> at;
  int64_t count = 0;  // if there are more than fit, they are too short to be of use

  Runs(const int64_t* offsets, int64_t size, int64_t step = 1) {
    for (int64_t i = 0, end = 0; i < size && count <= room(); i = end, ++count) {
      for (end = i + 1; end < size && offsets[end] == offsets[end - 1] + step;) ++end;
      if (count < room()) at[static_cast<size_t>(count)] = {i, end - i};
    }
  }
  int64_t room() const { return static_cast<int64_t>(at.size()); }
  // Whether the runs are at least this long on average.
  bool long_enough(int64_t size, int64_t length) const {
    return count <= room() && count * length <= size;
  }
};

// panel[k][r] for the rows of one tile, with `count` units along k; missing rows are zero.
template <class How>
void pack(typename How::Unit* panel, const typename How::Cell* from, const int64_t* rows,
          int64_t have, int64_t wide, const int64_t* ks, int64_t count) {
  using Unit = typename How::Unit;
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(Unit)), lanes = line / 4;
  constexpr int64_t per = How::ks_per_unit;
  auto by_runs = [&](const Runs& runs, auto copy) {
    for (int64_t k = 0; k < count; ++k, panel += wide) {
      for (int64_t i = 0; i < runs.count; ++i) {
        auto [r, length] = runs.at[static_cast<size_t>(i)];
        copy(panel + r, from + rows[r], ks + k * per, length);
      }
      for (int64_t r = have; r < wide; ++r) panel[r] = Unit(0);
    }
  };
  if (Runs runs(rows, have); runs.long_enough(have, 2 * lanes)) return by_runs(runs, How::copy);
  if constexpr (requires { How::copy_every_second; }) {
    Runs runs(rows, have, 2);
    if (runs.long_enough(have, 2 * lanes)) return by_runs(runs, How::copy_every_second);
  }
  // Takes one cache line of each row at a time: rows that are a power of two apart compete for a
  // few lines of the cache.
  for (int64_t k0 = 0; k0 < count; k0 += line, panel += line * wide, ks += line * per) {
    int64_t nk = std::min(line, count - k0), r = 0;
    bool squares[4];
    for (int64_t q = 0; q < 4; ++q) {
      squares[q] = (q + 1) * lanes <= nk && consecutive(ks + q * lanes * per, lanes * per);
    }
    for (; r + lanes <= have; r += lanes) {
      for (int64_t q = 0; q * lanes < nk; ++q) {
        int64_t k = q * lanes;
        if (squares[q]) {
          transpose<Unit>(panel + k * wide + r, wide, [&](typename How::V& to, int64_t i) {
            How::load(to, from + rows[r + i] + ks[k * per]);
          });
          continue;
        }
        for (; k < std::min(nk, (q + 1) * lanes); ++k) {
          for (int64_t i = r; i < r + lanes; ++i) {
            panel[k * wide + i] = How::unit(from + rows[i], ks + k * per);
          }
        }
      }
    }
    for (; r < have; ++r) {
      for (int64_t k = 0; k < nk; ++k) {
        panel[k * wide + r] = How::unit(from + rows[r], ks + k * per);
      }
    }
    for (; r < wide; ++r) {
      for (int64_t k = 0; k < nk; ++k) panel[k * wide + r] = Unit(0);
    }
  }
}

}  // namespace ein
