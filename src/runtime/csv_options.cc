#include "runtime/csv_options.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "runtime/bytes.h"

namespace ein {
namespace {

constexpr DType kCsvTypes[] = {DType::Bool, DType::I8,  DType::I16,  DType::I32, DType::I64,
                               DType::U8,   DType::F16, DType::BF16, DType::F32, DType::F64};
constexpr std::pair<const char*, char> kSeparators[] = {
    {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}};

std::string without_blanks(std::string_view s) {
  size_t a = s.find_first_not_of(" \t\n\r"), b = s.find_last_not_of(" \t\n\r");
  return a == std::string_view::npos ? "" : std::string(s.substr(a, b - a + 1));
}

// The parts of a text between separators that stand outside of quotes.
std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> out{""};
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == separator && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  if (quoted) throw Malformed{"a quote in the options of the csv file is not closed"};
  for (std::string& part : out) part = without_blanks(part);
  return out;
}

// `"a ""b"""` is a "b"; a name without quotes is itself.
std::string unquoted(const std::string& s) {
  if (s.size() < 2 || s.front() != '"' || s.back() != '"') return s;
  std::string out;
  for (size_t i = 1; i + 1 < s.size(); ++i) {
    out += s[i];
    if (s[i] == '"') ++i;
  }
  return out;
}

char separator_named(const std::string& name) {
  for (auto [known, separator] : kSeparators) {
    if (name == known) return separator;
  }
  throw Malformed{
      fmt::format("`{}` is not a separator; the separators are comma, semicolon and tab", name)};
}

DType csv_type(const std::string& name) {
  for (DType t : kCsvTypes) {
    if (name == name_of(t)) return t;
  }
  throw Malformed{fmt::format("`{}` is not a type of numbers", name)};
}

}  // namespace

CsvOptions parse_csv_options(const std::string& text) {
  CsvOptions out;
  for (const std::string& part : parts_of(text, ';')) {
    if (part.empty()) continue;
    size_t equals = part.find('=');
    std::string name = without_blanks(std::string_view(part).substr(0, equals));
    std::string value = equals == std::string::npos
                            ? ""
                            : without_blanks(std::string_view(part).substr(equals + 1));
    if (part == "headings" || part == "no headings") {
      out.headings = part == "headings";
    } else if (part == "labels") {
      out.labels = true;
    } else if (name == "columns") {
      for (const std::string& column : parts_of(value, ',')) {
        out.columns.push_back(unquoted(column));
      }
    } else if (name == "missing") {
      out.missing = value;
    } else if (name == "separator") {
      out.separator = separator_named(value);
    } else if (name == "decimal" && (value == "comma" || value == "point")) {
      out.decimal_comma = value == "comma";
    } else if (name == "type") {
      out.type = csv_type(value);
    } else {
      throw Malformed{fmt::format(
          "`{}` is not an option for csv files; the options are `headings`, `no headings`, "
          "`columns = a, b`, `labels`, `missing = nan`, `separator = tab` or `decimal = comma`",
          part)};
    }
  }
  return out;
}

std::string show(const CsvOptions& o) {
  std::vector<std::string> parts;
  if (o.headings) parts.emplace_back(*o.headings ? "headings" : "no headings");
  if (!o.columns.empty()) {
    std::vector<std::string> names;
    for (const std::string& column : o.columns) {
      std::string quoted;
      for (char c : column) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
      names.push_back('"' + quoted + '"');
    }
    parts.push_back(fmt::format("columns = {}", fmt::join(names, ", ")));
  }
  if (o.labels) parts.emplace_back("labels");
  if (o.missing) parts.push_back("missing = " + *o.missing);
  for (auto [name, separator] : kSeparators) {
    if (o.separator == separator) parts.push_back(fmt::format("separator = {}", name));
  }
  if (o.decimal_comma) parts.emplace_back("decimal = comma");
  if (o.type) parts.push_back(fmt::format("type = {}", name_of(*o.type)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace ein
