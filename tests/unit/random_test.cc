// Random numbers: the published answer of the generator, independence of addresses, moments.
#include "runtime/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace ein {
namespace {

TEST(Random, PhiloxGivesThePublishedAnswerForZeros) {
  EXPECT_EQ(static_cast<uint64_t>(philox(0, 0)), 0xca00a0459843d731ull);
}

TEST(Random, AddressesAndKeysGiveDifferentBits) {
  std::set<int64_t> seen;
  for (int64_t key = -3; key < 3; ++key) {
    for (int64_t address = -50; address < 50; ++address) seen.insert(philox(key, address));
  }
  EXPECT_EQ(seen.size(), 600u);
}

TEST(Random, UniformIsInRangeAndLevel) {
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    float u = uniform_of(philox(1, i));
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += static_cast<double>(u) * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.005);
}

TEST(Random, NormalHasItsMoments) {
  double sum = 0, squares = 0, fourth = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    double x = normal_of(philox(2, i));
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.03);
  EXPECT_NEAR(fourth / n, 3, 0.2);
}

TEST(Random, ExtremeBitsStayFinite) {
  for (int64_t bits : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_TRUE(std::isfinite(normal_of(bits)));
    EXPECT_LT(uniform_of(bits), 1.0f);
  }
}

}  // namespace
}  // namespace ein
