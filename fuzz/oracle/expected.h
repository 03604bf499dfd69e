// What every route must answer, and how closely: the exact values, and how far rounding may move
// each cell, which is measured by evaluating again with an error in every operation.
#pragma once

#include "evaluate.h"

namespace oracle {

struct Expected {
  std::string name;
  Type type = Type::Float;
  bool derivative = false;  // it depends on a request
  bool nonfinite = false;   // it depends on a number that is not finite, so its
                            // derivatives mean nothing
  std::vector<int64_t> shape;
  std::vector<Real> cells, tolerance;
};

struct Prepared {
  std::vector<Expected> values;
  enum class State {
    Ready,
    Tie,     // rounding decides which way the program goes
    Range,   // numbers that the element type does not hold
    Work,    // too much work
    Invalid  // the program is wrong: a mistake of the generator
  } state = State::Ready;
  std::string why;
};

// `runs`: how often the program is evaluated with errors; 0 for a few, which suffice for most
// programs.
Prepared prepare(const Program& p, int runs = 0, uint64_t most_operations = 400000);

}  // namespace oracle
