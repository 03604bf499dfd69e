// Loops that threads share, and where buffers lie.
#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "runtime/block.h"
#include "runtime/layout.h"

namespace ein {
namespace {

struct Threads {  // for the time of a test
  explicit Threads(int count) : before(threads()) { set_threads(count); }
  ~Threads() { set_threads(before); }
  int before;
};

TEST(Pool, EveryChunkRunsOnceAndWorkersAreTheirOwn) {
  for (int count : {1, 2, 3}) {
    Threads with(count);
    std::vector<std::atomic<int>> ran(1000);
    std::vector<std::atomic<int>> busy(3);
    std::atomic<bool> shared_worker{false};
    for_each_chunk(1000, [&](int64_t chunk, int worker) {
      if (++busy[static_cast<size_t>(worker)] != 1) shared_worker = true;
      ++ran[static_cast<size_t>(chunk)];
      --busy[static_cast<size_t>(worker)];
    });
    for (const auto& times : ran) EXPECT_EQ(times, 1);
    EXPECT_FALSE(shared_worker);
  }
}

TEST(Pool, ALoopInsideAChunkRunsOnTheSpot) {
  Threads with(2);
  std::atomic<int> sum{0};
  for_each_chunk(4, [&](int64_t, int) {
    for_each_chunk(5, [&](int64_t inner, int) { sum += static_cast<int>(inner); });
  });
  EXPECT_EQ(sum, 4 * 10);
}

// Fails at every iteration from 700 on, with that iteration as its site.
int32_t fails_late(const NativeContext* context, void*, int64_t lo, int64_t hi, int64_t) {
  for (int64_t i = lo; i < hi; ++i) {
    if (i < 700) continue;
    context->failure->site = i;
    return 1;
  }
  return 0;
}

TEST(Pool, TheFirstFailureIsTheOneThatIsReported) {
  for (int count : {1, 2, 3}) {
    Threads with(count);
    NativeFailure failure;
    NativeContext context;
    context.failure = &failure;
    std::vector<NativeFailure> failures(3);
    std::vector<NativeContext> workers(3, context);
    for (size_t w = 0; w < 3; ++w) workers[w].failure = &failures[w];
    if (count > 1) context.workers = workers.data();
    EXPECT_EQ(native_parallel(&context, fails_late, nullptr, 0, 1000, 7), 1);
    EXPECT_EQ(failure.site, 700);
    EXPECT_EQ(native_parallel(&context, fails_late, nullptr, 0, 700, 7), 0);
    EXPECT_EQ(native_parallel(&context, fails_late, nullptr, 5, 5, 7), 0);
  }
}

TEST(Memory, BuffersThatNeverMeetShareAndOthersDoNot) {
  std::vector<size_t> bytes{1000, 2000, 500, 64, 0};
  std::vector<Lifetime> lives{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 3}};
  Layout layout = lay_out(bytes, lives);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(layout.at[i] % 64, 0u);
    EXPECT_LE(layout.at[i] + bytes[i], layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool apart =
          layout.at[i] + bytes[i] <= layout.at[j] || layout.at[j] + bytes[j] <= layout.at[i];
      EXPECT_TRUE(apart || !lives[i].meets(lives[j])) << i << " and " << j;
    }
  }
  EXPECT_LT(layout.bytes, 1000u + 2000 + 500 + 64);
  EXPECT_THROW(lay_out({SIZE_MAX / 8, SIZE_MAX / 8, SIZE_MAX / 8}, {{0, 1}, {0, 1}, {0, 1}}),
               std::bad_alloc);
}

TEST(Memory, AFreedBlockIsUsedAgain) {
  constexpr size_t size = size_t{8} << 20;
  const std::byte* first = nullptr;
  {
    Block block(size);
    first = block.at();
  }
  Block again(size);
  EXPECT_EQ(again.at(), first);
  EXPECT_THROW(Block(SIZE_MAX / 2), std::bad_alloc);
}

}  // namespace
}  // namespace ein
