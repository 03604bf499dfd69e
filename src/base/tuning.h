// The numbers of tuning.def: a plan carries them, so that every decision made by one is a decision
// of the plan.
#pragma once

#include <cstdint>
#include <vector>

namespace ein {

struct Tuning {
#define EIN_TUNE(name, value, least, most, what) int64_t name = value;
#include "base/tuning.def"
  bool operator==(const Tuning&) const = default;
};

struct Tunable {
  const char* name;
  int64_t Tuning::*field;
  int64_t least, most;
  const char* what;
};

inline const std::vector<Tunable>& tunables() {
  static const std::vector<Tunable> list = {
#define EIN_TUNE(name, value, least, most, what) {#name, &Tuning::name, least, most, what},
#include "base/tuning.def"
  };
  return list;
}

}  // namespace ein
