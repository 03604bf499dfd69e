// The speed of the runtime's contractions for some sizes, one line each: m n k GFLOP/s. For tune.py, which compiles
// it together with a contract.cc that has other constants.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "runtime/contract.h"
#include "runtime/pool.h"

int main() {
  ein::set_threads(1);
  auto multiply = ein::contract_f32(ein::Level::Avx512);
  const int64_t sizes[][3] = {{64, 64, 64},     {128, 512, 784},   {16, 1024, 256}, {256, 256, 256},
                              {512, 512, 512},  {1024, 1024, 1024}, {64, 64, 4096},  {2048, 2048, 64},
                              {3136, 64, 576},  {1536, 1536, 1536}};
  for (const auto& [m, n, k] : sizes) {
    auto cells = [](int64_t count) { return std::vector<float>(static_cast<size_t>(count), 0.5f); };
    std::vector<float> a = cells(m * k), b = cells(k * n), out = cells(m * n);
    const int64_t shape[] = {0, 1, 1, 1, m, k, 0, n, n, 0, 1, 1, k, 1, n, 0};
    double best = 1e9, spent = 0;
    for (int i = 0; i < 500 && spent < 0.15; ++i) {
      auto begin = std::chrono::steady_clock::now();
      multiply(shape, a.data(), b.data(), out.data());
      double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      best = std::min(best, took);
      spent += took;
    }
    std::printf("%lld %lld %lld %.1f\n", static_cast<long long>(m), static_cast<long long>(n),
                static_cast<long long>(k), 2e-9 * static_cast<double>(m * n * k) / best);
  }
}
