// The part of the state that range inference owns.
#pragma once

#include <unordered_map>

#include "sema/state/value.h"

namespace ein::sema {

// A range to be inferred, known by its two placeholders.
struct Unknown {
  ParamId lo, hi;
  Symbol name;
  Span span;
  bool left = false;
};

struct Ranges {
  std::vector<Unknown> unknowns;               // ranges not known yet
  std::unordered_map<ParamId, CoreId> solved;  // placeholders that are known by now
  // Whether a node holds a placeholder, known or not; by node, and a node never changes.
  enum class Unsolved : uint8_t { NotLooked, No, Yes };
  std::vector<Unsolved> unsolved;
  uint32_t placeholders = 0;
};

}  // namespace ein::sema
