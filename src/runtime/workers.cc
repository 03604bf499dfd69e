#include "runtime/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace ein {
namespace {

// States; the last bit is kAwaited.
constexpr uint32_t kIdle = 0, kOffered = 2, kRunning = 4, kStop = 6;

struct alignas(128) Worker {
  Word state{kIdle};
  int rank = 0;              // its rank in the job
  const Job* job = nullptr;  // written before the job is offered
  std::thread thread;
};

constexpr int kWords = (kMostWorkers + 63) / 64;
struct alignas(128) Bits {  // one bit for each worker
  std::atomic<uint64_t> words[kWords] = {};
};

// Never destroyed as a whole, because other threads may run loops while the process ends.
struct Pool {
  Bits idle, asleep;
  Worker workers[kMostWorkers];
  std::atomic<int> started{0};
  std::atomic<int> threads{0};
  std::atomic<int64_t> spin{0};
  std::atomic<bool> closed{false}, pins{false};
  std::mutex mutex;  // held while starting and stopping
  Shortage shortage;
};

alignas(Pool) std::byte g_memory[sizeof(Pool)];
Pool& pool() {
  static Pool* made = new (g_memory) Pool;
  return *made;
}

thread_local int t_most = 0;  // set by ThreadLimit; 0: no limit

uint64_t bit_of(int worker) { return uint64_t{1} << worker % 64; }

void wake_next(const Job& job, int rank) {
  Pool& p = pool();
  int seen_word = -1;
  uint64_t seen = 0;
  for (int r = 3 * rank + 1; r < std::min(job.width, 3 * rank + 4); ++r) {
    int worker = job.workers[r];
    // A read that also writes: a worker that is about to sleep has either set its bit before, or
    // comes later and sees its offer.
    if (worker / 64 != seen_word) {
      seen_word = worker / 64;
      seen = p.asleep.words[seen_word].fetch_add(0, std::memory_order_acq_rel);
    }
    if (seen & bit_of(worker)) wake_all(p.workers[worker].state);
  }
}

void wait_for_offer(Pool& p, int number) {
  Worker& w = p.workers[number];
  auto offered = [&] { return w.state.load(std::memory_order_acquire) != kIdle; };
  if (spin_until(offered, p.spin.load(std::memory_order_relaxed))) return;
  std::atomic<uint64_t>& asleep = p.asleep.words[number / 64];
  asleep.fetch_or(bit_of(number), std::memory_order_acq_rel);
  while (!offered()) sleep_while(w.state, kIdle);
  asleep.fetch_and(~bit_of(number), std::memory_order_acq_rel);
}

void work(Pool& p, int number) {
  Worker& w = p.workers[number];
  for (;;) {
    wait_for_offer(p, number);
    uint32_t state = kOffered;
    if (!w.state.compare_exchange_strong(state, kRunning, std::memory_order_acq_rel)) {
      if (state == kStop) return;
      continue;  // the offer was withdrawn
    }
    const Job& job = *w.job;
    wake_next(job, w.rank);
    job.member(job, w.rank);
    publish(w.state, kIdle);
  }
}

bool claim(Pool& p, int worker) {
  return p.idle.words[worker / 64].fetch_and(~bit_of(worker), std::memory_order_acq_rel) &
         bit_of(worker);
}

// Stops the workers from number `from` on, once they are idle.
void stop(Pool& p, int from) {
  for (int n = p.started - 1; n >= from; --n) {
    while (!claim(p, n)) std::this_thread::yield();
    p.started = n;
    p.workers[n].state.store(kStop, std::memory_order_release);
    wake_all(p.workers[n].state);
    p.workers[n].thread.join();
    p.workers[n].state.store(kIdle, std::memory_order_relaxed);
  }
}

// A forked process has none of the threads, and perhaps a lock that one of them held, so it starts
// anew.
void forget_workers() {
  Pool& p = pool();
  int count = p.threads;
  int64_t spin = p.spin;
  bool pins = p.pins;
  new (&p) Pool;
  p.threads = count;
  p.spin = spin;
  p.pins = pins;
}

// Runs before static objects are destroyed and before a library is unloaded. A worker that is not
// idle belongs to a loop that still runs; the process ends without waiting for it.
struct Closing {
  Closing() { pthread_atfork(nullptr, nullptr, forget_workers); }
  ~Closing() {
    Pool& p = pool();
    std::lock_guard lock(p.mutex);
    p.closed = true;
    for (int n = 0; n < p.started; ++n) {
      if (!claim(p, n)) continue;
      p.workers[n].state.store(kStop, std::memory_order_release);
      wake_all(p.workers[n].state);
      p.workers[n].thread.join();
    }
    p.started = 0;
  }
};

// The first processor stays free for the caller, which is never pinned.
void pin(Pool& p, int number) {
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (CPU_COUNT(&all) != online || p.threads != online) return;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || seen++ != number + 1) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(p.workers[number].thread.native_handle(), sizeof(one), &one);
  }
}

// A system that is out of threads is short of everything: half of those it gave are returned, so
// that the program itself still has room.
void start(Pool& p, int wanted) {
  static const Closing closing;
  std::lock_guard lock(p.mutex);
  if (p.closed) return;
  std::string why;
  try {
    for (int n = p.started; n < wanted; ++n) {
      p.workers[n].thread = std::thread([&p, n] { work(p, n); });
      if (p.pins) pin(p, n);
      p.idle.words[n / 64].fetch_or(bit_of(n), std::memory_order_acq_rel);
      p.started = n + 1;
    }
  } catch (const std::system_error& e) { why = e.code().message(); }
  if (p.started >= wanted) return;
  stop(p, p.started / 2);
  p.threads = p.started + 1;
  p.shortage = {wanted + 1, p.threads, why};
}

int usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

int claim_workers(int wanted, int* out) {
  Pool& p = pool();
  int all = std::min(p.threads.load(std::memory_order_relaxed) - 1, kMostWorkers);
  if (p.started.load(std::memory_order_acquire) < all) start(p, all);
  all = std::min(all, p.started.load(std::memory_order_acquire));
  int have = 0;
  for (int word = 0; word * 64 < all && have < wanted; ++word) {
    uint64_t mine = all - word * 64 >= 64 ? ~uint64_t{0} : bit_of(all) - 1;
    uint64_t now = p.idle.words[word].load(std::memory_order_relaxed), taken = 0;
    do {
      taken = 0;
      for (uint64_t left = now & mine; left && have + std::popcount(taken) < wanted;) {
        uint64_t lowest = left & -left;
        taken |= lowest;
        left ^= lowest;
      }
    } while (taken && !p.idle.words[word].compare_exchange_weak(now, now & ~taken,
                                                                std::memory_order_acq_rel));
    for (; taken; taken &= taken - 1) out[have++] = word * 64 + std::countr_zero(taken);
  }
  return have;
}

void release_workers(const int* workers, int count) {
  Pool& p = pool();
  for (int i = 0; i < count;) {
    int word = workers[i] / 64;
    uint64_t bits = 0;
    for (; i < count && workers[i] / 64 == word; ++i) bits |= bit_of(workers[i]);
    p.idle.words[word].fetch_or(bits, std::memory_order_acq_rel);
  }
}

void offer(const Job& job) {
  Pool& p = pool();
  // Makes offers from the last worker to the first: a worker that begins then finds the offers of
  // those that it must wake.
  for (int r = job.width - 1; r > 0; --r) {
    Worker& w = p.workers[job.workers[r]];
    w.job = &job;
    w.rank = r;
    w.state.store(kOffered, std::memory_order_release);
  }
  wake_next(job, 0);
}

bool withdraw(int worker) {
  Word& state = pool().workers[worker].state;
  uint32_t now = state.load(std::memory_order_acquire);
  if (now != kOffered) return false;
  return state.compare_exchange_strong(now, kIdle, std::memory_order_acq_rel);
}

bool has_begun(int worker) {
  return pool().workers[worker].state.load(std::memory_order_acquire) != kOffered;
}

void await_end(int worker) {
  wait_while(pool().workers[worker].state, kRunning, spin_nanoseconds());
}

int64_t spin_nanoseconds() { return pool().spin.load(std::memory_order_relaxed); }

Shortage thread_shortage() {
  std::lock_guard lock(pool().mutex);
  return pool().shortage;
}

void set_threads(int count) {
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  int cpus = usable_cpus(), now = count > 0 ? count : cpus;
  p.threads = now;
  p.spin = cpus < now ? 0 : kSpinNanoseconds;
  p.shortage = {};
}

void pin_threads() { pool().pins = true; }

int threads() {
  Pool& p = pool();
  int all = p.threads.load(std::memory_order_relaxed);
  if (all == 0) {
    set_threads(0);
    all = p.threads;
  }
  return t_most > 0 ? std::min(t_most, all) : all;
}

ThreadLimit::ThreadLimit(int most) : before_(t_most) { t_most = most; }
ThreadLimit::~ThreadLimit() { t_most = before_; }

}  // namespace ein
