// Time that passes, for measuring.
#pragma once

#include <chrono>

namespace ein {

inline double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace ein
