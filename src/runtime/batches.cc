#include "runtime/batches.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "runtime/transpose.h"
#include "runtime/tuned.h"

namespace ein {
namespace {

using namespace tuned;

enum class Operand { A = 1, B = 2, Out = 3 };  // the column of its step in the table
enum class IndexSet { Batch, Rows, Columns, Sums };

// One index: its extent, its step in the operand, and its step in the copy.
struct BatchIndex {
  int64_t extent, step, copied;
};

size_t begin_of(const std::vector<int64_t>& shape, IndexSet set) {
  return static_cast<size_t>(
      4 + 4 * std::accumulate(shape.begin(), shape.begin() + static_cast<int>(set), int64_t{0}));
}

std::vector<BatchIndex> set_of(const std::vector<int64_t>& shape, IndexSet set, Operand operand) {
  std::vector<BatchIndex> out(static_cast<size_t>(shape[static_cast<size_t>(set)]));
  size_t at = begin_of(shape, set);
  for (BatchIndex& x : out) {
    x = {shape[at], shape[at + static_cast<size_t>(operand)], 0};
    at += 4;
  }
  return out;
}

void write_steps(std::vector<int64_t>& shape, IndexSet set, Operand operand,
                 const std::vector<BatchIndex>& indices) {
  size_t at = begin_of(shape, set) + static_cast<size_t>(operand);
  for (const BatchIndex& x : indices) {
    shape[at] = x.copied;
    at += 4;
  }
}

int64_t values(const std::vector<BatchIndex>& set) {
  int64_t out = 1;
  for (const BatchIndex& x : set) out *= x.extent;
  return out;
}

// Whether cells that are neighbours along one of these indices are neighbours in memory.
bool together(const std::vector<BatchIndex>& set) {
  return std::any_of(set.begin(), set.end(),
                     [](const BatchIndex& x) { return std::abs(x.step) == 1 && x.extent > 1; });
}

// The indices of an operand: those that count the products (`batch`), and those of one product.
struct OperandLayout {
  Operand operand;
  std::vector<BatchIndex> batch, lines, sums;

  OperandLayout(const std::vector<int64_t>& shape, Operand which)
      : operand(which),
        batch(set_of(shape, IndexSet::Batch, which)),
        lines(set_of(shape, which == Operand::A ? IndexSet::Rows : IndexSet::Columns, which)),
        sums(set_of(shape, IndexSet::Sums, which)) {
    std::erase_if(batch, [](const BatchIndex& x) { return x.step == 0; });
  }

  int64_t matrix() const { return values(lines) * values(sums); }

  // Whether the cells of the matrix are all different cells of the operand: then a copy is not
  // larger than the operand.
  bool distinct() const {
    int64_t span = 1;
    for (const std::vector<BatchIndex>* set : {&lines, &sums}) {
      for (const BatchIndex& x : *set)
        span += std::max<int64_t>(x.extent - 1, 0) * std::abs(x.step);
    }
    return matrix() <= span;
  }

  // The indices that are contiguous in the copy: tiles read along the sums of a row of a, and along
  // the columns of b.
  const std::vector<BatchIndex>& neighbours() const { return operand == Operand::A ? sums : lines; }
  const std::vector<BatchIndex>& others() const { return operand == Operand::A ? lines : sums; }

  // The batch index along which neighbours are adjacent in memory, provided that they are not
  // within a product.
  const BatchIndex* across(int64_t least) const {
    if (together(lines) || together(sums) || !distinct() || values(neighbours()) < least) {
      return nullptr;
    }
    auto it = std::find_if(batch.begin(), batch.end(),
                           [&](const BatchIndex& x) { return x.step == 1 && x.extent >= least; });
    return it == batch.end() ? nullptr : &*it;
  }

  // Assigns the steps of the copy: batch first, then `others`, then `neighbours`, without gaps.
  // Returns its size.
  int64_t arrange() {
    int64_t step = 1;
    auto *first = operand == Operand::A ? &sums : &lines, *second = first == &sums ? &lines : &sums;
    for (std::vector<BatchIndex>* set : {first, second, &batch}) {
      for (size_t i = set->size(); i-- > 0;) {
        (*set)[i].copied = step;
        step *= (*set)[i].extent;
      }
    }
    return step;
  }
};

// The offsets for all values of a set of indices, the last one fastest: in the operand and in the
// copy.
struct CopiedPlaces {
  std::vector<int64_t> from{0}, to{0};

  explicit CopiedPlaces(const std::vector<BatchIndex>& set) {
    for (const BatchIndex& x : set) {
      CopiedPlaces next({});
      next.from.clear();
      next.to.clear();
      for (size_t i = 0; i < from.size(); ++i) {
        for (int64_t e = 0; e < x.extent; ++e) {
          next.from.push_back(from[i] + e * x.step);
          next.to.push_back(to[i] + e * x.copied);
        }
      }
      *this = std::move(next);
    }
  }
};

template <class T>
constexpr int64_t kVectorCells = 16 / static_cast<int64_t>(sizeof(T));
template <class T>
constexpr int64_t kLineCells = 64 / static_cast<int64_t>(sizeof(T));

// Copies the cells for all values of `across`, whose step is one, and of `rows`.
template <class T>
void copy_across(T* to, const T* from, const BatchIndex& across, const CopiedPlaces& rows) {
  const auto count = static_cast<int64_t>(rows.from.size());
  for (int64_t begin = 0; begin < across.extent; begin += kLineCells<T>) {
    int64_t end = std::min(across.extent, begin + kLineCells<T>), r = 0;
    for (; r + kVectorCells<T> <= count; r += kVectorCells<T>) {
      const int64_t* row = &rows.from[static_cast<size_t>(r)];
      int64_t u = begin;
      for (; u + kVectorCells<T> <= end; u += kVectorCells<T>) {
        transpose(to + u * across.copied + r, across.copied, from + u, row);
      }
      for (; u < end; ++u) {
        for (int64_t q = 0; q < kVectorCells<T>; ++q)
          to[u * across.copied + r + q] = from[row[q] + u];
      }
    }
    for (; r < count; ++r) {
      const T* row = from + rows.from[static_cast<size_t>(r)];
      for (int64_t u = begin; u < end; ++u) to[u * across.copied + r] = row[u];
    }
  }
}

// The operand in place, or a copy of it at `to`, whose steps are then written to `shape`; `to`
// moves past the copy.
template <class T>
const T* by_product(std::vector<int64_t>& shape, Operand operand, const T* from, T*& to) {
  OperandLayout layout(shape, operand);
  const BatchIndex* across = layout.across(kVectorCells<T>);
  if (!across) return from;
  const T* copy = to;
  to += layout.arrange();
  std::vector<BatchIndex> others = layout.others();
  for (const BatchIndex& x : layout.batch) {
    if (&x != across) others.push_back(x);
  }
  const CopiedPlaces rows(layout.neighbours()), rest(others);
  for (size_t i = 0; i < rest.from.size(); ++i) {
    copy_across(const_cast<T*>(copy) + rest.to[i], from + rest.from[i], *across, rows);
  }
  std::vector<BatchIndex> batch = set_of(shape, IndexSet::Batch, operand);
  auto next = layout.batch.begin();
  for (BatchIndex& x : batch) {
    if (x.step != 0) x.copied = (next++)->copied;
  }
  write_steps(shape, IndexSet::Batch, operand, batch);
  write_steps(shape, operand == Operand::A ? IndexSet::Rows : IndexSet::Columns, operand,
              layout.lines);
  write_steps(shape, IndexSet::Sums, operand, layout.sums);
  return copy;
}

// The table of the block with this number, and its distance from the first block in each operand.
struct BatchPart {
  std::vector<int64_t> shape;
  int64_t offset[4] = {};  // by Operand
};

BatchPart part_of(const Batches& all, int64_t number) {
  BatchPart out{all.shape, {}};
  for (size_t i = all.width.size(); i-- > 0;) {
    int64_t* index = &out.shape[4 + 4 * i];
    int64_t width = all.width[i], count = (index[0] + width - 1) / width;
    int64_t begin = number % count * width;
    number /= count;
    index[0] = std::min(width, index[0] - begin);
    for (int x = 1; x <= 3; ++x) out.offset[x] += begin * index[x];
  }
  return out;
}

}  // namespace

int64_t Batches::blocks() const {
  int64_t out = 1;
  for (size_t i = 0; i < width.size(); ++i) out *= (shape[4 + 4 * i] + width[i] - 1) / width[i];
  return out;
}

template <class T>
std::optional<Batches> batches_to_copy(const int64_t* given) {
  // A single product, perhaps for every step of a recurrence.
  if (given[0] == 0) return std::nullopt;
  Batches out;
  out.shape.assign(given, given + 4 + 4 * (given[0] + given[1] + given[2] + given[3]));
  for (size_t at = 4; at < out.shape.size(); at += 4) {
    if (out.shape[at] <= 0) return std::nullopt;
  }
  out.width.assign(static_cast<size_t>(given[0]), 1);
  bool copies = false;
  for (Operand operand : {Operand::A, Operand::B}) {
    OperandLayout layout(out.shape, operand);
    const BatchIndex* across = layout.across(kVectorCells<T>);
    OperandLayout other(out.shape, operand == Operand::A ? Operand::B : Operand::A);
    if (!across || values(other.lines) >= copied_uses) continue;
    copies = true;
    for (size_t i = 0; i < out.width.size(); ++i) {
      const int64_t* index = &out.shape[4 + 4 * i];
      if (index[static_cast<int>(operand)] == 1)
        out.width[i] = index[0] < 2 * kLineCells<T> ? index[0] : kLineCells<T>;
    }
  }
  bool fits = copied_cells<T>(out) * static_cast<int64_t>(sizeof(T)) <= copied_bytes;
  return copies && fits ? std::optional(std::move(out)) : std::nullopt;
}

template <class T>
int64_t copied_cells(const Batches& all) {
  BatchPart first = part_of(all, 0);
  int64_t out = 0;
  for (Operand operand : {Operand::A, Operand::B}) {
    OperandLayout layout(first.shape, operand);
    if (layout.across(kVectorCells<T>)) out += layout.arrange();
  }
  return out;
}

template <class T>
BatchBlock<T> batch_block(const Batches& all, int64_t number, const T* a, const T* b, T* copies) {
  BatchPart part = part_of(all, number);
  BatchBlock<T> block{std::move(part.shape), a + part.offset[1], b + part.offset[2],
                      part.offset[3]};
  block.a = by_product(block.shape, Operand::A, block.a, copies);
  block.b = by_product(block.shape, Operand::B, block.b, copies);
  return block;
}

template std::optional<Batches> batches_to_copy<float>(const int64_t*);
template int64_t copied_cells<float>(const Batches&);
template BatchBlock<float> batch_block(const Batches&, int64_t, const float*, const float*, float*);
template std::optional<Batches> batches_to_copy<double>(const int64_t*);
template int64_t copied_cells<double>(const Batches&);
template BatchBlock<double> batch_block(const Batches&, int64_t, const double*, const double*,
                                        double*);
template std::optional<Batches> batches_to_copy<uint16_t>(const int64_t*);
template int64_t copied_cells<uint16_t>(const Batches&);
template BatchBlock<uint16_t> batch_block(const Batches&, int64_t, const uint16_t*, const uint16_t*,
                                          uint16_t*);

}  // namespace ein
