// Files that are read while a program runs. A row is the cells at one address of the leading
// coordinate, which lie next to each other in the file. The program has a window of a few rows in
// memory, moves it before it reads them, and never holds the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/bytes.h"
#include "runtime/files.h"
#include "runtime/tensor.h"

namespace ein {

// Where the rows of a tensor are in its file.
struct RowFile {
  std::string path, member;
  FileHeader header;
  uint64_t begin = 0;    // of the first row
  bool swapped = false;  // the cells are big-endian

  uint64_t bytes() const;  // of all rows
};

// Nothing, with the reason in `why`, if the file has no rows that can be read one by one; or if it
// cannot be read at all, which is reported when it is read as a whole.
std::optional<RowFile> find_rows(const std::string& path, const std::string& member,
                                 std::string& why);

class RowReader {
 public:
  // The file must still be as `file` says. `rows`: the length of the window.
  static std::variant<std::unique_ptr<RowReader>, RuntimeError> open(const RowFile& file,
                                                                     int64_t rows);

  void* window() { return window_.data(); }
  // Moves the window to the rows from `first` on, reads those that exist, and lets the system read
  // ahead what the next move in the same direction will need.
  std::optional<RuntimeError> fetch(int64_t first);

 private:
  RowReader(const RowFile& file, int64_t rows);
  void move(int64_t first);
  void read(int64_t from, int64_t to, std::byte* into, bool downward);
  void read_file(int64_t from, int64_t to, std::byte* into, bool downward);

  RowFile file_;
  InFile in_;
  int64_t count_ = 0;  // rows of the file
  size_t row_bytes_ = 0;
  int64_t first_ = 0, from_ = 0, to_ = 0;  // where the window is, and which rows it holds
  Tensor window_;
  // Short rows are read many at a time.
  std::vector<std::byte> block_;
  int64_t block_from_ = 0, block_to_ = 0;
};

}  // namespace ein
