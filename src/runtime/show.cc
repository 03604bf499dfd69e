#include "runtime/show.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

namespace ein {
namespace {

constexpr int64_t kShownWhole = 1000;  // elements
constexpr int64_t kEnds = 3;           // shown at each end of a summarised coordinate

std::string float_text(double v, DType type) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s =
      type == DType::F64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

struct Nest {
  const Tensor& t;
  const std::function<std::string(int64_t)>& element;
  bool summarise;
  bool rows;  // a line per row

  std::string text(size_t k, int64_t offset) const {
    if (k == t.rank()) return element(offset);
    int64_t n = t.shape()[k], stride = 1;
    for (size_t j = k + 1; j < t.rank(); ++j) stride *= t.shape()[j];
    std::string separator = ", ";
    if (rows && k + 1 < t.rank()) separator = ",\n" + std::string(k + 1, ' ');
    std::string out = "[";
    bool skips = summarise && n > 2 * kEnds + 1;
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out += separator;
      if (skips && i == kEnds) {
        out += "...";
        i = n - kEnds - 1;
        continue;
      }
      out += text(k + 1, offset + i * stride);
    }
    return out + "]";
  }
};

}  // namespace

std::string check_format(const std::string& format, DType dtype) {
  if (format.empty()) return "";
  size_t i = 0;
  if (format[i] == '.') {
    size_t digits = ++i;
    while (i < format.size() && format[i] >= '0' && format[i] <= '9') ++i;
    if (i == digits || i - digits > 2) return "a precision is one or two digits after the point";
  }
  if (i + 1 < format.size()) return "a specifier is a precision and one letter, as in `.4f`";
  char kind = i < format.size() ? format[i] : 'g';
  if (kind == 'd') return is_float(dtype) || i > 0 ? "`d` is for integers" : "";
  if (kind != 'f' && kind != 'e' && kind != 'g') return "the letter is one of f, e, g, d";
  return is_float(dtype) ? "" : "a precision is for floats";
}

std::string show_scalar(const Tensor& t, int64_t i, const std::string& format) {
  if (t.dtype() == DType::Bool) return t.get_int(i) ? "true" : "false";
  if (!is_float(t.dtype())) return std::to_string(t.get_int(i));
  double v = t.get_float(i);
  if (format.empty() || !std::isfinite(v)) return float_text(v, t.dtype());
  return fmt::format(fmt::runtime("{:" + format + "}"), v);
}

std::string show(const Tensor& t, const std::vector<std::string>& coords,
                 const std::string& format) {
  if (t.rank() == 0) return show_scalar(t, 0, format);
  std::vector<std::string> head;
  for (size_t k = 0; k < t.rank(); ++k) {
    std::string n = std::to_string(t.shape()[k]);
    head.push_back(coords[k].empty() ? n : coords[k] + ": " + n);
  }
  std::function<std::string(int64_t)> element = [&](int64_t i) {
    return show_scalar(t, i, format);
  };
  Nest nest{t, element, t.size() > kShownWhole, true};
  return fmt::format("[{}]{}{}", fmt::join(head, ", "), t.rank() == 1 ? " " : "\n",
                     nest.text(0, 0));
}

std::string show_json(const Tensor& t, const std::vector<std::string>& coords) {
  std::vector<std::string> names;
  for (const std::string& c : coords) names.push_back(c.empty() ? "null" : "\"" + c + "\"");
  std::function<std::string(int64_t)> element = [&](int64_t i) {
    if (!is_float(t.dtype()) || std::isfinite(t.get_float(i))) return show_scalar(t, i);
    return "\"" + show_scalar(t, i) + "\"";
  };
  Nest nest{t, element, false, false};
  return fmt::format(R"({{"dtype": "{}", "coords": [{}], "shape": [{}], "data": {}}})",
                     name_of(t.dtype()), fmt::join(names, ", "), fmt::join(t.shape(), ", "),
                     nest.text(0, 0));
}

}  // namespace ein
