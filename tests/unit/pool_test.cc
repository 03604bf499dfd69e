// Loops that threads share, and where buffers lie.
#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "runtime/block.h"
#include "runtime/contract.h"
#include "runtime/layout.h"
#include "runtime/team.h"

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

// Takes a time that nobody foresees, so that threads steal from each other in any order.
void dawdle(std::minstd_rand& random) {
  auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 30);
  while (std::chrono::steady_clock::now() < end) {}
}

TEST(Pool, StolenChunksRunOnce) {
  std::atomic<int> on_others{0};
  for (int count : {2, 3, 7, 16}) {
    Threads with(count);
    for (int64_t chunks : {2, 3, 15, 16, 17, 64, 333}) {
      std::vector<std::atomic<int>> ran(static_cast<size_t>(chunks));
      for_each_chunk(chunks, [&](int64_t chunk, int worker) {
        std::minstd_rand random(static_cast<unsigned>(chunk * 7 + count));
        // The first part takes longest: whoever is done takes from it.
        if (chunk < chunks / count) dawdle(random);
        dawdle(random);
        on_others += worker != 0;
        ++ran[static_cast<size_t>(chunk)];
      });
      for (const auto& times : ran) ASSERT_EQ(times, 1) << count << " threads, " << chunks;
    }
  }
  EXPECT_GT(on_others, 0);
}

TEST(Pool, MoreChunksThanAWordCounts) {
  Threads with(3);
  constexpr int64_t count = (int64_t{1} << 20) + 12345;
  std::vector<uint8_t> ran(count);
  for_each_chunk(count, [&](int64_t chunk, int) { ++ran[static_cast<size_t>(chunk)]; });
  EXPECT_EQ(std::count(ran.begin(), ran.end(), 1), count);
}

TEST(Pool, NoMoreThreadsThanALoopIsWorth) {
  Threads with(7);
  std::atomic<int> highest{0};
  auto note = [&](int64_t, int worker) {
    int seen = highest;
    while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {}
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  };
  for_each_chunk(100, note, 1);
  EXPECT_EQ(highest, 0);
  for_each_chunk(100, note, 3);
  EXPECT_LT(highest, 3);
  {
    ThreadLimit limit(2);
    highest = 0;
    for_each_chunk(100, note);
    EXPECT_LT(highest, 2);
  }
}

// Every loop of every caller, with loops inside, limits and pauses in which workers fall asleep.
TEST(Pool, CallersSideBySide) {
  Threads with(5);
  std::atomic<int64_t> wrong{0};
  auto caller = [&](unsigned seed) {
    std::minstd_rand random(seed);
    ThreadLimit limit(static_cast<int>(random() % 6));
    for (int round = 0; round < 300; ++round) {
      auto chunks = static_cast<int64_t>(random() % 40);
      std::vector<int> ran(static_cast<size_t>(chunks));
      std::atomic<int64_t> inner{0};
      for_each_chunk(chunks, [&](int64_t chunk, int) {
        ++ran[static_cast<size_t>(chunk)];
        for_each_chunk(3, [&](int64_t, int) { ++inner; });
      });
      wrong += inner != 3 * chunks || std::count(ran.begin(), ran.end(), 1) != chunks;
      if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  };
  std::vector<std::thread> callers;
  for (unsigned seed = 1; seed <= 4; ++seed) callers.emplace_back(caller, seed);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, FailuresOfCallersStayTheirOwn) {
  Threads with(7);
  std::atomic<int> wrong{0};
  auto caller = [&](int64_t first) {
    NativeFailure failure;
    NativeContext context;
    context.failure = &failure;
    std::vector<NativeFailure> failures(7);
    std::vector<NativeContext> workers(7, context);
    for (size_t w = 0; w < 7; ++w) workers[w].failure = &failures[w];
    context.workers = workers.data();
    auto fails = [](const NativeContext* own, void* closure, int64_t lo, int64_t hi, int64_t) {
      std::minstd_rand random(static_cast<unsigned>(lo));
      dawdle(random);
      for (int64_t i = lo; i < hi; ++i) {
        if (i < *static_cast<int64_t*>(closure) || i % 5 != 0) continue;
        own->failure->site = i;
        return int32_t{1};
      }
      return int32_t{0};
    };
    for (int i = 0; i < 20; ++i) {
      failure.site = -1;
      int32_t failed = native_parallel(&context, fails, &first, 0, 500, 7);
      wrong += failed != 1 || failure.site != first;
    }
  };
  std::vector<std::thread> callers;
  for (int64_t first : {0, 35, 250, 495}) callers.emplace_back(caller, first);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, OtherNumbersOfThreadsWhileLoopsRun) {
  Threads with(2);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread caller([&] {
    ThreadLimit limit(3);
    while (!stop) {
      std::atomic<int> ran{0};
      for_each_chunk(20, [&](int64_t, int) { ++ran; });
      wrong += ran != 20;
    }
  });
  for (int i = 0; i < 50; ++i) {
    set_threads(1 + i % 6);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  stop = true;
  caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, AForkedProcessHasThreadsOfItsOwn) {
  Threads with(3);
  std::atomic<int> ran{0};
  auto count = [&](int64_t, int) { ++ran; };
  for_each_chunk(50, count);
  pid_t child = fork();
  if (child == 0) {
    for_each_chunk(50, count);
    _exit(ran == 100 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for_each_chunk(50, count);
  EXPECT_EQ(ran, 100);
}

// The frame of a call: contexts for so many workers.
struct Contexts {
  explicit Contexts(int count) : failures(static_cast<size_t>(count)) {
    context.failure = &failure;
    all.assign(failures.size(), context);
    for (size_t w = 0; w < all.size(); ++w) all[w].failure = &failures[w];
    if (count > 1) context.workers = all.data();
  }
  NativeFailure failure;
  std::vector<NativeFailure> failures;
  std::vector<NativeContext> all;
  NativeContext context;
};

// A recurrence: x[t, i] = x[t − 1, i − 1] + x[t − 1, i + 1] + (the sum over x[t − 1]) mod 1000, in two
// shared loops a step, and a third that needs no meeting with the second.
struct Steps {
  int64_t steps, cells;
  std::vector<int64_t> now, next, other;
  std::vector<int64_t> parts = std::vector<int64_t>(300);
  int64_t fail_at = -1;  // in this step chunks fail
  int64_t stop_at = -1;  // in this step rank 0 stops

  Steps(int64_t s, int64_t n)
      : steps(s), cells(n), now(static_cast<size_t>(n)), next(now), other(now) {
    for (size_t i = 0; i < now.size(); ++i) now[i] = static_cast<int64_t>(i % 7);
  }
};
constexpr int64_t kGrain = 10;

struct StepLoop {
  Steps* all;
  int64_t sum;
  int64_t step;
};

int32_t add_parts(const NativeContext*, void* closure, int64_t lo, int64_t hi, int64_t chunk) {
  Steps& s = *static_cast<StepLoop*>(closure)->all;
  int64_t sum = 0;
  for (int64_t i = lo; i < hi; ++i) sum += s.now[static_cast<size_t>(i)];
  s.parts[static_cast<size_t>(chunk)] = sum;
  return 0;
}

int32_t compute_next(const NativeContext* context, void* closure, int64_t lo, int64_t hi, int64_t) {
  auto& loop = *static_cast<StepLoop*>(closure);
  Steps& s = *loop.all;
  std::minstd_rand random(static_cast<unsigned>(lo + loop.step * 977));
  if (random() % 8 == 0) dawdle(random);
  for (int64_t i = lo; i < hi; ++i) {
    if (loop.step == s.fail_at && i >= s.cells / 2) {
      context->failure->site = i;
      return 1;
    }
    auto at = [&](int64_t k) { return s.now[static_cast<size_t>((k + s.cells) % s.cells)]; };
    s.next[static_cast<size_t>(i)] = (at(i - 1) + at(i + 1) + loop.sum) % 1000;
  }
  return 0;
}

int32_t compute_other(const NativeContext*, void* closure, int64_t lo, int64_t hi, int64_t) {
  auto& loop = *static_cast<StepLoop*>(closure);
  Steps& s = *loop.all;
  for (int64_t i = lo; i < hi; ++i)
    s.other[static_cast<size_t>(i)] += s.now[static_cast<size_t>(i)];
  return 0;
}

int32_t run_steps(const NativeContext* context, void* closure) {
  Steps& s = *static_cast<Steps*>(closure);
  auto meet = [&] {
    if (native_gather(context) != 0) return true;
    native_release(context);
    return false;
  };
  for (int64_t t = 0; t < s.steps; ++t) {
    if (native_gather(context) != 0) return 1;
    if (context->rank == 0 && t == s.stop_at) {
      context->failure->site = -t;
      return 1;
    }
    native_release(context);
    StepLoop loop{&s, 0, t};
    native_team_loop(context, add_parts, &loop, 0, s.cells, kGrain);
    if (meet()) return 1;
    for (int64_t k = 0; k < (s.cells + kGrain - 1) / kGrain; ++k)
      loop.sum += s.parts[static_cast<size_t>(k)];
    if (int32_t failed = native_team_loop(context, compute_next, &loop, 0, s.cells, kGrain))
      return failed;
    native_team_loop(context, compute_other, &loop, 0, s.cells, kGrain);
    if (meet()) return 1;
    if (context->rank == 0) s.now.swap(s.next);
  }
  return 0;
}

TEST(Team, StepsHaveTheSameValuesAndTheSameFailures) {
  for (int64_t cells : {5, 35, 170, 800}) {
    Steps want(40, cells);
    Contexts alone(1);
    ASSERT_EQ(native_team(&alone.context, run_steps, &want, 16), 0);
    EXPECT_NE(want.now, Steps(40, cells).now);
    for (int count : {2, 3, 7, 16}) {
      Threads with(count);
      Contexts frame(count);
      Steps s(40, cells);
      ASSERT_EQ(native_team(&frame.context, run_steps, &s, 16), 0);
      EXPECT_EQ(s.now, want.now) << count << " threads, " << cells << " cells";
      EXPECT_EQ(s.other, want.other);
      Steps failing(40, cells);
      failing.fail_at = 17;
      ASSERT_EQ(native_team(&frame.context, run_steps, &failing, 16), 1);
      EXPECT_EQ(frame.failure.site, cells / 2);
      Steps stopped(40, cells);
      stopped.stop_at = 23;
      ASSERT_EQ(native_team(&frame.context, run_steps, &stopped, 16), 1);
      EXPECT_EQ(frame.failure.site, -23);
    }
  }
}

TEST(Team, TeamsOfCallersSideBySide) {
  Threads with(5);
  Steps want(30, 200);
  Contexts alone(1);
  ASSERT_EQ(native_team(&alone.context, run_steps, &want, 16), 0);
  std::atomic<int> wrong{0};
  auto caller = [&] {
    for (int i = 0; i < 5; ++i) {
      Contexts frame(5);
      Steps s(30, 200);
      wrong += native_team(&frame.context, run_steps, &s, 3) != 0 || s.now != want.now;
      std::atomic<int> ran{0};
      for_each_chunk(9, [&](int64_t, int) { ++ran; });
      wrong += ran != 9;
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(caller);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

// x[t] = w · x[t − 1] / 8, a product in each step, which all members compute together.
struct Products {
  int64_t m, n, k, batches;
  std::vector<float> w, x, y;
};

int32_t run_products(const NativeContext* context, void* closure) {
  auto& s = *static_cast<Products*>(closure);
  const int64_t shape[] = {1, 1,   1,   1, s.batches, 0, s.k * s.n, s.m * s.n, s.m, s.k,
                           0, s.n, s.n, 0, 1,         1, s.k,       1,         s.n, 0};
  for (int t = 0; t < 3; ++t) {
    contract_f32(Level::Plain)(shape, s.w.data(), s.x.data(), s.y.data());
    all_done();
    contract_f32(Level::Plain)(shape, s.w.data(), s.x.data(), s.y.data());  // the same again
    all_done();
    for_each_chunk(20, [&](int64_t chunk, int) {
      auto cells = std::min(s.x.size(), s.y.size());
      for (size_t i = static_cast<size_t>(chunk); i < cells; i += 20) s.x[i] = s.y[i] / 8;
    });
    if (native_gather(context) != 0) return 1;
    native_release(context);
  }
  return 0;
}

TEST(Team, ProductsOfATeamHaveTheSameBits) {
  for (Products size : {Products{96, 128, 96, 1, {}, {}, {}},
                        {30, 700, 200, 1, {}, {}, {}},
                        {4, 5, 40000, 1, {}, {}, {}},
                        {40, 40, 40, 20, {}, {}, {}},
                        {3, 3, 3, 1, {}, {}, {}}}) {
    auto fresh = [&] {
      Products s = size;
      s.w.resize(static_cast<size_t>(s.m * s.k));
      s.x.resize(static_cast<size_t>(s.batches * s.k * s.n));
      s.y.resize(static_cast<size_t>(s.batches * s.m * s.n));
      for (size_t i = 0; i < s.w.size(); ++i)
        s.w[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
      for (size_t i = 0; i < s.x.size(); ++i) s.x[i] = static_cast<float>(i * 53 % 97) / 97 - 0.5f;
      return s;
    };
    Products want = fresh();
    {
      Threads with(1);
      Contexts alone(1);
      ASSERT_EQ(native_team(&alone.context, run_products, &want, 16), 0);
    }
    for (int count : {2, 3, 7, 16}) {
      Threads with(count);
      Contexts frame(count);
      Products s = fresh();
      ASSERT_EQ(native_team(&frame.context, run_products, &s, 16), 0);
      size_t bytes = s.y.size() * sizeof(float);
      EXPECT_EQ(std::memcmp(s.y.data(), want.y.data(), bytes), 0) << size.n << ", " << count;
    }
  }
}

// Against the definition, and the same bits for any number of threads.
TEST(Pool, ProductsHaveTheSameBits) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> any(-1, 1);
  struct Size {
    int64_t batches, m, n, k;
  };
  for (Size s : {Size{1, 128, 192, 160},
                 {1, 37, 41, 300},
                 {1, 300, 70, 33},
                 {1, 16, 2100, 130},
                 {20, 33, 20, 40},
                 {3, 150, 90, 64},
                 {1, 5, 7, 40000}}) {
    auto cells = [&](int64_t count) {
      std::vector<float> out(static_cast<size_t>(count));
      for (float& x : out) x = any(random);
      return out;
    };
    std::vector<float> a = cells(s.batches * s.m * s.k), b = cells(s.batches * s.k * s.n), first;
    const int64_t shape[] = {1, 1,   1,   1, s.batches, s.m * s.k, s.k * s.n, s.m * s.n, s.m, s.k,
                             0, s.n, s.n, 0, 1,         1,         s.k,       1,         s.n, 0};
    for (int count : {1, 2, 3, 7, 16}) {
      Threads with(count);
      std::vector<float> out(static_cast<size_t>(s.batches * s.m * s.n), -1);
      contract_f32(Level::Plain)(shape, a.data(), b.data(), out.data());
      if (count == 1) {
        first = out;
        for (size_t at : {size_t{0}, out.size() / 3, out.size() - 1}) {
          auto i = static_cast<int64_t>(at);
          int64_t batch = i / (s.m * s.n), row = i / s.n % s.m, column = i % s.n;
          double sum = 0;
          for (int64_t k = 0; k < s.k; ++k) {
            sum += static_cast<double>(a[static_cast<size_t>((batch * s.m + row) * s.k + k)]) *
                   static_cast<double>(b[static_cast<size_t>((batch * s.k + k) * s.n + column)]);
          }
          EXPECT_NEAR(out[at], sum, 2e-5 * std::sqrt(static_cast<double>(s.k)));
        }
      }
      EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size() * sizeof(float)), 0)
          << s.m << " " << s.n << " " << s.k << " with " << count << " threads";
    }
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
