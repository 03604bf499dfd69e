#include "runtime/row_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/formats.h"

namespace ein {
namespace {

constexpr size_t kBlockBytes = 256 << 10;  // short rows are read in blocks of this length

RuntimeError cannot_read(const std::string& path, const std::string& why) {
  return {Code::E0808, fmt::format("cannot read `{}`: {}", path, why)};
}

}  // namespace

uint64_t RowFile::bytes() const { return byte_count(header.dtype, header.shape); }

std::variant<std::unique_ptr<RowReader>, RuntimeError> RowReader::open(const RowFile& file,
                                                                       int64_t rows) {
  try {
    return std::unique_ptr<RowReader>(new RowReader(file, rows));
  } catch (const Malformed& m) { return cannot_read(file.path, m.why); } catch (std::bad_alloc&) {
    return cannot_read(file.path, "out of memory");
  }
}

RowReader::RowReader(const RowFile& file, int64_t rows)
    : file_(file), in_(file.path), count_(file.header.shape[0]) {
  if (in_.size() != file.header.size || in_.modified() != file.header.modified) {
    throw Malformed{"it changed after the program was compiled"};
  }
  std::vector<int64_t> shape = file.header.shape;
  shape[0] = rows;
  window_ = Tensor::uncleared(file.header.dtype, shape);
  row_bytes_ = size_of(file.header.dtype);
  for (size_t k = 1; k < shape.size(); ++k) row_bytes_ *= static_cast<size_t>(shape[k]);
  if (row_bytes_ < kBlockBytes) block_.resize(kBlockBytes);
}

std::optional<RuntimeError> RowReader::fetch(int64_t first) {
  try {
    move(first);
    return std::nullopt;
  } catch (const Malformed& m) { return cannot_read(file_.path, m.why); }
}

void RowReader::move(int64_t first) {
  const int64_t rows = window_.shape()[0];
  if (row_bytes_ == 0 || (first == first_ && from_ < to_)) return;
  const bool downward = first < first_;
  const int64_t old_first = first_, old_from = from_, old_to = to_;
  first_ = first;
  from_ = to_ = 0;  // until it is read
  if (first >= count_ || first <= -rows) return;
  const int64_t from = std::max<int64_t>(first, 0), to = std::min(first + rows, count_);
  auto place = [&](int64_t row, int64_t start) {
    return window_.as<std::byte>() + static_cast<size_t>(row - start) * row_bytes_;
  };
  // Rows that stay are moved, the others are read.
  const int64_t kept_from = std::max(from, old_from), kept_to = std::min(to, old_to);
  if (kept_from < kept_to) {
    std::memmove(place(kept_from, first), place(kept_from, old_first),
                 static_cast<size_t>(kept_to - kept_from) * row_bytes_);
    if (from < kept_from) read(from, kept_from, place(from, first), downward);
    if (kept_to < to) read(kept_to, to, place(kept_to, first), downward);
  } else {
    read(from, to, place(from, first), downward);
  }
  from_ = from;
  to_ = to;
}

void RowReader::read(int64_t from, int64_t to, std::byte* into, bool downward) {
  const size_t bytes = static_cast<size_t>(to - from) * row_bytes_;
  if (bytes >= kBlockBytes) return read_file(from, to, into, downward);
  if (from < block_from_ || to > block_to_) {
    const auto rows = static_cast<int64_t>(kBlockBytes / row_bytes_);
    const int64_t begin = downward ? std::max<int64_t>(0, to - rows) : from;
    const int64_t end = downward ? to : std::min(count_, from + rows);
    block_from_ = block_to_ = 0;
    read_file(begin, end, block_.data(), downward);
    block_from_ = begin;
    block_to_ = end;
  }
  std::memcpy(into, block_.data() + static_cast<size_t>(from - block_from_) * row_bytes_, bytes);
}

void RowReader::read_file(int64_t from, int64_t to, std::byte* into, bool downward) {
  const size_t bytes = static_cast<size_t>(to - from) * row_bytes_;
  const uint64_t at = file_.begin + static_cast<uint64_t>(from) * row_bytes_;
  in_.read_at(at, into, bytes);
  if (in_.has_changed()) throw Malformed{"it changed while it was read"};
  if (!downward) {
    in_.read_ahead(at + bytes, bytes);
  } else if (at > file_.begin) {
    const uint64_t before = std::min<uint64_t>(bytes, at - file_.begin);
    in_.read_ahead(at - before, before);
  }
  const size_t cell = size_of(file_.header.dtype);
  if (file_.swapped) {
    for (std::byte* p = into; p != into + bytes; p += cell) std::reverse(p, p + cell);
  }
  if (file_.header.dtype == DType::Bool) {
    // Any other byte than 0 and 1 would not be a bool in machine code.
    std::transform(into, into + bytes, into,
                   [](std::byte b) { return std::byte{b != std::byte{0}}; });
  }
}

}  // namespace ein
