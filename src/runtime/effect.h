// What a program does besides computing values: lines it prints, what it asserts, files it saves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

struct Effect {
  static constexpr uint32_t kNoValue = ~uint32_t{0};
  enum class Kind : uint8_t { Print, Assert, Save, Write } kind = Kind::Print;
  struct Piece {
    std::string text;                 // Save: the name the value has in the file
    uint32_t value = kNoValue;        // a value by its number; none for text
    std::vector<std::string> coords;  // of the value; empty where there is no name
    std::string format;
    enum class Join : uint8_t { None, Open, Close } join = Join::None;  // as in core::Piece
    uint32_t rank = 0;
  };
  uint32_t cond = kNoValue;  // Assert: every cell must be true
  std::vector<Piece>
      pieces;          // Print: the line; Assert: the message; Save: the values; Write: the text
  std::string path;    // Save, Write
  bool error = false;  // Print: on standard error
  std::string end = "\n";  // Print: what follows the line
  Span span;
};

// Performs an effect. `value` gives values by their numbers; `write` receives what is printed.
std::optional<RuntimeError> perform(const Effect& e,
                                    const std::function<const Tensor&(uint32_t)>& value,
                                    const std::function<void(const std::string&)>& write);

}  // namespace ein
