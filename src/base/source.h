// Source texts and positions in them. A Span is half-open in bytes; SourceMap turns it into lines
// and columns only when a message is rendered.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace ein {

struct FileTag;
using FileId = Id<FileTag>;

struct Span {
  FileId file;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool valid() const { return file.valid(); }
  friend bool operator==(const Span&, const Span&) = default;
};

// The smallest span that covers both (same file); the valid one if the other is not.
Span join(Span a, Span b);

struct LineCol {
  uint32_t line = 0;  // from 1
  uint32_t col = 0;   // from 1, counted in code points
};

class SourceMap {
 public:
  FileId add(std::string name, std::string text);
  const std::string& name(FileId file) const { return files_[file].name; }
  const std::string& text(FileId file) const { return files_[file].text; }
  std::string_view text(Span span) const;
  LineCol position(FileId file, uint32_t offset) const;
  std::string_view line(FileId file, uint32_t line) const;  // without its newline; line from 1
  uint32_t line_begin(FileId file, uint32_t line) const;

 private:
  struct File {
    std::string name;
    std::string text;
    std::vector<uint32_t> line_starts;
  };
  Store<FileId, File> files_;
};

}  // namespace ein
