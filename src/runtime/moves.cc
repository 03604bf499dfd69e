#include "runtime/moves.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "runtime/integers.h"

namespace ein {
namespace {

// An interval of addresses for each coordinate, in terms of the whole value.
struct MovedCells {
  std::vector<int64_t> lo, hi;
  int64_t size() const {
    int64_t out = 1;
    for (size_t k = 0; k < lo.size(); ++k) out *= std::max<int64_t>(0, hi[k] - lo[k]);
    return out;
  }
};

void interval(const Mesh& mesh, int64_t n, Axes along, int64_t rank, MovedCells& out) {
  int64_t parts = mesh.parts(along), part = mesh.part(along, rank);
  out.lo.push_back(first_of(n, part, parts));
  out.hi.push_back(first_of(n, part + 1, parts));
}

MovedCells cells_had(const Mesh& mesh, const MoveOfCells& move, int64_t rank) {
  MovedCells out;
  for (const auto& c : move.coords) interval(mesh, c.extent, c.have, rank, out);
  return out;
}

// The cells in the memory of the result, which may reach beyond the ends of a coordinate.
MovedCells cells_wanted(const Mesh& mesh, const MoveOfCells& move, int64_t rank) {
  MovedCells out;
  for (const auto& c : move.coords) {
    interval(mesh, c.extent, c.want, rank, out);
    out.lo.back() -= c.below;
    out.hi.back() += c.above;
  }
  return out;
}

MovedCells common(const MovedCells& a, const MovedCells& b) {
  MovedCells out;
  for (size_t k = 0; k < a.lo.size(); ++k) {
    out.lo.push_back(std::max(a.lo[k], b.lo[k]));
    out.hi.push_back(std::max(out.lo.back(), std::min(a.hi[k], b.hi[k])));
  }
  return out;
}

// The ranks whose place in the mesh differs only along these axes, in order.
std::vector<int64_t> ranks_along(const Mesh& mesh, Axes along, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t r = 0; r < mesh.ranks(); ++r) {
    bool same = true;
    for (uint32_t a = 0; a < mesh.axes.size() && same; ++a) {
      same = (along >> a & 1) || mesh.at(a, r) == mesh.at(a, rank);
    }
    if (same) out.push_back(r);
  }
  return out;
}

Axes split_source(const MoveOfCells& move) {
  Axes out = 0;
  for (const auto& c : move.coords) out |= c.have;
  return out;
}

// Copies `cells` between memory that holds the cells `held` and dense memory that holds only
// `cells`.
void copy(std::byte* held_at, const MovedCells& held, std::byte* dense, const MovedCells& cells,
          size_t size, bool out_of_held) {
  if (cells.size() == 0) return;
  const size_t rank = cells.lo.size();
  const auto element = static_cast<int64_t>(size);
  if (rank == 0) {
    std::memcpy(out_of_held ? dense : held_at, out_of_held ? held_at : dense, size);
    return;
  }
  const int64_t run = (cells.hi[rank - 1] - cells.lo[rank - 1]) * element;
  const int64_t rows = cells.size() * element / run;
  std::vector<int64_t> at = cells.lo;
  for (int64_t row = 0; row < rows; ++row, dense += run) {
    int64_t offset = 0;
    for (size_t k = 0; k < rank; ++k)
      offset = offset * (held.hi[k] - held.lo[k]) + at[k] - held.lo[k];
    std::byte* place = held_at + offset * element;
    std::memcpy(out_of_held ? dense : place, out_of_held ? place : dense, static_cast<size_t>(run));
    for (size_t k = rank - 1; k-- > 0;) {
      if (++at[k] < cells.hi[k]) break;
      at[k] = cells.lo[k];
    }
  }
}

template <class T, class F>
void each(void* into, const void* from, int64_t n, const F& f) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) a[i] = f(a[i], b[i]);
}

// NaN beats numbers, and the first of equal values stays.
template <class T>
T better(bool max, T holder, T challenger) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(holder)) return holder;
    if (std::isnan(challenger)) return challenger;
  }
  return (max ? challenger > holder : challenger < holder) ? challenger : holder;
}

template <class T>
void combine_as(Combine op, void* into, const void* from, int64_t n) {
  switch (op) {
    case Combine::Sum:
      return each<T>(into, from, n, [](T a, T b) {
        if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else
          return a + b;
      });
    case Combine::Prod:
      return each<T>(into, from, n, [](T a, T b) {
        if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        else
          return a * b;
      });
    case Combine::Max: return each<T>(into, from, n, [](T a, T b) { return better(true, a, b); });
    case Combine::Min: return each<T>(into, from, n, [](T a, T b) { return better(false, a, b); });
    case Combine::All:
      return each<T>(into, from, n, [](T a, T b) { return static_cast<T>(a && b); });
    case Combine::Any:
      return each<T>(into, from, n, [](T a, T b) { return static_cast<T>(a || b); });
    case Combine::Nothing: break;
  }
  EIN_UNREACHABLE("cells of a fetch are not combined");
}

// Half precision goes through Tensor, which does the rounding.
void combine_halves(Combine op, DType dtype, void* into, const void* from, int64_t n) {
  Tensor a = Tensor::uncleared(dtype, {n}), b = Tensor::uncleared(dtype, {n});
  const size_t bytes = static_cast<size_t>(n) * size_of(dtype);
  std::memcpy(a.data(), into, bytes);
  std::memcpy(b.data(), from, bytes);
  for (int64_t i = 0; i < n; ++i) {
    auto x = static_cast<float>(a.get_float(i)), y = static_cast<float>(b.get_float(i));
    combine_as<float>(op, &x, &y, 1);
    a.set_float(i, static_cast<double>(x));
  }
  std::memcpy(into, a.data(), bytes);
}

void combine_cells(Combine op, DType dtype, void* into, const void* from, int64_t n) {
  if (n == 0) return;
  switch (dtype) {
    case DType::F32: return combine_as<float>(op, into, from, n);
    case DType::F64: return combine_as<double>(op, into, from, n);
    case DType::I8: return combine_as<int8_t>(op, into, from, n);
    case DType::I16: return combine_as<int16_t>(op, into, from, n);
    case DType::I32: return combine_as<int32_t>(op, into, from, n);
    case DType::I64: return combine_as<int64_t>(op, into, from, n);
    case DType::U8:
    case DType::Bool: return combine_as<uint8_t>(op, into, from, n);
    case DType::F16:
    case DType::BF16: return combine_halves(op, dtype, into, from, n);
    case DType::Str: break;
  }
  EIN_UNREACHABLE("text is not combined");
}

// Whether all ranks along `over` want the same cells.
bool wants_alike(const MoveOfCells& move) {
  return std::none_of(move.coords.begin(), move.coords.end(),
                      [&](const auto& c) { return (c.want & move.over) != 0; });
}

}  // namespace

int64_t bytes_sent(const Mesh& mesh, const MoveOfCells& move, DType dtype, int64_t rank) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  MovedCells own = cells_had(mesh, move, rank);
  int64_t cells = 0;
  if (move.op == Combine::Nothing) {
    for (int64_t r : ranks_along(mesh, split_source(move), rank)) {
      if (r != rank) cells += common(own, cells_wanted(mesh, move, r)).size();
    }
    return cells * size;
  }
  std::vector<int64_t> group = ranks_along(mesh, move.over, rank);
  const auto p = static_cast<int64_t>(group.size());
  if (!wants_alike(move)) {
    for (int64_t r : group) {
      if (r != rank) cells += cells_wanted(mesh, move, r).size();
    }
    return cells * size;
  }
  const int64_t n = cells_wanted(mesh, move, rank).size();
  if (n * size <= kFewBytes) return (p - 1) * n * size;
  const int64_t own_number = mesh.part(move.over, rank);
  const int64_t slice = first_of(n, own_number + 1, p) - first_of(n, own_number, p);
  return (n - slice + slice * (p - 1)) * size;
}

std::optional<RuntimeError> RankExchange::move(int64_t number, const RankCells& from,
                                               const RankCells& to) {
  const MoveOfCells& move = moves_[static_cast<size_t>(number)];
  bool done = move.op == Combine::Nothing ? fetch(move, from, to) : combine(move, from, to);
  if (done) return std::nullopt;
  return RuntimeError{Code::E0907, "rank " + std::to_string(*lost_) + " has ended"};
}

bool RankExchange::receive(int64_t from, void* bytes, size_t count) {
  if (transport_.receive(from, bytes, count)) return true;
  lost_ = from;
  return false;
}

bool RankExchange::fetch(const MoveOfCells& move, const RankCells& from, const RankCells& to) {
  const int64_t rank = transport_.rank();
  const size_t size = size_of(from.dtype);
  MovedCells had = cells_had(mesh_, move, rank), wanted = cells_wanted(mesh_, move, rank);
  auto* source = static_cast<std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  std::vector<int64_t> others = ranks_along(mesh_, split_source(move), rank);
  std::vector<std::byte> dense;
  auto room = [&](const MovedCells& cells) {
    dense.resize(static_cast<size_t>(cells.size()) * size);
    return dense.data();
  };
  for (int64_t r : others) {
    MovedCells cells = common(had, cells_wanted(mesh_, move, r));
    if (r == rank || cells.size() == 0) continue;
    copy(source, had, room(cells), cells, size, true);
    transport_.send(r, dense.data(), dense.size());
  }
  if (wanted.size() > 0) std::memset(target, 0, static_cast<size_t>(wanted.size()) * size);
  for (int64_t r : others) {
    MovedCells cells = common(cells_had(mesh_, move, r), wanted);
    if (cells.size() == 0) continue;
    room(cells);
    if (r == rank) {
      copy(source, had, dense.data(), cells, size, true);
    } else if (!receive(r, dense.data(), dense.size())) {
      return false;
    }
    copy(target, wanted, dense.data(), cells, size, false);
  }
  return true;
}

bool RankExchange::combine(const MoveOfCells& move, const RankCells& from, const RankCells& to) {
  const int64_t rank = transport_.rank();
  const DType dtype = from.dtype;
  const size_t size = size_of(dtype);
  MovedCells had = cells_had(mesh_, move, rank), wanted = cells_wanted(mesh_, move, rank);
  auto* source = static_cast<std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  const std::vector<int64_t> group = ranks_along(mesh_, move.over, rank);
  const auto p = static_cast<int64_t>(group.size());
  const int64_t own = mesh_.part(move.over, rank);
  auto bytes = [&](int64_t cells) { return static_cast<size_t>(cells) * size; };
  std::vector<std::byte> mine, message;

  // Combines `n` cells of every rank into `into`, in the order of the ranks. `own_cells` are this
  // rank's; those of the others are received.
  auto in_order = [&](int64_t n, std::byte* into, const std::byte* own_cells) {
    message.resize(bytes(n));
    for (int64_t o = 0; o < p; ++o) {
      const std::byte* next = own_cells;
      if (o != own && n > 0) {
        if (!receive(group[static_cast<size_t>(o)], message.data(), message.size())) return false;
        next = message.data();
      }
      if (n == 0) continue;
      if (o == 0) {
        std::memcpy(into, next, bytes(n));
      } else {
        combine_cells(move.op, dtype, into, next, n);
      }
    }
    return true;
  };

  const int64_t n = wanted.size();
  if (!wants_alike(move)) {
    for (int64_t o = 0; o < p; ++o) {
      int64_t r = group[static_cast<size_t>(o)];
      MovedCells cells = cells_wanted(mesh_, move, r);
      if (r == rank || cells.size() == 0) continue;
      mine.resize(bytes(cells.size()));
      copy(source, had, mine.data(), cells, size, true);
      transport_.send(r, mine.data(), mine.size());
    }
    mine.resize(bytes(n));
    copy(source, had, mine.data(), wanted, size, true);
    return in_order(n, target, mine.data());
  }
  mine.resize(bytes(n));
  copy(source, had, mine.data(), wanted, size, true);
  if (static_cast<int64_t>(bytes(n)) <= kFewBytes) {
    for (int64_t r : group) {
      if (r != rank && n > 0) transport_.send(r, mine.data(), mine.size());
    }
    return in_order(n, target, mine.data());
  }
  auto first = [&](int64_t o) { return first_of(n, o, p); };
  auto count = [&](int64_t o) { return first(o + 1) - first(o); };
  for (int64_t o = 0; o < p; ++o) {
    if (o != own && count(o) > 0) {
      transport_.send(group[static_cast<size_t>(o)], mine.data() + bytes(first(o)),
                      bytes(count(o)));
    }
  }
  std::byte* slice = target + bytes(first(own));
  if (!in_order(count(own), slice, mine.data() + bytes(first(own)))) return false;
  for (int64_t r : group) {
    if (r != rank && count(own) > 0) transport_.send(r, slice, bytes(count(own)));
  }
  for (int64_t o = 0; o < p; ++o) {
    if (o == own || count(o) == 0) continue;
    if (!receive(group[static_cast<size_t>(o)], target + bytes(first(o)), bytes(count(o))))
      return false;
  }
  return true;
}

}  // namespace ein
