// What a program means, by brute force: every cell is computed from its clause when it is asked
// for, every request by evaluating its numerator again with an infinitesimal added to the one cell.
// Slow and short; it follows the words of the language's rules, decision by decision, and shares
// nothing with the compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tree.h"

namespace oracle {

struct Computed {
  std::vector<int64_t> shape;
  std::vector<Real> cells;  // integers too
};

struct Answer {
  std::unordered_map<int, Computed> values;  // by definition
  std::string wrong;                         // the program is invalid: a read outside, a cycle
  Real smallest_gap = 1;  // between the sides of a decision, relative; ties of data do not count
  bool tie = false;       // between values that were computed, so that rounding decides
  Real largest = 0;       // magnitude of any number on the way, derivatives included
  std::vector<bool> nonfinite;  // by definition: some number on the way to it was not finite
  uint64_t decisions = 0;       // a hash of all of them
  uint64_t operations = 0;
};

inline constexpr Real kCaution = 50;  // spreads of noisy runs are multiplied by it

struct Noise {
  Real unit = 0;      // relative error of every operation
  Real smallest = 0;  // absolute error
  uint64_t seed = 1;
};

// The cells of all global definitions that are not inputs. With noise, every operation is off by up
// to that much: how far the results then differ says how well they are determined.
Answer evaluate(const Program& p, const Noise& noise, uint64_t most_operations);

}  // namespace oracle
