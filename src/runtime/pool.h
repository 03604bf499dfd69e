// Threads that share loops. A loop is cut into chunks whose bounds depend on its extents alone, so
// results do not depend on the number of threads or on which thread runs which chunk. There is one
// set of workers for the process, started when they are first needed. A loop takes those that are
// idle, as many as it has work for; loops of several callers run side by side.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/native_abi.h"

namespace ein {

// How many threads share loops from now on, including the caller's; 0: as many as this process may
// use. Not to be called while a program runs.
void set_threads(int count);
int threads();

// Threads that start from now on each stay on one processor, provided that there is one thread for
// every processor of the machine and this process may use all of them. For processes that we start
// ourselves.
void pin_threads();

// During its lifetime, loops of this thread are shared by at most `most` threads; 0: no limit.
class ThreadLimit {
 public:
  explicit ThreadLimit(int most);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

// Set if the system refused some threads: how many were wanted and how many there are, including
// the caller's.
struct Shortage {
  int wanted = 0, started = 0;  // 0: none was refused
  std::string why;
};
Shortage thread_shortage();

// A function of a chunk's number and a worker. It is called while the loop runs and not kept
// afterwards.
class ChunkFunction {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ChunkFunction>)
      ChunkFunction(F&& f)  // NOLINT(bugprone-forwarding-reference-overload)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, int64_t chunk, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(chunk, worker);
        }) {}
  void operator()(int64_t chunk, int worker) const { call_(object_, chunk, worker); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int);
};

// Calls `chunk(number, worker)` for every number below `count`. `worker` is below threads(), and no
// two simultaneous calls have the same. Returns when all are done. At most `width` threads take
// part, and no more than there are chunks, each of which should be worth about 5 µs. Called inside
// a chunk, it runs everything in order on the same thread, as worker 0; so chunks that need scratch
// should have it on their stack.
void for_each_chunk(int64_t count, ChunkFunction chunk, int64_t width = INT64_MAX);

// Runs the loop lo..hi of generated code in chunks of `grain`. Returns 0; or 1 after recording in
// `context` the failure of the first chunk that has one.
using NativeBody = int32_t (*)(const NativeContext* context, void* closure, int64_t lo, int64_t hi,
                               int64_t chunk);
int32_t native_parallel(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                        int64_t hi, int64_t grain);

}  // namespace ein
