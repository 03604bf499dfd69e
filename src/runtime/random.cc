#include "runtime/random.h"

#include <cmath>

namespace ein {

int64_t philox(int64_t key, int64_t address) {
  constexpr uint64_t kMultiplier = 0xD2B74407B1CE6E93ull, kWeyl = 0x9E3779B97F4A7C15ull;
  auto k = static_cast<uint64_t>(key), x = static_cast<uint64_t>(address);
  uint64_t y = 0;
  for (int round = 0; round < 10; ++round) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(kMultiplier) * x;
    x = static_cast<uint64_t>(product >> 64) ^ k ^ y;
    y = static_cast<uint64_t>(product);
    k += kWeyl;
  }
  return static_cast<int64_t>(x);
}

float uniform_of(int64_t bits) {
  return static_cast<float>(static_cast<uint64_t>(bits) >> 40) * 0x1p-24f;
}

float normal_of(int64_t bits) {
  constexpr double kTwoPi = 6.283185307179586;
  auto unit = [](int64_t b) {
    return (static_cast<double>(static_cast<uint64_t>(b) >> 11) + 0.5) * 0x1p-53;
  };
  double radius = std::sqrt(-2 * std::log(unit(bits)));
  return static_cast<float>(radius * std::cos(kTwoPi * unit(philox(bits, 1))));
}

}  // namespace ein
