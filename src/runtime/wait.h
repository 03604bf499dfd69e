// Waiting for a word that another thread changes: first spinning, for as long as the next loop of a
// step usually takes to come, then sleeping in the kernel. Spinning is measured by the clock,
// because a `pause` takes ten times as long on some processors.
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

// Sleeps if the word is `value`. Returns when woken, and occasionally without a reason.
inline void sleep_while(const Word& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
inline void wake_all(const Word& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Returns true as soon as `done()` is true, and false after `nanoseconds`.
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

// The last bit of a word says that a thread sleeps until the word changes. Writers use `publish`,
// so that they wake threads only if there are any.
inline constexpr uint32_t kAwaited = 1;

inline void publish(Word& word, uint32_t value) {
  if (word.exchange(value, std::memory_order_acq_rel) & kAwaited) wake_all(word);
}

// Returns when the word, without that bit, is no longer `value`.
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
