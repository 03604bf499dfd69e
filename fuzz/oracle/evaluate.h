// What a program means, by brute force: every cell is computed from its clause when it is needed,
// every request by evaluating its numerator again with an infinitesimal added to one cell. Slow and
// short; it follows the rules of the language, decision by decision, and shares nothing with the
// compiler.
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
  // The smallest relative difference between the two sides of a decision; ties of data do not
  // count.
  Real smallest_gap = 1;
  bool tie = false;  // a decision between computed values that are equal, so that rounding decides
  Real largest = 0;  // the largest magnitude of any number on the way, derivatives included
  // By definition: whether some number on the way to it was not finite.
  std::vector<bool> nonfinite;
  uint64_t decisions = 0;  // a hash of all decisions
  uint64_t operations = 0;
};

// How much larger than the spread of noisy runs a difference may be.
inline constexpr Real kCaution = 50;

struct Noise {
  Real unit = 0;      // relative error of every operation
  Real smallest = 0;  // absolute error
  uint64_t seed = 1;
};

// The cells of all global definitions that are not inputs. With noise, every operation has an error
// of up to that much; the spread of the results then shows how well they are determined.
Answer evaluate(const Program& p, const Noise& noise, uint64_t most_operations);

}  // namespace oracle
