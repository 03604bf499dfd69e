// Which characters may stand where: names, ordinary text, and characters that people type (or
// paste) for something the language spells in ASCII. Each function looks at the start of `text`.
#pragma once

#include <optional>
#include <string_view>

namespace ein::ast {

size_t character_size(std::string_view text);  // bytes; 1 for a byte that is not UTF-8
size_t name_start(std::string_view text);      // bytes of a character that begins a name, else 0
size_t name_continue(std::string_view text);   // bytes of a character that continues one, else 0
bool is_ordinary(std::string_view text);       // may begin a token, a comment or blank space

struct LookAlike {
  size_t size;             // bytes
  std::string_view name;   // "the character `×`"
  std::string_view meant;  // "*", or empty
};
std::optional<LookAlike> look_alike(std::string_view text);

}  // namespace ein::ast
