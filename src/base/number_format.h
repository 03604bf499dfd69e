// The format of a placeholder, `{x:>+08.3f}`: alignment, sign, zeros, width, digits, kind, each
// optional. Here is its grammar; which kinds fit which element type, and what they print, is in
// runtime/show.
#pragma once

#include <optional>
#include <string_view>

namespace ein {

struct NumberFormat {
  char align = 0;             // < > ^; 0: numbers to the right, `true` and `false` to the left
  bool plus = false;          // a sign before positive numbers too
  bool zeros = false;         // zeros between the sign and the number fill the width
  int width = 0;              // at least so many characters
  std::optional<int> digits;  // after the point; in all for `g`
  char kind = 0;              // one of kFloatKinds or kIntegerKinds; 0: as without a format

  static constexpr std::string_view kFloatKinds = "feg", kIntegerKinds = "dxb";
};

// [< > ^] [+] [0] [width] [.digits] [kind]; nothing where `text` is something else.
std::optional<NumberFormat> parse_number_format(std::string_view text);

}  // namespace ein
