// A grid of styled cells, for drawing source frames: text may be put anywhere, in any order, and is
// turned into lines (with or without colours) at the end. Positions are terminal columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ein {

enum class Style { Plain, Bold, Gutter, Error, Warning, Label, Added };

struct Canvas {
  struct Cell {
    std::string text = " ";  // one code point and its combining marks; empty after a wide one
    Style style = Style::Plain;
  };
  std::vector<std::vector<Cell>> rows;

  size_t add_row() {
    rows.emplace_back();
    return rows.size() - 1;
  }
  // Writes at a column; a tab takes four columns. Returns the column after the text.
  size_t put(size_t row, size_t col, std::string_view text, Style style = Style::Plain);
  void fill(size_t row, size_t from, size_t to, char c, Style style);
  std::string str(bool color) const;  // without trailing spaces, each row ended by a newline
};

std::string styled(std::string_view text, Style style, bool color);
size_t text_width(std::string_view text);  // columns that `put` would use

}  // namespace ein
