// A mutex for short sections that a forked process finds unlocked, with what it guards intact: a fork waits until
// nobody holds one, and no thread takes one meanwhile. Nothing that waits for another lock of this kind may be done
// while it is held.
#pragma once

#include <mutex>

namespace ein {

class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  ForkMutex *before_ = nullptr, *after_ = nullptr;  // in the list of all
  friend struct ForkMutexes;
};

}  // namespace ein
