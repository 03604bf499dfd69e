// Private to the pool: the chunks of a loop in generated code, and the first chunk that fails.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/pool.h"

namespace ein {

struct NativeChunks {
  NativeBody body;
  void* closure;
  int64_t lo, hi, grain;

  int64_t count() const { return (hi - lo - 1) / grain + 1; }
  int32_t run(const NativeContext* with, int64_t i) const {
    int64_t from = lo + i * grain;
    return body(with, closure, from, std::min(hi - from, grain) + from, i);
  }
};

// The failure of the first chunk in order. It does not depend on the order in which chunks run,
// because all chunks before a failed one are always run.
class FirstFailure {
 public:
  void run(const NativeChunks& chunks, const NativeContext* with, int64_t i) {
    if (i > first_.load(std::memory_order_relaxed)) return;
    if (chunks.run(with, i) == 0) return;
    std::lock_guard lock(recording_);
    if (i >= first_.load(std::memory_order_relaxed)) return;
    first_.store(i, std::memory_order_relaxed);
    failure_ = *with->failure;
  }
  // When all have run: 1 if there was one.
  int32_t copy_to(NativeFailure& out) const {
    if (first_.load(std::memory_order_relaxed) == INT64_MAX) return 0;
    out = failure_;
    return 1;
  }

 private:
  std::atomic<int64_t> first_{INT64_MAX};
  std::mutex recording_;
  NativeFailure failure_;
};

}  // namespace ein
