// Tables in text: an optional line of headings, then rows of one length. Cells are numbers, or
// words in a column that has nothing else, if they are asked for.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <string_view>

#include "runtime/csv_options.h"
#include "runtime/formats.h"
#include "runtime/show.h"

namespace ein {
namespace {

std::string_view trimmed(std::string_view s) {
  size_t a = s.find_first_not_of(" \t\r"), b = s.find_last_not_of(" \t\r");
  return a == std::string_view::npos ? std::string_view{} : s.substr(a, b - a + 1);
}

std::string_view unsigned_part(std::string_view s) {  // from_chars takes no plus
  return s.size() > 1 && s[0] == '+' && s[1] != '-' ? s.substr(1) : s;
}

std::optional<int64_t> int_of(std::string_view s) {
  s = unsigned_part(s);
  int64_t v = 0;
  auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc{} || stop != s.data() + s.size()) return std::nullopt;
  return v;
}

// Rounded once, to the type that keeps it.
template <class T>
std::optional<double> float_of(std::string_view s) {
  s = unsigned_part(s);
  T v = 0;
  auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (stop != s.data() + s.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error != std::errc{}) {  // too large is not a number, too small is 0
    double wide = std::strtod(std::string(s).c_str(), nullptr);
    if (std::fabs(wide) > 1) return std::nullopt;
    return static_cast<T>(wide);
  }
  return v;
}

bool is_truth(std::string_view s) { return s == "true" || s == "false"; }

// True also for a number that no type holds: that is a mistake, but not a heading.
bool is_number(std::string_view s) {
  if (is_truth(s)) return true;
  s = unsigned_part(s);
  double v = 0;
  auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return !s.empty() && stop == s.data() + s.size() && error != std::errc::invalid_argument;
}

// What people write where they know nothing. `nan` is a number.
bool is_blank(std::string_view s) {
  return s.empty() || s == "NA" || s == "N/A" || s == "n/a" || s == "null" || s == "NULL" ||
         s == "None";
}

[[noreturn]] void bad_cell(int64_t line, std::string_view cell, const std::string& what) {
  std::string shown(cell.substr(0, 40));
  throw Malformed{shown.empty()
                      ? fmt::format("line {} has an empty cell; say what it stands for with "
                                    "`missing = nan` or another number",
                                    line)
                      : fmt::format("line {}: `{}` is not {}", line, shown, what)};
}

// The cells as they stand in the file, and the line of each row.
struct Table {
  std::vector<std::string_view> cells;  // row-major, without headings
  std::vector<int64_t> lines;
  std::vector<std::string> headings;  // empty: it has none
  size_t columns = 0;
  std::deque<std::string> rewritten;  // cells that do not stand in the text as they are

  size_t rows() const { return lines.size(); }
  std::string_view cell(size_t row, size_t column) const { return cells[row * columns + column]; }
  std::string column_name(size_t k) const {
    return headings.empty() ? fmt::format("column {}", k + 1) : headings[k];
  }
};

// Takes a text apart, row by row.
class Cells {
 public:
  Cells(std::string_view text, char separator, Table& out)
      : text_(text), separator_(separator), out_(out) {}

  bool done() const { return at_ >= text_.size(); }
  int64_t line() const { return line_; }

  // The cells of the next row; none for a blank line.
  std::vector<std::string_view> row() {
    std::vector<std::string_view> out;
    bool quoted = false;
    do { out.push_back(cell(quoted)); } while (more_);
    bool blank = out.size() == 1 && out[0].empty() && !quoted;
    return blank ? std::vector<std::string_view>{} : out;
  }

  void next_line() { ++line_; }

 private:
  bool ends_cell(char c) const { return c == separator_ || c == '\n'; }

  void leave_cell() {
    more_ = at_ < text_.size() && text_[at_] == separator_;
    ++at_;
  }

  // Leaves `at_` behind the separator or the end of the line.
  std::string_view cell(bool& quoted) {
    size_t begin = at_;
    while (begin < text_.size() && !ends_cell(text_[begin]) &&
           (text_[begin] == ' ' || text_[begin] == '\t')) {
      ++begin;
    }
    if (begin < text_.size() && text_[begin] == '"') {
      quoted = true;
      return quoted_cell(begin + 1);
    }
    while (at_ < text_.size() && !ends_cell(text_[at_])) ++at_;
    std::string_view out = at_ > begin ? trimmed(text_.substr(begin, at_ - begin)) : "";
    leave_cell();
    return out;
  }

  std::string_view quoted_cell(size_t begin) {
    int64_t first = line_;
    bool doubled = false;
    for (at_ = begin; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') continue;
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
      doubled = true;
      ++at_;
    }
    if (at_ >= text_.size()) {
      throw Malformed{fmt::format("the quote in line {} is not closed", first)};
    }
    std::string_view out = text_.substr(begin, at_ - begin);
    if (doubled) {
      std::string& own = out_.rewritten.emplace_back();
      for (size_t i = 0; i < out.size(); ++i) {
        own += out[i];
        if (out[i] == '"') ++i;
      }
      out = own;
    }
    for (++at_; at_ < text_.size() && !ends_cell(text_[at_]); ++at_) {
      if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r') {
        throw Malformed{fmt::format("line {}: `{}` follows a quoted cell", line_, text_[at_])};
      }
    }
    leave_cell();
    return out;
  }

  std::string_view text_;
  char separator_;
  Table& out_;
  size_t at_ = 0;
  int64_t line_ = 1;
  bool more_ = false;  // the last cell was not the last of its row
};

// Of the first line: a tab or a semicolon hardly ever stands in a heading or a number.
char separator_of(std::string_view text) {
  bool quoted = false, semicolon = false, any = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' && any) break;
    any |= c != '\n' && c != '\r' && c != ' ' && c != '\t';
    if (c == '\t' && any) return '\t';
    semicolon |= c == ';';
  }
  return semicolon ? ';' : ',';
}

// A line with words and numbers is one of headings or of data: data if words may be labels and
// these stand in columns of words. Otherwise whoever means headings has to say so, because numbers
// must not get lost.
bool first_is_heading(const Table& t, bool labels) {
  bool number = false, word = false;
  for (size_t k = 0; k < t.columns; ++k) {
    number |= is_number(t.cell(0, k));
    word |= !is_number(t.cell(0, k)) && !is_blank(t.cell(0, k));
  }
  if (!word) return false;  // empty cells alone are no headings
  if (!number) return true;
  for (size_t k = 0; k < t.columns; ++k) {
    std::string_view own = t.cell(0, k);
    if (is_number(own) || is_blank(own)) continue;
    bool words = labels && t.rows() > 1;
    for (size_t r = 1; words && r < t.rows(); ++r) words = !is_number(t.cell(r, k));
    if (words) continue;
    bad_cell(t.lines[0], own,
             "a number, but other cells of the line are: if the line is a heading, say so with "
             "`load(\"…\", headings = true)` or --csv-headings");
  }
  return false;
}

Table table_of(const std::string& whole, const CsvOptions& options) {
  std::string_view text = whole;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw Malformed{"it is written in UTF-16; save it as UTF-8"};
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Table out;
  Cells cells(text, options.separator != '\0' ? options.separator : separator_of(text), out);
  while (!cells.done()) {
    int64_t line = cells.line();
    std::vector<std::string_view> row = cells.row();
    cells.next_line();
    if (row.empty()) continue;
    if (out.columns == 0) out.columns = row.size();
    if (row.size() != out.columns) {
      throw Malformed{fmt::format("line {} has {} cells, line {} has {}", line, row.size(),
                                  out.lines[0], out.columns)};
    }
    out.cells.insert(out.cells.end(), row.begin(), row.end());
    out.lines.push_back(line);
  }
  if (out.lines.empty()) throw Malformed{"it contains no numbers"};
  if (options.headings ? *options.headings : first_is_heading(out, options.labels)) {
    for (size_t k = 0; k < out.columns; ++k) out.headings.emplace_back(out.cell(0, k));
    out.cells.erase(out.cells.begin(), out.cells.begin() + static_cast<ptrdiff_t>(out.columns));
    out.lines.erase(out.lines.begin());
  }
  if (out.lines.empty()) throw Malformed{"it contains no numbers"};
  return out;
}

// Which columns are asked for, in that order.
std::vector<size_t> chosen_columns(const Table& t, const CsvOptions& options) {
  std::vector<size_t> out;
  if (options.columns.empty()) {
    for (size_t k = 0; k < t.columns; ++k) out.push_back(k);
    return out;
  }
  if (t.headings.empty()) {
    throw Malformed{
        "its columns have no names: its first line does not look like headings (if it is, say "
        "`headings = true`)"};
  }
  for (const std::string& name : options.columns) {
    auto found = std::find(t.headings.begin(), t.headings.end(), name);
    if (found == t.headings.end()) {
      std::vector<std::string> known = t.headings;
      if (known.size() > 12) known.resize(12);
      throw Malformed{fmt::format("it has no column `{}`: its headings are `{}`{}", name,
                                  fmt::join(known, "`, `"), t.headings.size() > 12 ? ", …" : "")};
    }
    if (std::find(found + 1, t.headings.end(), name) != t.headings.end()) {
      throw Malformed{fmt::format("it has two columns `{}`", name)};
    }
    out.push_back(static_cast<size_t>(found - t.headings.begin()));
  }
  return out;
}

// A column of words and what they are loaded as; empty for a column of numbers.
using Codes = std::map<std::string_view, int64_t>;

struct Contents {
  Table table;
  std::vector<size_t> columns;
  std::vector<Codes> codes;  // one per chosen column
  DType dtype = DType::I32;  // of the numbers as they would be in a program
};

// `1,5` as `1.5`, if the file writes numbers so.
void use_points(Table& t) {
  for (std::string_view& c : t.cells) {
    size_t comma = c.find(',');
    if (comma == std::string_view::npos) continue;
    std::string& own = t.rewritten.emplace_back(c);
    own[comma] = '.';
    if (is_number(own)) c = own;
  }
}

// Gaps become the cell that stands for them.
void fill_gaps(Table& t, const std::string& missing) {
  std::string& own = t.rewritten.emplace_back(missing);
  if (!is_number(own)) {
    throw Malformed{fmt::format("`missing = {}` is not a number", missing.substr(0, 40))};
  }
  for (std::string_view& c : t.cells) {
    if (is_blank(c)) c = own;
  }
}

Codes codes_of(const Table& t, size_t column, const CsvOptions& options) {
  std::optional<size_t> number, word;
  for (size_t r = 0; r < t.rows(); ++r) {
    std::string_view c = t.cell(r, column);
    if (c.empty()) bad_cell(t.lines[r], c, "");
    bool gap = options.missing && c == *options.missing;
    if (is_number(c) && !number && !gap) number = r;
    if (!is_number(c) && !word) word = r;
  }
  if (!word) return {};
  std::string_view other = t.cell(*word, column);
  if (number || !options.labels) {
    std::string why = "a number";
    if (is_blank(other)) {
      why += "; if it means that the cell is empty, say what it stands for with `missing = nan`";
    } else if (number) {
      why += fmt::format(", but `{}` in line {} of the same column is one",
                         t.cell(*number, column).substr(0, 40), t.lines[*number]);
    } else {
      why += "; with `labels = true` the words of a column become numbers, in their sorted order";
    }
    bad_cell(t.lines[*word], other, why);
  }
  Codes out;
  for (size_t r = 0; r < t.rows(); ++r) {
    if (!is_number(t.cell(r, column))) out[t.cell(r, column)] = 0;
  }
  int64_t next = 0;
  for (auto& [label, code] : out) code = next++;
  return out;
}

Contents contents_of(const std::string& text, const CsvOptions& options) {
  Contents out;
  out.table = table_of(text, options);
  Table& t = out.table;
  if (options.decimal_comma) use_points(t);
  if (options.missing) fill_gaps(t, *options.missing);
  out.columns = chosen_columns(t, options);
  bool floats = false, wide = false;
  size_t truths = 0, all = 0;
  for (size_t column : out.columns) {
    out.codes.push_back(codes_of(t, column, options));
    for (size_t r = 0; r < t.rows(); ++r) {
      std::string_view c = t.cell(r, column);
      bool word = out.codes.back().contains(c);  // its code is a number
      ++all;
      if (word) continue;
      if (is_truth(c)) {
        ++truths;
      } else if (auto v = int_of(c)) {
        wide |= *v < INT32_MIN || *v > INT32_MAX;
      } else if (float_of<double>(c)) {
        floats = true;
      } else {
        bad_cell(t.lines[r], c, "a number");
      }
      if (truths > 0 && truths < all) bad_cell(t.lines[r], c, "of the type of the cells before it");
    }
  }
  out.dtype = truths > 0 ? DType::Bool : floats ? DType::F32 : wide ? DType::I64 : DType::I32;
  if (options.type) out.dtype = *options.type;
  return out;
}

void set_cell(Tensor& t, int64_t at, int64_t line, std::string_view cell) {
  DType type = t.dtype();
  std::string what = fmt::format("a value of type {}", name_of(type));
  if (type == DType::Bool) {
    if (!is_truth(cell) && cell != "0" && cell != "1") bad_cell(line, cell, what);
    t.set_int(at, cell == "true" || cell == "1");
  } else if (is_float(type)) {
    auto v = type == DType::F64 ? float_of<double>(cell) : float_of<float>(cell);
    if (!v) bad_cell(line, cell, what);
    t.set_float(at, *v);
    if (std::isinf(t.get_float(at)) && !std::isinf(*v)) bad_cell(line, cell, what);  // f16, bf16
  } else {
    auto v = int_of(cell);
    if (v) t.set_int(at, *v);
    if (!v || t.get_int(at) != *v) bad_cell(line, cell, what);
  }
}

void set_code(Tensor& t, int64_t at, int64_t line, std::string_view label, int64_t code) {
  if (is_float(t.dtype())) {
    t.set_float(at, static_cast<double>(code));
  } else if (t.dtype() != DType::Bool) {
    t.set_int(at, code);
  }
  bool kept =
      is_float(t.dtype()) ? t.get_float(at) == static_cast<double>(code) : t.get_int(at) == code;
  if (!kept || t.dtype() == DType::Bool) {
    bad_cell(line, label,
             fmt::format("a value of type {}, and neither is the number {} that stands for it",
                         name_of(t.dtype()), code));
  }
}

}  // namespace

CsvShape csv_shape(const std::string& text, const std::string& how) {
  CsvOptions options = parse_csv_options(how);
  if (options.type) read_csv(text, how, std::nullopt);  // a cell that does not fit is a mistake
  Contents c = contents_of(text, options);
  CsvShape out{
      c.dtype, static_cast<int64_t>(c.table.rows()), static_cast<int64_t>(c.columns.size()), {}};
  for (size_t k = 0; k < c.columns.size(); ++k) {
    if (c.codes[k].empty()) continue;
    ColumnLabels& l = out.labels.emplace_back();
    l.column = c.table.column_name(c.columns[k]);
    for (const auto& [label, code] : c.codes[k]) l.labels.emplace_back(label);
  }
  return out;
}

Tensor read_csv(const std::string& text, const std::string& how, std::optional<Wanted> wanted) {
  Contents c = contents_of(text, parse_csv_options(how));
  auto rows = static_cast<int64_t>(c.table.rows()),
       columns = static_cast<int64_t>(c.columns.size());
  std::vector<int64_t> shape{rows, columns};
  if (columns == 1) shape = {rows};
  if (wanted && wanted->rank == 2) shape = {rows, columns};
  if (wanted && wanted->rank == 1 && rows == 1) shape = {columns};
  if (wanted && wanted->rank == 0 && rows == 1 && columns == 1) shape = {};
  Tensor t(wanted ? wanted->dtype : c.dtype, shape);
  int64_t at = 0;
  for (size_t r = 0; r < c.table.rows(); ++r) {
    for (size_t k = 0; k < c.columns.size(); ++k) {
      std::string_view cell = c.table.cell(r, c.columns[k]);
      auto code = c.codes[k].find(cell);
      if (code == c.codes[k].end()) {
        set_cell(t, at++, c.table.lines[r], cell);
      } else {
        set_code(t, at++, c.table.lines[r], cell, code->second);
      }
    }
  }
  return t;
}

std::string csv_text(const Tensor& t) {
  if (t.rank() > 2) {
    throw Malformed{fmt::format(
        "a csv file holds at most 2 coordinates, but the value has {}; use npy", t.rank())};
  }
  std::string out;
  int64_t columns = t.rank() == 2 ? t.shape()[1] : 1;
  for (int64_t i = 0; i < t.size(); ++i) {
    out += show_scalar(t, i);
    out += (i + 1) % columns == 0 ? '\n' : ',';
  }
  return out;
}

}  // namespace ein
