#include "base/fork_mutex.h"

#include <pthread.h>

namespace ein {

struct ForkMutexes {
  std::mutex mutex;
  ForkMutex* first = nullptr;

  void lock_all() {
    mutex.lock();
    for (ForkMutex* m = first; m; m = m->after_) m->mutex_.lock();
  }
  void unlock_all() {
    for (ForkMutex* m = first; m; m = m->after_) m->mutex_.unlock();
    mutex.unlock();
  }
  void add(ForkMutex& m) {
    std::lock_guard lock(mutex);
    m.after_ = first;
    if (first) first->before_ = &m;
    first = &m;
  }
  void remove(ForkMutex& m) {
    std::lock_guard lock(mutex);
    if (m.before_) m.before_->after_ = m.after_;
    if (m.after_) m.after_->before_ = m.before_;
    if (first == &m) first = m.after_;
  }
};

namespace {

ForkMutexes& all() {
  static ForkMutexes* const instance = [] {
    auto* made = new ForkMutexes;  // never destroyed: mutexes outlive static destructors
    pthread_atfork([] { all().lock_all(); }, [] { all().unlock_all(); },
                   [] { all().unlock_all(); });
    return made;
  }();
  return *instance;
}

}  // namespace

ForkMutex::ForkMutex() { all().add(*this); }
ForkMutex::~ForkMutex() { all().remove(*this); }

}  // namespace ein
