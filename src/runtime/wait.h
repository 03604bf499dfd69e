// Waiting for a word that another thread changes: spinning for as long as the next loop of a step
// usually takes to come, by the clock, because a `pause` is ten times as long on some processors;
// then asleep in the kernel.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/clock.h"

namespace ein {

using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == sizeof(uint32_t) && Word::is_always_lock_free);

inline constexpr int64_t kSpinNanoseconds = 50'000;

// Sleeps if the word is `value`. Returns when woken, and now and then without a reason.
inline void sleep_while(const Word& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
inline void wake_all(const Word& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// True as soon as `done()` is, false after `nanoseconds`.
template <class Done>
bool spin_until(Done&& done, int64_t nanoseconds) {
  if (done()) return true;
  if (nanoseconds == 0) return false;
  for (int64_t end = now_nanoseconds() + nanoseconds;;) {
    for (int i = 0; i < 16; ++i) {
      __builtin_ia32_pause();
      if (done()) return true;
    }
    if (now_nanoseconds() > end) return false;
  }
}

// A word whose last bit says that somebody sleeps until it changes; writers `publish`, so that they
// wake nobody who does not sleep.
inline constexpr uint32_t kAwaited = 1;

inline void publish(Word& word, uint32_t value) {
  if (word.exchange(value, std::memory_order_acq_rel) & kAwaited) wake_all(word);
}

// Returns when the word, without the bit, is no longer `value`.
inline void wait_while(Word& word, uint32_t value, int64_t spin_nanoseconds) {
  auto changed = [&] { return (word.load(std::memory_order_acquire) & ~kAwaited) != value; };
  if (spin_until(changed, spin_nanoseconds)) return;
  while (!changed()) {
    uint32_t now = value;
    word.compare_exchange_strong(now, value | kAwaited, std::memory_order_acq_rel);
    sleep_while(word, value | kAwaited);
  }
}

}  // namespace ein
