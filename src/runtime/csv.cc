// Comma-separated numbers: an optional line of headings, then rows of one length.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string_view>

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

// True also for a number that no type holds: that is a mistake, but not a heading.
bool is_number(std::string_view s) {
  if (s == "true" || s == "false") return true;
  s = unsigned_part(s);
  double v = 0;
  auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return !s.empty() && stop == s.data() + s.size() && error != std::errc::invalid_argument;
}

[[noreturn]] void bad_cell(int64_t line, std::string_view cell, const std::string& what) {
  std::string shown(cell.substr(0, 40));
  throw Malformed{shown.empty() ? fmt::format("line {} has an empty cell", line)
                                : fmt::format("line {}: `{}` is not {}", line, shown, what)};
}

// Whether the first line is one of headings: no cell of it is a number. A line with both may be
// headings or a mistake, and numbers must not get lost, so whoever means headings has to say so.
bool is_heading(int64_t line, const std::vector<std::string_view>& cells) {
  std::string_view other;
  bool number = false;
  for (std::string_view c : cells) {
    number |= is_number(c);
    if (!is_number(c) && (other.empty() || !c.empty())) other = c;
  }
  if (other.empty()) return false;
  if (number) {
    bad_cell(line, other,
             "a number, but other cells of the line are: if the line is a heading, say so with "
             "`load(\"…\", \"headings\")` or --csv-headings");
  }
  return true;
}

// Calls `cell(line, column, text)` for every cell, and returns the number of rows and columns.
CsvShape for_each_cell(const std::string& text, bool headings,
                       const std::function<void(int64_t, int64_t, std::string_view)>& cell) {
  CsvShape out;
  int64_t line = 0, first = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++line;
    if (line == 1 && row.starts_with("\xef\xbb\xbf")) row = trimmed(row.substr(3));
    if (row.empty()) continue;
    std::vector<std::string_view> cells;
    for (size_t i = 0; i <= row.size();) {
      size_t comma = std::min(row.find(',', i), row.size());
      cells.push_back(trimmed(row.substr(i, comma - i)));
      i = comma + 1;
    }
    auto columns = static_cast<int64_t>(cells.size());
    if (out.rows == 0 && first == 0) {
      first = line;
      if (headings || is_heading(line, cells)) {
        out.columns = columns;
        continue;
      }
    }
    if (out.columns == 0) out.columns = columns;
    if (columns != out.columns) {
      throw Malformed{
          fmt::format("line {} has {} cells, line {} has {}", line, columns, first, out.columns)};
    }
    for (int64_t i = 0; i < columns; ++i) cell(line, i, cells[static_cast<size_t>(i)]);
    ++out.rows;
  }
  if (out.rows == 0) throw Malformed{"it contains no numbers"};
  return out;
}

void set_cell(Tensor& t, int64_t at, int64_t line, std::string_view cell) {
  DType type = t.dtype();
  std::string what = fmt::format("a value of type {}", name_of(type));
  if (type == DType::Bool) {
    if (cell != "true" && cell != "false" && cell != "0" && cell != "1") bad_cell(line, cell, what);
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

}  // namespace

CsvShape csv_shape(const std::string& text, bool headings) {
  bool floats = false, wide = false;
  int64_t bools = 0, all = 0;
  CsvShape out = for_each_cell(text, headings, [&](int64_t line, int64_t, std::string_view cell) {
    ++all;
    if (cell == "true" || cell == "false") {
      ++bools;
    } else if (auto v = int_of(cell)) {
      wide |= *v < INT32_MIN || *v > INT32_MAX;
    } else if (float_of<double>(cell)) {
      floats = true;
    } else {
      bad_cell(line, cell, "a number");
    }
    if (bools > 0 && bools < all) bad_cell(line, cell, "of the type of the cells before it");
  });
  out.dtype = bools > 0 ? DType::Bool : floats ? DType::F32 : wide ? DType::I64 : DType::I32;
  return out;
}

Tensor read_csv(const std::string& text, bool headings, std::optional<Wanted> wanted) {
  CsvShape s = csv_shape(text, headings);
  std::vector<int64_t> shape{s.rows, s.columns};
  if (s.columns == 1) shape = {s.rows};
  if (wanted && wanted->rank == 2) shape = {s.rows, s.columns};
  if (wanted && wanted->rank == 1 && s.rows == 1) shape = {s.columns};
  if (wanted && wanted->rank == 0 && s.rows == 1 && s.columns == 1) shape = {};
  Tensor t(wanted ? wanted->dtype : s.dtype, shape);
  int64_t at = 0;
  for_each_cell(text, headings, [&](int64_t line, int64_t, std::string_view cell) {
    set_cell(t, at++, line, cell);
  });
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
