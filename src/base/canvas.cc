#include "base/canvas.h"

#include "base/render.h"

namespace ein {

namespace {

constexpr size_t kTab = 4;

const char* escape(Style style) {
  switch (style) {
    case Style::Plain: return "";
    case Style::Bold: return "\x1b[1m";
    case Style::Gutter: return "\x1b[1;34m";
    case Style::Error: return "\x1b[1;31m";
    case Style::Warning: return "\x1b[1;33m";
    case Style::Label: return "\x1b[1;36m";
    case Style::Added: return "\x1b[32m";
  }
  return "";
}

struct CodePoint {
  char32_t value;
  std::string_view bytes;
};

// A byte that begins no valid sequence is one code point, shown as U+FFFD.
CodePoint next_code_point(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  size_t size = lead < 0x80         ? 1
                : (lead >> 5) == 6  ? 2
                : (lead >> 4) == 14 ? 3
                : (lead >> 3) == 30 ? 4
                                    : 0;
  if (size == 0 || size > text.size()) return {0xFFFD, text.substr(0, 1)};
  char32_t value = size == 1 ? lead : lead & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0u) != 0x80u) return {0xFFFD, text.substr(0, 1)};
    value = (value << 6) | (byte & 0x3Fu);
  }
  return {value, text.substr(0, size)};
}

}  // namespace

int display_width(char32_t c) {
  auto in = [c](char32_t lo, char32_t hi) { return c >= lo && c <= hi; };
  if (in(0x0300, 0x036F) || in(0x1AB0, 0x1AFF) || in(0x20D0, 0x20FF) || in(0xFE00, 0xFE0F) ||
      in(0x200B, 0x200F) || c == 0xFEFF) {
    return 0;
  }
  if (in(0x1100, 0x115F) || in(0x2E80, 0x303E) || in(0x3041, 0xA4CF) || in(0xAC00, 0xD7A3) ||
      in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) || in(0xFFE0, 0xFFE6) ||
      in(0x1F300, 0x1F64F) || in(0x1F680, 0x1F6FF) || in(0x1F900, 0x1F9FF) ||
      in(0x20000, 0x3FFFD)) {
    return 2;
  }
  return 1;
}

size_t Canvas::put(size_t row, size_t col, std::string_view text, Style style) {
  auto& cells = rows[row];
  auto set = [&](size_t at, std::string value) {
    if (cells.size() <= at) cells.resize(at + 1);
    cells[at] = {std::move(value), style};
  };
  while (!text.empty()) {
    auto [value, bytes] = next_code_point(text);
    text.remove_prefix(bytes.size());
    if (value == '\t') {
      for (size_t i = 0; i < kTab; ++i) set(col++, " ");
      continue;
    }
    if (value < 0x20 || value == 0x7F || value == 0xFFFD) {  // would disturb the terminal
      set(col++, "\xEF\xBF\xBD");
      continue;
    }
    int width = display_width(value);
    if (width == 0) {
      if (col > 0 && cells.size() >= col) cells[col - 1].text += bytes;
      continue;
    }
    set(col++, std::string(bytes));
    if (width == 2) set(col++, "");
  }
  return col;
}

void Canvas::fill(size_t row, size_t from, size_t to, char c, Style style) {
  for (size_t at = from; at < to; ++at) put(row, at, std::string_view(&c, 1), style);
}

std::string Canvas::str(bool color) const {
  std::string out;
  for (const auto& cells : rows) {
    size_t size = cells.size();
    while (size > 0 && cells[size - 1].text == " ") --size;
    Style current = Style::Plain;
    for (size_t i = 0; i < size; ++i) {
      if (color && cells[i].style != current && cells[i].text != " ") {
        if (current != Style::Plain) out += "\x1b[0m";
        out += escape(cells[i].style);
        current = cells[i].style;
      }
      out += cells[i].text;
    }
    if (current != Style::Plain) out += "\x1b[0m";
    out += '\n';
  }
  return out;
}

std::string styled(std::string_view text, Style style, bool color) {
  if (!color || style == Style::Plain) return std::string(text);
  return escape(style) + std::string(text) + "\x1b[0m";
}

size_t text_width(std::string_view text) {
  Canvas scratch;
  return scratch.put(scratch.add_row(), 0, text);
}

}  // namespace ein
