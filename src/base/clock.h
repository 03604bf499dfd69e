// Time that passes, for measuring.
#pragma once

#include <chrono>
#include <cstdint>

namespace ein {

inline int64_t now_nanoseconds() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

inline double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace ein
