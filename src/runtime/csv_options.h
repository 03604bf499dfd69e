// How a .csv file is read, as the command line says it and as files.h wants it in the place of a
// member's name: `headings; columns = "a", "b"; labels; missing = nan; separator = tab; decimal =
// comma; type = f64`. Every part may be left out. In a program they are named arguments of `load`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/dtype.h"

namespace ein {

struct CsvOptions {
  // Whether the first line holds headings; otherwise that is so if none of its cells is a number.
  std::optional<bool> headings;
  std::vector<std::string> columns;  // by their headings; empty: all of them
  bool labels = false;  // words become numbers: their places in the sorted words of the column
  std::optional<std::string> missing;  // what an empty cell stands for: a number
  char separator = '\0';  // '\0': a tab or a semicolon if the first line has one, else a comma
  bool decimal_comma = false;
  std::optional<DType> type;  // of the cells; otherwise that of the same numbers in a program
};

// Throws Malformed (bytes.h).
CsvOptions parse_csv_options(const std::string& text);
std::string show(const CsvOptions& options);  // the text that is parsed to the same

}  // namespace ein
