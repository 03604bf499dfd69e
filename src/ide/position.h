// Positions in a text as editors count them: lines from 0, and within a line units of UTF-16 or
// bytes of UTF-8. An invalid byte counts as one unit, so that invalid texts have positions, too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ein::ide {

enum class Units : uint8_t { Utf16, Utf8 };

struct Position {
  uint32_t line = 0, character = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

// A text and the beginnings of its lines. Lines end in \n, \r\n or \r.
class Lines {
 public:
  explicit Lines(std::string_view text);
  Position position(uint32_t offset, Units units) const;
  uint32_t offset(Position p, Units units) const;  // the nearest place that exists

 private:
  std::string_view text_;
  std::vector<uint32_t> starts_;
  bool ascii_ = false;
};

// The text with every invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
// A JSON message with every lone half of a surrogate pair, such as `\ud83d`, replaced by U+FFFD.
// Clients send one if an edit cuts a character in two.
std::string whole_pairs(std::string json);

}  // namespace ein::ide
