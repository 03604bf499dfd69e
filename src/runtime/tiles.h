// Private to contractions: the tiles of a result that are computed in registers. A tile is written
// once, with the compiler's vector types, and compiled for three instruction sets and every number
// of rows; a fourth set has products of pairs of bf16.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/packing.h"
#include "runtime/processor.h"
#include "runtime/tuned.h"

namespace ein {

constexpr int64_t kRun = 128;  // units of k that are added up in registers

// Which operand a tile reads in place. The other one, or both, are packed in panels.
enum class Direct : uint8_t { None, A, B };

// One tile of the result: row r goes to out + rows[r], with its columns contiguous. The tile
// overwrites them, or adds to them if `add`. `steps` are the offsets of the parts of the operand
// that is read in place: for every row of a, whose ks are contiguous, or for every k of b.
template <class How>
using Tile = void (*)(const void* a, const void* b, const int64_t* steps, int64_t count,
                      typename How::Sum* out, const int64_t* rows, bool add);

template <class How, int Bytes, int64_t Rows, int64_t Vectors, Direct direct>
[[gnu::always_inline]] inline void tile(const void* of_a, const void* b, const int64_t* steps,
                                        int64_t count, typename How::Sum* out, const int64_t* rows,
                                        bool add) {
  using T = typename How::Unit;
  using V [[gnu::vector_size(Bytes)]] = T;
  using U [[gnu::vector_size(Bytes), gnu::aligned(alignof(T))]] = T;
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(T));
  const auto* a = static_cast<const T*>(of_a);
  const T* line[Rows];
  if constexpr (direct == Direct::A) {
#pragma GCC unroll 14
    for (int64_t r = 0; r < Rows; ++r) line[r] = a + steps[r];
  }
  for (int64_t begin = 0; begin < count; begin += kRun) {
    int64_t end = begin + kRun < count ? begin + kRun : count;
    V sum[Rows][Vectors] = {};
    for (int64_t k = begin; k < end; ++k) {
      V row[Vectors];
      if constexpr (direct == Direct::B) {
        const auto* at = static_cast<const typename How::Cell*>(b) + steps[k];
#pragma GCC unroll 4
        for (int64_t v = 0; v < Vectors; ++v) How::load_wide(row[v], at + v * lanes);
      } else {
        const T* at = static_cast<const T*>(b) + k * Vectors * lanes;
#pragma GCC unroll 4
        for (int64_t v = 0; v < Vectors; ++v) row[v] = *reinterpret_cast<const U*>(at + v * lanes);
      }
#pragma GCC unroll 14
      for (int64_t r = 0; r < Rows; ++r) {
        T cell = direct == Direct::A ? line[r][k] : a[k * Rows + r];
#pragma GCC unroll 4
        for (int64_t v = 0; v < Vectors; ++v) sum[r][v] += cell * row[v];
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
// few vectors for results with few columns.
constexpr int64_t kTallVectors = 2;
template <Level level>
constexpr int64_t kWideVectors = level >= Level::Avx512 ? 4 : 2;
template <Level level>
constexpr int64_t kTallRows = level >= Level::Avx512 ? 14 : 6;
constexpr size_t kMostRows = 14, kMostVectors = 4;
template <Level level>
constexpr int kBytes = level >= Level::Avx512 ? 64
                       : level == Level::Avx2 ? 32
                                              : 16;

#define EIN_TILE(name, level, ...)                                                         \
  template <class How, int64_t Rows, int64_t Vectors, Direct direct>                       \
  __VA_ARGS__ void name(const void* a, const void* b, const int64_t* steps, int64_t count, \
                        typename How::Sum* out, const int64_t* rows, bool add) {           \
    tile<How, kBytes<level>, Rows, Vectors, direct>(a, b, steps, count, out, rows, add);   \
  }
EIN_TILE(tile_avx512, Level::Avx512, [[gnu::target("avx512f,fma"), gnu::optimize("O3")]])
EIN_TILE(tile_avx2, Level::Avx2, [[gnu::target("avx2,fma"), gnu::optimize("O3")]])
EIN_TILE(tile_plain, Level::Plain, [[gnu::optimize("O3")]])
#undef EIN_TILE

// Pairs are multiplied and added, the second products first. Each of the two sums is rounded to
// nearest, and subnormal operands and sums count as zero.
template <int64_t Rows, int64_t Vectors>
[[gnu::target("avx512f,avx512bf16"), gnu::optimize("O3")]] void tile_pairs(
    const void* of_a, const void* b, const int64_t*, int64_t count, float* out, const int64_t* rows,
    bool add) {
  constexpr int64_t lanes = 16;
  const auto* a = static_cast<const uint32_t*>(of_a);
  const auto* row = static_cast<const uint32_t*>(b);
  for (int64_t begin = 0; begin < count; begin += kRun) {
    int64_t end = begin + kRun < count ? begin + kRun : count;
    __m512 sum[Rows][Vectors];
#pragma GCC unroll 14
    for (int64_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < Vectors; ++v) sum[r][v] = _mm512_setzero_ps();
    }
    for (int64_t k = begin; k < end; ++k, a += Rows, row += Vectors * lanes) {
      __m512i x[Vectors];
#pragma GCC unroll 4
      for (int64_t v = 0; v < Vectors; ++v) x[v] = _mm512_loadu_si512(row + v * lanes);
#pragma GCC unroll 14
      for (int64_t r = 0; r < Rows; ++r) {
        __m512i y = _mm512_set1_epi32(static_cast<int>(a[r]));
#pragma GCC unroll 4
        for (int64_t v = 0; v < Vectors; ++v) {
          sum[r][v] = _mm512_dpbf16_ps(sum[r][v], reinterpret_cast<__m512bh>(y),
                                       reinterpret_cast<__m512bh>(x[v]));
        }
      }
    }
#pragma GCC unroll 14
    for (int64_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < Vectors; ++v) {
        float* to = out + rows[r] + v * lanes;
        __m512 all = add ? _mm512_add_ps(_mm512_loadu_ps(to), sum[r][v]) : sum[r][v];
        _mm512_storeu_ps(to, all);
      }
    }
    add = true;
  }
}

// Tiles of at most `rows` rows and `vectors` vectors, by their number of rows; the last tile of a
// result may have fewer vectors.
template <class How>
struct Tiles {
  using ByRows = std::array<Tile<How>, kMostRows + 1>;
  int64_t rows, vectors, lanes;
  // By the number of vectors. Tiles that read b in place always have all vectors. Empty if there
  // are none.
  std::array<ByRows, kMostVectors + 1> packed, direct_a;
  ByRows direct_b;

  int64_t cols() const { return vectors * lanes; }
};

template <class How, Level level, int64_t Rows, int64_t Vectors, Direct direct>
constexpr Tile<How> tile_for() {
  // Packed cells are the same, whatever they were packed from.
  using From = std::conditional_t<direct == Direct::None, Same<typename How::Unit>, How>;
  if constexpr (std::is_same_v<How, Paired>) {
    return tile_pairs<Rows, Vectors>;
  } else if constexpr (level >= Level::Avx512) {
    return tile_avx512<From, Rows, Vectors, direct>;
  } else if constexpr (level == Level::Avx2) {
    return tile_avx2<From, Rows, Vectors, direct>;
  } else {
    return tile_plain<From, Rows, Vectors, direct>;
  }
}

template <class How, Level level, int64_t Vectors, Direct direct, size_t... Below>
constexpr typename Tiles<How>::ByRows tiles_by_rows(std::index_sequence<Below...>) {
  constexpr bool as_they_are = std::is_same_v<typename How::Cell, typename How::Unit>;
  constexpr bool none = direct == Direct::A ? !as_they_are : How::ks_per_unit > 1;
  if constexpr (direct != Direct::None && none) {
    return {};
  } else {
    return {nullptr, tile_for<How, level, static_cast<int64_t>(Below) + 1, Vectors, direct>()...};
  }
}

template <class How, Level level, int64_t Rows, int64_t Vectors, size_t... Below>
constexpr Tiles<How> tiles_of(std::index_sequence<Below...>) {
  using Numbers = std::make_index_sequence<static_cast<size_t>(Rows)>;
  return {Rows,
          Vectors,
          kBytes<level> / static_cast<int64_t>(sizeof(typename How::Unit)),
          {typename Tiles<How>::ByRows{},
           tiles_by_rows<How, level, static_cast<int64_t>(Below) + 1, Direct::None>(Numbers())...},
          {typename Tiles<How>::ByRows{},
           tiles_by_rows<How, level, static_cast<int64_t>(Below) + 1, Direct::A>(Numbers())...},
          tiles_by_rows<How, level, Vectors, Direct::B>(Numbers())};
}

template <class How, Level level, int64_t Rows, int64_t Vectors>
constexpr Tiles<How> kTiles =
    tiles_of<How, level, Rows, Vectors>(std::make_index_sequence<static_cast<size_t>(Vectors)>());

template <class How, Level level>
const Tiles<How>& tiles_for(int64_t columns) {
  const Tiles<How>& tall = kTiles<How, level, kTallRows<level>, kTallVectors>;
  return columns <= tall.cols() ? tall : kTiles<How, level, tuned::wide_rows, kWideVectors<level>>;
}

}  // namespace ein
