#include "syntax/characters.h"

namespace ein::ast {

namespace {

struct Decoded {
  char32_t value;  // 0 when the bytes are not UTF-8
  size_t size;
};

Decoded decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return {0, 1};
  size_t size = byte(0) < 0x80   ? 1
                : byte(0) < 0xC2 ? 0
                : byte(0) < 0xE0 ? 2
                : byte(0) < 0xF0 ? 3
                : byte(0) < 0xF5 ? 4
                                 : 0;
  if (size == 0 || size > text.size()) return {0, 1};
  if (size == 1) return {byte(0), 1};
  char32_t value = byte(0) & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {0, 1};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  return {value, size};
}

// Letters of the scripts that formulas are written in. A full table of Unicode letters would be
// larger than this lexer; another script can be added here when someone asks.
bool is_letter(char32_t c) {
  auto in = [c](char32_t lo, char32_t hi) { return c >= lo && c <= hi; };
  if (in('a', 'z') || in('A', 'Z') || c == '_') return true;
  if (c < 0x80) return false;
  return c == 0xAA || c == 0xB5 || c == 0xBA || (in(0xC0, 0x24F) && c != 0xD7 && c != 0xF7) ||
         in(0x370, 0x373) || in(0x376, 0x377) || c == 0x37F || (in(0x386, 0x3FF) && c != 0x387) ||
         in(0x400, 0x52F) || in(0x5D0, 0x5EA) || in(0x620, 0x64A) || in(0x904, 0x939) ||
         in(0x1E00, 0x1FBC) || in(0x2100, 0x2138) || in(0x3041, 0x3096) || in(0x30A1, 0x30FA) ||
         in(0x3400, 0x9FFF) || in(0xAC00, 0xD7A3);
}

bool continues(char32_t c) {
  bool subscript = c >= 0x2080 && c <= 0x209C;
  bool combining = c >= 0x300 && c <= 0x36F;  // x̂, ȳ typed as two characters
  return is_letter(c) || (c >= '0' && c <= '9') || subscript || combining;
}

constexpr struct {
  std::string_view text, name, meant;
} kLookAlikes[] = {
    {"×", "the character `×`", "*"},
    {"·", "the character `·`", "*"},
    {"÷", "the character `÷`", "/"},
    {"−", "the minus sign U+2212", "-"},
    {"–", "the dash U+2013", "-"},
    {"—", "the dash U+2014", "-"},
    {"≤", "the character `≤`", "<="},
    {"≥", "the character `≥`", ">="},
    {"≠", "the character `≠`", "!="},
    {"→", "the character `→`", "->"},
    {"⇒", "the character `⇒`", "=>"},
    {"…", "the character `…`", "..."},
    {"∂", "the character `∂`", "@"},
    {"∧", "the character `∧`", "&&"},
    {"∨", "the character `∨`", "||"},
    {"¬", "the character `¬`", "!"},
    {"，", "the wide comma", ","},
    {"；", "the wide semicolon", ";"},
    {"（", "the wide parenthesis", "("},
    {"）", "the wide parenthesis", ")"},
    {"“", "the quotation mark `“`", "\""},
    {"”", "the quotation mark `”`", "\""},
    {"\xC2\xA0", "the non-breaking space", " "},
    {"'", "`'`", "\""},
    {"`", "a backtick", ""},
    {"$", "`$`", ""},
    {"\\", "`\\`", ""},
};

}  // namespace

size_t character_size(std::string_view text) { return decode(text).size; }

size_t name_start(std::string_view text) {
  Decoded c = decode(text);
  return is_letter(c.value) ? c.size : 0;
}

size_t name_continue(std::string_view text) {
  Decoded c = decode(text);
  return continues(c.value) ? c.size : 0;
}

bool is_ordinary(std::string_view text) {
  Decoded c = decode(text);
  if (c.value >= 0x80) return is_letter(c.value) || look_alike(text).has_value();
  return c.value >= 0x20 ? c.value != 0x7F : c.value == '\n' || c.value == '\t' || c.value == '\r';
}

std::optional<LookAlike> look_alike(std::string_view text) {
  for (const auto& entry : kLookAlikes) {
    if (text.substr(0, entry.text.size()) == entry.text) {
      return LookAlike{entry.text.size(), entry.name, entry.meant};
    }
  }
  return std::nullopt;
}

}  // namespace ein::ast
