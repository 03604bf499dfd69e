#include "runtime/show.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "base/number_format.h"

namespace ein {
namespace {

constexpr int64_t kShownWhole = 1000;  // elements
constexpr int64_t kEnds = 3;           // shown at each end of a summarised coordinate

std::string float_text(double v, DType type, const NumberFormat& f) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  switch (f.kind) {
    case 'f': return fmt::format("{:.{}f}", v, f.digits.value_or(6));
    case 'e': return fmt::format("{:.{}e}", v, f.digits.value_or(6));
    case 'g': return fmt::format("{:.{}g}", v, f.digits.value_or(6));
    default: break;
  }
  if (f.digits) return fmt::format("{:.{}}", v, *f.digits);
  std::string s =
      type == DType::F64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string int_text(int64_t v, char kind) {
  if (kind == 'x') return fmt::format("{:x}", v);
  return kind == 'b' ? fmt::format("{:b}", v) : fmt::format("{}", v);
}

// `text` with the sign, zeros and spaces that the format asks for.
std::string filled(std::string text, const NumberFormat& f) {
  if (f.plus && text[0] != '-') text = "+" + text;
  if (text.size() >= static_cast<size_t>(f.width)) return text;
  size_t missing = static_cast<size_t>(f.width) - text.size();
  if (f.zeros && !f.align) {
    bool sign = text[0] == '-' || text[0] == '+';
    return text.insert(sign ? 1 : 0, missing, '0');
  }
  size_t left = f.align == '<' ? 0 : f.align == '^' ? missing / 2 : missing;
  return std::string(left, ' ') + text + std::string(missing - left, ' ');
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
  auto f = parse_number_format(format);
  if (!f) return fmt::format("`{}` is not a format", format);
  bool integer_kind = NumberFormat::kIntegerKinds.find(f->kind) != std::string_view::npos;
  if (is_float(dtype)) {
    if (!integer_kind) return "";
    return fmt::format("`{}` is for integers", f->kind);
  }
  if (f->digits) return "digits after a point are for floats";
  if (f->kind && !integer_kind) return fmt::format("`{}` is for floats", f->kind);
  if (dtype != DType::Bool) return "";
  if (f->kind) return fmt::format("`{}` is for integers", f->kind);
  return f->plus || f->zeros ? "signs and zeros are for numbers" : "";
}

std::string show_scalar(const Tensor& t, int64_t i, const std::string& format) {
  NumberFormat f = parse_number_format(format).value_or(NumberFormat{});
  if (t.dtype() == DType::Bool) {
    if (!f.align) f.align = '<';
    return filled(t.get_int(i) ? "true" : "false", f);
  }
  if (!is_float(t.dtype())) return filled(int_text(t.get_int(i), f.kind), f);
  double v = t.get_float(i);
  if (!std::isfinite(v)) f.zeros = false;
  return filled(float_text(v, t.dtype(), f), f);
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
