#include "base/source.h"

#include <algorithm>

namespace ein {

Span join(Span a, Span b) {
  if (!a.valid()) return b;
  if (!b.valid() || a.file != b.file) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

FileId SourceMap::add(std::string name, std::string text) {
  std::vector<uint32_t> starts{0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts.push_back(static_cast<uint32_t>(i + 1));
  }
  return files_.add({std::move(name), std::move(text), std::move(starts)});
}

std::string_view SourceMap::text(Span span) const {
  if (!span.valid()) return {};
  return std::string_view(files_[span.file].text).substr(span.begin, span.end - span.begin);
}

LineCol SourceMap::position(FileId file, uint32_t offset) const {
  const File& f = files_[file];
  auto it = std::upper_bound(f.line_starts.begin(), f.line_starts.end(), offset);
  auto line = static_cast<uint32_t>(it - f.line_starts.begin());
  uint32_t col = 1;
  for (uint32_t i = f.line_starts[line - 1]; i < offset && i < f.text.size(); ++i) {
    if ((static_cast<unsigned char>(f.text[i]) & 0xC0u) != 0x80u) ++col;  // not a continuation byte
  }
  return {line, col};
}

std::string_view SourceMap::line(FileId file, uint32_t line) const {
  const File& f = files_[file];
  if (line == 0 || line > f.line_starts.size()) return {};
  uint32_t begin = f.line_starts[line - 1];
  size_t end = line < f.line_starts.size() ? f.line_starts[line] - 1 : f.text.size();
  return std::string_view(f.text).substr(begin, end - begin);
}

uint32_t SourceMap::line_begin(FileId file, uint32_t line) const {
  return files_[file].line_starts[line - 1];
}

}  // namespace ein
