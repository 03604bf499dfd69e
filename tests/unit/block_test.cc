// Memory that is kept for the next run.
#include "runtime/block.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace ein {
namespace {

TEST(Blocks, TakeThePlaceOfFreedOnes) {
  for (size_t bytes : {size_t{100} << 10, size_t{900} << 10, size_t{5} << 20}) {
    SCOPED_TRACE(bytes);
    const std::byte* at = nullptr;
    {
      Block first(bytes);
      at = first.at();
      std::memset(first.at(), 1, bytes);
    }
    Block again(bytes - 1000);  // nearly as large
    EXPECT_EQ(again.at(), at);
    Block other(bytes);  // while the first is in use
    EXPECT_NE(other.at(), at);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(other.at()) % 64, 0u);
  }
}

TEST(Blocks, OfAnySizeAreApart) {
  std::vector<Block> all;
  for (int round = 0; round < 3; ++round) {
    all.clear();
    std::set<std::pair<const std::byte*, const std::byte*>> taken;
    for (size_t bytes = 0; bytes < size_t{3} << 20; bytes = 2 * bytes + 777) {
      for (int i = 0; i < 3; ++i) {
        all.emplace_back(bytes);
        std::memset(all.back().at(), round, bytes);
        taken.insert({all.back().at(), all.back().at() + bytes});
      }
    }
    const std::byte* end = nullptr;
    for (auto [from, to] : taken) {
      EXPECT_GE(from, end);
      end = to;
    }
  }
}

}  // namespace
}  // namespace ein
