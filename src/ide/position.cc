#include "ide/position.h"

#include <algorithm>
#include <charconv>

namespace ein::ide {
namespace {

// The length in bytes of the character at `at`: 1 to 4, or 0 for an invalid byte.
uint32_t length_at(std::string_view s, size_t at) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  uint32_t n = lead >= 0xC2 && lead < 0xE0   ? 2
               : (lead & 0xF0) == 0xE0       ? 3
               : lead >= 0xF0 && lead < 0xF5 ? 4
                                             : 0;
  for (uint32_t i = 1; i < n; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  unsigned second = byte(at + 1);
  bool broken = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
                (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
  return broken ? 0 : n;
}

struct Step {
  uint32_t bytes, units;
};
Step step_at(std::string_view s, size_t at, Units units) {
  uint32_t n = length_at(s, at);
  if (n == 0) return {1, 1};
  if (units == Units::Utf8) return {n, n};
  return {n, n == 4 ? 2u : 1u};
}

}  // namespace

Lines::Lines(std::string_view text) : text_(text), starts_{0} {
  unsigned char all = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    all |= static_cast<unsigned char>(text[i]);
    bool ends =
        text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
    if (ends) starts_.push_back(static_cast<uint32_t>(i + 1));
  }
  ascii_ = all < 0x80;
}

Position Lines::position(uint32_t offset, Units units) const {
  offset = std::min(offset, static_cast<uint32_t>(text_.size()));
  auto line = std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin() - 1;
  Position out{static_cast<uint32_t>(line), 0};
  if (ascii_) out.character = offset - starts_[out.line];
  for (uint32_t at = starts_[out.line]; at < offset && !ascii_;) {
    Step s = step_at(text_, at, units);
    if (at + s.bytes > offset) break;  // inside a character: go to its beginning
    at += s.bytes;
    out.character += s.units;
  }
  return out;
}

uint32_t Lines::offset(Position p, Units units) const {
  if (p.line >= starts_.size()) return static_cast<uint32_t>(text_.size());
  uint32_t at = starts_[p.line];
  uint32_t end =
      p.line + 1 < starts_.size() ? starts_[p.line + 1] : static_cast<uint32_t>(text_.size());
  while (end > at && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  for (uint32_t left = p.character; at < end && left > 0;) {
    Step s = step_at(text_, at, units);
    if (s.units > left) break;  // inside a surrogate pair: go in front of it
    at += s.bytes;
    left -= s.units;
  }
  return std::min(at, end);
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    uint32_t n = length_at(text, i);
    if (n == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
    } else {
      out += text.substr(i, n);
      i += n;
    }
  }
  return out;
}

std::string whole_pairs(std::string json) {
  auto unit = [&](size_t at) {  // the unit of `\\uXXXX`, or 0 if there is none
    if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return 0u;
    unsigned value = 0;
    auto [end, error] = std::from_chars(json.data() + at + 2, json.data() + at + 6, value, 16);
    return error == std::errc() && end == json.data() + at + 6 ? value : 0u;
  };
  auto high = [](unsigned u) { return u >= 0xD800 && u < 0xDC00; };
  auto low = [](unsigned u) { return u >= 0xDC00 && u < 0xE000; };
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '\\') continue;
    unsigned u = unit(i);
    if (high(u) && low(unit(i + 6))) {
      i += 11;
    } else if (high(u) || low(u)) {
      json.replace(i + 2, 4, "fffd");
      i += 5;
    } else {
      ++i;
    }
  }
  return json;
}

}  // namespace ein::ide
