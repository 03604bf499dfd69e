// Threads that share loops. A loop is cut into chunks whose bounds depend on its extents alone, so
// results do not depend on the number of threads or on which thread runs which chunk. There is one
// pool for the process, started when it is first needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/native_abi.h"

namespace ein {

// How many threads share loops from now on, the caller's included; 0: as many as this process may
// use. Not while a program runs.
void set_threads(int count);
int threads();

// While it lives, loops of this thread are shared by at most `most` threads; 0: as many as there are.
class ThreadLimit {
 public:
  explicit ThreadLimit(int most);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

// Set when the system gave fewer threads: how many were asked for and how many there are, the
// caller's included.
struct Shortage {
  int wanted = 0, started = 0;  // 0: there was none
  std::string why;
};
Shortage thread_shortage();

// Calls `chunk(number, worker)` for every number below `count`; `worker` is below threads(), and no
// two calls at a time have the same. Returns when all are done. Inside a chunk it runs in order on
// the same thread, as worker 0: chunks that need scratch should have it on their stack.
void for_each_chunk(int64_t count, const std::function<void(int64_t chunk, int worker)>& chunk);

// Runs the loop lo..hi of generated code in chunks of `grain`. Returns 0, or 1 after recording the
// failure of the first chunk that has one in `context`.
using NativeBody = int32_t (*)(const NativeContext* context, void* closure, int64_t lo, int64_t hi,
                               int64_t chunk);
int32_t native_parallel(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                        int64_t hi, int64_t grain);

}  // namespace ein
