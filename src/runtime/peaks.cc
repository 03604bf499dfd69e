#include "runtime/peaks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace ein {
namespace {

constexpr int kSums = 12;  // independent sums: latency 4 or 5, two units, and registers to spare

// Does kSums · lanes multiply-adds per round. The sums converge, so they neither overflow nor
// become subnormal.
template <class T, int Bytes>
[[gnu::always_inline]] inline double fma_rounds(int64_t rounds) {
  using V [[gnu::vector_size(Bytes)]] = T;
  V sum[kSums], factor = V{} + T(0.5), term = V{} + T(1);
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sum[i] = V{} + static_cast<T>(i);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sum[i] = sum[i] * factor + term;
  }
  V all{};
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) all += sum[i];
  return static_cast<double>(all[0]);
}

#define EIN_ROUNDS(suffix, bytes, ...)                                                    \
  __VA_ARGS__ double rounds32_##suffix(int64_t n) { return fma_rounds<float, bytes>(n); } \
  __VA_ARGS__ double rounds64_##suffix(int64_t n) { return fma_rounds<double, bytes>(n); }
EIN_ROUNDS(avx512, 64, [[gnu::target("avx512f,fma"), gnu::optimize("O3")]])
EIN_ROUNDS(avx2, 32, [[gnu::target("avx2,fma"), gnu::optimize("O3")]])
EIN_ROUNDS(plain, 16, [[gnu::optimize("O3")]])
#undef EIN_ROUNDS

struct Rounds {
  double (*f32)(int64_t);
  double (*f64)(int64_t);
  int bytes;
};
Rounds pick() {
  if (__builtin_cpu_supports("avx512f")) return {rounds32_avx512, rounds64_avx512, 64};
  bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (fma) return {rounds32_avx2, rounds64_avx2, 32};
  return {rounds32_plain, rounds64_plain, 16};
}

// Seconds from when all threads have started until all have finished `body`.
double together(int threads, const std::function<void(int)>& body) {
  std::atomic<int> waiting = threads;
  std::vector<std::thread> others;
  auto one = [&](int number) {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) {}
    body(number);
  };
  for (int i = 1; i < threads; ++i) others.emplace_back(one, i);
  waiting.fetch_sub(1);
  while (waiting.load() > 0) {}
  auto begin = std::chrono::steady_clock::now();
  body(0);
  for (std::thread& t : others) t.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The best of a few runs: other load on the machine can only slow them down.
double best_rate(int threads, double work, const std::function<void(int)>& body) {
  double best = 0;
  for (int i = 0; i < 5; ++i) best = std::max(best, work / together(threads, body));
  return best;
}

[[gnu::optimize("O3")]] void scale(const double* __restrict x, double* __restrict y, double s,
                                   int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = s * x[i];
}

double stream_rate(int threads) {
  int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t{8} << 20);
  int64_t each = 2 * cache / static_cast<int64_t>(sizeof(double));  // so both together are 4 caches
  auto size = static_cast<size_t>(each);
  std::unique_ptr<double[]> x(new double[size]), y(new double[size]);
  auto part = [&](int t) { return each * t / threads; };
  together(threads, [&](int t) {  // pages belong to the thread that uses them
    std::fill(x.get() + part(t), x.get() + part(t + 1), 1.0);
    std::fill(y.get() + part(t), y.get() + part(t + 1), 0.0);
  });
  return best_rate(threads, 2.0 * static_cast<double>(size * sizeof(double)), [&](int t) {
    scale(x.get() + part(t), y.get() + part(t), 3.0, part(t + 1) - part(t));
  });
}

}  // namespace

Peaks measure_peaks(int threads) {
  constexpr int64_t kRounds = 1'000'000;
  Rounds rounds = pick();
  static std::atomic<double> sink;
  auto fma_rate = [&](double (*run)(int64_t), size_t size) {
    double lanes = static_cast<double>(rounds.bytes) / static_cast<double>(size);
    return best_rate(threads, 2.0 * kSums * lanes * static_cast<double>(kRounds) * threads,
                     [&](int) { sink = run(kRounds); });
  };
  Peaks out;
  out.threads = threads;
  out.fma32 = fma_rate(rounds.f32, sizeof(float));
  out.fma64 = fma_rate(rounds.f64, sizeof(double));
  out.stream = stream_rate(threads);
  return out;
}

}  // namespace ein
