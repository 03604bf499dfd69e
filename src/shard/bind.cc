// Cuts inputs into the parts of each rank, and puts results together from the parts of all ranks.
#include <algorithm>
#include <cstring>
#include <functional>

#include "base/check.h"
#include "shard/shard.h"

namespace ein::shard {
namespace {

Tensor scalar_of(int64_t value) {
  Tensor out(DType::I64, {});
  out.set_int(0, value);
  return out;
}

struct Box {
  std::vector<int64_t> lo, count;
};
Box box_of(const Mesh& mesh, const std::vector<Axes>& axes, const std::vector<int64_t>& shape,
           int64_t rank) {
  Box out;
  for (size_t k = 0; k < shape.size(); ++k) {
    int64_t parts = mesh.parts(axes[k]), part = mesh.part(axes[k], rank);
    out.lo.push_back(first_of(shape[k], part, parts));
    out.count.push_back(first_of(shape[k], part + 1, parts) - out.lo.back());
  }
  return out;
}

// Calls `f` for every contiguous run of cells: its offset in the whole, its offset in the part, its
// length.
void for_each_run(const Box& box, const std::vector<int64_t>& shape,
                  const std::function<void(int64_t, int64_t, int64_t)>& f) {
  const size_t rank = shape.size();
  if (rank == 0) return f(0, 0, 1);
  int64_t rows = 1;
  for (size_t k = 0; k + 1 < rank; ++k) rows *= box.count[k];
  const int64_t length = box.count[rank - 1];
  if (length == 0) return;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t whole = 0, rest = row, step = shape[rank - 1];
    for (size_t k = rank - 1; k-- > 0;) {
      whole += (box.lo[k] + rest % box.count[k]) * step;
      rest /= box.count[k];
      step *= shape[k];
    }
    f(whole + box.lo[rank - 1], row * length, length);
  }
}

}  // namespace

core::Inputs numbers_of_rank(const Sharded& s, const std::vector<int64_t>& params, int64_t rank) {
  core::Inputs out;
  auto put = [&](core::ParamId p, int64_t value) {
    out[text(s.module[s.module.params[p].source].name)] = scalar_of(value);
  };
  for (const Part& p : s.parts) {
    int64_t n = std::max<int64_t>(0, core::eval_extent(s.module, p.extent, params));
    int64_t parts = s.mesh.parts(p.along), part = s.mesh.part(p.along, rank);
    int64_t lo = first_of(n, part, parts);
    put(p.lo, lo);
    put(p.count, first_of(n, part + 1, parts) - lo);
  }
  for (core::ParamId p : s.globals) put(p, params[p.v]);
  return out;
}

Tensor part_of(const Mesh& mesh, const std::vector<Axes>& axes, const Tensor& whole, int64_t rank) {
  if (std::all_of(axes.begin(), axes.end(), [](Axes a) { return a == 0; })) return whole;
  Box box = box_of(mesh, axes, whole.shape(), rank);
  Tensor out = Tensor::uncleared(whole.dtype(), box.count);
  const auto size = static_cast<int64_t>(size_of(whole.dtype()));
  for_each_run(box, whole.shape(), [&](int64_t from, int64_t to, int64_t n) {
    std::memcpy(out.as<std::byte>() + to * size, whole.as<std::byte>() + from * size,
                static_cast<size_t>(n * size));
  });
  return out;
}

std::vector<int64_t> part_shape(const Mesh& mesh, const std::vector<Axes>& axes,
                                const std::vector<int64_t>& shape, int64_t rank) {
  return box_of(mesh, axes, shape, rank).count;
}

Tensor joined(const Mesh& mesh, const std::vector<Axes>& axes, const std::vector<int64_t>& shape,
              const std::vector<Tensor>& parts) {
  Axes used = 0;
  for (Axes a : axes) used |= a;
  if (!used) return parts[0];
  Tensor out = Tensor::uncleared(parts[0].dtype(), shape);
  const auto size = static_cast<int64_t>(size_of(out.dtype()));
  for (int64_t r = 0; r < mesh.ranks(); ++r) {
    bool first = true;  // first among the ranks that have the same part
    for (uint32_t a = 0; a < mesh.axes.size(); ++a) first &= (used >> a & 1) || mesh.at(a, r) == 0;
    if (!first) continue;
    Box box = box_of(mesh, axes, shape, r);
    const Tensor& part = parts[static_cast<size_t>(r)];
    EIN_CHECK(part.shape() == box.count, "a part of the expected shape");
    for_each_run(box, shape, [&](int64_t to, int64_t from, int64_t n) {
      std::memcpy(out.as<std::byte>() + to * size, part.as<std::byte>() + from * size,
                  static_cast<size_t>(n * size));
    });
  }
  return out;
}

}  // namespace ein::shard
