// What is asked of the passes of one compilation, and what they leave behind.
#pragma once

#include <string>
#include <vector>

namespace ein {

struct PassTime {
  std::string pass;
  double milliseconds;
};

struct Trace {
  std::string dump_after = {};  // a pass (driver/compile.h); its result is left in `dump`
  std::string dump = {};
  std::vector<PassTime> times = {};
};

}  // namespace ein
