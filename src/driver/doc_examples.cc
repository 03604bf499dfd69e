#include "driver/doc_examples.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>
#include <vector>

namespace ein {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

bool is_doc(const std::string& line) { return line.starts_with("///"); }

// What stands after `///`, without the spaces around it.
std::string said(const std::string& line) {
  size_t begin = line.find_first_not_of(" \t", 3), end = line.find_last_not_of(" \t\r\n");
  return begin == std::string::npos || begin > end ? "" : line.substr(begin, end - begin + 1);
}

// The name of the item that a doc comment ending before line `at` documents.
std::string documented(const std::vector<std::string>& lines, size_t at) {
  while (at < lines.size() && (is_doc(lines[at]) || lines[at].starts_with("#"))) ++at;
  if (at == lines.size()) return "";
  std::string word, last;
  for (char c : lines[at] + " ") {
    bool part = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80);
    if (part) {
      word += c;
      continue;
    }
    if (last == "fn" || last == "let" || last == "const") return word;
    if (!word.empty()) last = std::exchange(word, "");
    if (c != ' ' && c != '@') return "";
  }
  return "";
}

}  // namespace

std::string doc_examples_as_tests(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_doc(lines[i]) || said(lines[i]) != "```ein") continue;
    size_t end = i + 1;
    while (end < lines.size() && is_doc(lines[end]) && said(lines[end]) != "```") ++end;
    if (end == lines.size() || !is_doc(lines[end])) continue;  // it is never closed
    std::string name = documented(lines, end);
    lines[i] =
        fmt::format("test \"{}example in line {}\" {{\n", name.empty() ? "" : name + ", ", i + 1);
    for (size_t k = i + 1; k < end; ++k) lines[k].replace(0, 3, "   ");
    lines[end] = "}\n";
    i = end;
  }
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

}  // namespace ein
