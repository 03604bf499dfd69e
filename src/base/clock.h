// Time that passes, for measuring.
#pragma once

#include <chrono>
#include <cstdint>

namespace ein {

inline int64_t now_nanoseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

inline double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace ein
