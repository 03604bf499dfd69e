#include "runtime/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace ein {
namespace {

// One loop that is being shared.
struct Job {
  const std::function<void(int64_t, int)>* chunk = nullptr;
  int64_t count = 0;
  int workers = 0;  // those with a lower number take part
  std::atomic<int64_t> next{0};

  void work(int worker) {
    for (int64_t i = next++; i < count; i = next++) (*chunk)(i, worker);
  }
};

thread_local bool t_inside = false;  // this thread runs a chunk
thread_local int t_most = 0;         // ThreadLimit; 0: none

// Waiting threads spin for a while before they sleep: the loops of a recurrence's steps follow each
// other within microseconds.
constexpr int kSpins = 4000;

class Pool {
 public:
  // Starts as many helpers as the system allows; `why` says why there are not more.
  Pool(int helpers, std::string& why) {
    helpers_.reserve(static_cast<size_t>(helpers));
    try {
      for (int i = 1; i <= helpers; ++i) helpers_.emplace_back([this, i] { help(i); });
    } catch (const std::system_error& e) { why = e.code().message(); }
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      ++round_;
    }
    wake_.notify_all();
    for (std::thread& t : helpers_) t.join();
  }
  int helpers() const { return static_cast<int>(helpers_.size()); }

  void run(Job& job) {
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      working_ = static_cast<int>(helpers_.size());
      ++round_;
    }
    wake_.notify_all();
    t_inside = true;
    job.work(0);
    t_inside = false;
    for (int spin = 0; working_ != 0 && spin < kSpins; ++spin) __builtin_ia32_pause();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return working_ == 0; });
    job_ = nullptr;
  }

 private:
  void help(int worker) {
    t_inside = true;
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; round_ == seen && spin < kSpins; ++spin) __builtin_ia32_pause();
      Job* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
        if (stop_) return;
        job = job_;
      }
      if (worker < job->workers) job->work(worker);
      if (--working_ == 0) {
        std::lock_guard lock(mutex_);
        done_.notify_one();
      }
    }
  }

  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> working_{0};
  Job* job_ = nullptr;
  bool stop_ = false;
};

int usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::mutex g_mutex;  // one shared loop at a time; another caller runs its own alone
int g_threads = 0;
std::unique_ptr<Pool> g_pool;
Shortage g_shortage;

// A forked process has none of the threads, and perhaps a lock that one of them held: it starts anew, and what
// the pool was is left as it is.
void forget_pool() {
  new (&g_mutex) std::mutex;
  [[maybe_unused]] const Pool* left = g_pool.release();
}

// A system that has no more threads has little left of anything: half of those it gave are given
// back, so that the program itself still has room.
void start_pool() {
  static const bool prepared = [] {
    pthread_atfork(nullptr, nullptr, forget_pool);
    return true;
  }();
  (void)prepared;
  std::string why;
  int wanted = g_threads - 1;
  g_pool = std::make_unique<Pool>(wanted, why);
  if (int got = g_pool->helpers(); got < wanted) {
    g_pool.reset();
    std::string again;
    if (got / 2 > 0) g_pool = std::make_unique<Pool>(got / 2, again);
    if (g_pool && g_pool->helpers() == 0) g_pool.reset();
    g_threads = g_pool ? g_pool->helpers() + 1 : 1;
    g_shortage = {wanted + 1, g_threads, why};
  }
}

}  // namespace

Shortage thread_shortage() {
  std::lock_guard lock(g_mutex);
  return g_shortage;
}

void set_threads(int count) {
  std::lock_guard lock(g_mutex);
  int now = count > 0 ? count : usable_cpus();
  if (now != g_threads) g_pool.reset();
  g_threads = now;
  g_shortage = {};
}

int threads() {
  if (g_threads == 0) set_threads(0);
  return t_most > 0 ? std::min(t_most, g_threads) : g_threads;
}

ThreadLimit::ThreadLimit(int most) : before_(t_most) { t_most = most; }
ThreadLimit::~ThreadLimit() { t_most = before_; }

void for_each_chunk(int64_t count, const std::function<void(int64_t, int)>& chunk) {
  std::unique_lock lock(g_mutex, std::defer_lock);
  if (count <= 1 || t_inside || threads() == 1 || !lock.try_lock()) {
    for (int64_t i = 0; i < count; ++i) chunk(i, 0);
    return;
  }
  if (!g_pool) start_pool();
  Job job;
  job.chunk = &chunk;
  job.count = count;
  job.workers = threads();
  if (g_pool) {
    g_pool->run(job);
  } else {
    job.work(0);
  }
}

int32_t native_parallel(const NativeContext* context, NativeBody body, void* closure, int64_t lo,
                        int64_t hi, int64_t grain) {
  if (hi <= lo) return 0;
  int64_t count = (hi - lo - 1) / grain + 1;
  auto run = [&](const NativeContext* with, int64_t i) {
    int64_t from = lo + i * grain;
    return body(with, closure, from, std::min(hi - from, grain) + from, i);
  };
  if (count == 1 || !context->workers) {
    for (int64_t i = 0; i < count; ++i) {
      if (int32_t failed = run(context, i)) return failed;
    }
    return 0;
  }
  std::atomic<int64_t> first_failure{count};
  std::mutex recording;
  for_each_chunk(count, [&](int64_t i, int worker) {
    // Chunks are handed out in order, so all before the first that fails have been started.
    if (i > first_failure) return;
    const NativeContext* with = context->workers + worker;
    if (run(with, i) == 0) return;
    std::lock_guard lock(recording);
    if (i >= first_failure) return;
    first_failure = i;
    *context->failure = *with->failure;
  });
  return first_failure < count ? 1 : 0;
}

}  // namespace ein
