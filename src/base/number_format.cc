#include "base/number_format.h"

namespace ein {
namespace {

constexpr size_t kMostWidth = 3, kMostDigits = 3;  // decimal places of the two numbers

// Takes the character in front if it is one of `set`; otherwise 0.
char take_one(std::string_view& text, std::string_view set) {
  if (text.empty() || set.find(text[0]) == std::string_view::npos) return 0;
  char c = text[0];
  text.remove_prefix(1);
  return c;
}

std::optional<int> take_number(std::string_view& text, size_t most) {
  std::optional<int> out;
  for (; most > 0 && !text.empty() && text[0] >= '0' && text[0] <= '9'; --most) {
    out = out.value_or(0) * 10 + (text[0] - '0');
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::optional<NumberFormat> parse_number_format(std::string_view text) {
  NumberFormat out;
  out.align = take_one(text, "<>^");
  out.plus = take_one(text, "+") != 0;
  out.zeros = take_one(text, "0") != 0;
  out.width = take_number(text, kMostWidth).value_or(0);
  if (take_one(text, ".")) {
    out.digits = take_number(text, kMostDigits);
    if (!out.digits) return std::nullopt;
  }
  out.kind = take_one(text, NumberFormat::kFloatKinds);
  if (!out.kind) out.kind = take_one(text, NumberFormat::kIntegerKinds);
  if (!text.empty()) return std::nullopt;
  return out;
}

}  // namespace ein
