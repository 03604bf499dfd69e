#include "capi/poll.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace ein::capi {

using namespace std::chrono_literals;

struct Ticker {
  std::mutex mutex;
  std::condition_variable begun;
  CallMonitor* first = nullptr;
  bool started = false, asleep = false;

  void add(CallMonitor& call) {
    std::lock_guard lock(mutex);
    call.after_ = first;
    if (first) first->before_ = &call;
    first = &call;
    if (!started) start();
    if (asleep) begun.notify_one();
  }

  void remove(CallMonitor& call) {
    std::lock_guard lock(mutex);
    if (call.before_) call.before_->after_ = call.after_;
    if (call.after_) call.after_->before_ = call.before_;
    if (first == &call) first = call.after_;
  }

  // If no thread can be started, calls run without asking the caller.
  void start() {
    try {
      std::thread([this] { tick(); }).detach();
      started = true;
    } catch (const std::system_error&) {}
  }

  [[noreturn]] void tick() {
    std::unique_lock lock(mutex);
    for (;;) {
      // The thread keeps ticking for a while: calls often follow each other, and waking a thread
      // costs more than a small call.
      for (int idle = 0; idle < 20;) {
        lock.unlock();
        std::this_thread::sleep_for(50ms);
        lock.lock();
        idle = first ? 0 : idle + 1;
        for (CallMonitor* call = first; call; call = call->after_) call->wake = 1;
      }
      asleep = true;
      begun.wait(lock, [this] { return first != nullptr; });
      asleep = false;
    }
  }
};

namespace {

// Never destroyed: its thread runs until the process ends. A forked process has no such thread, and
// may have been forked while another thread held the lock, so it starts anew.
Ticker& ticker() {
  alignas(Ticker) static char place[sizeof(Ticker)];
  static Ticker* only = [] {
    auto* made = new (place) Ticker;
    pthread_atfork(nullptr, nullptr, [] { new (place) Ticker; });
    return made;
  }();
  return *only;
}

}  // namespace

CallMonitor::CallMonitor(int32_t (*asked)(void*), void* data) : poll_(asked), data_(data) {
  ticker().add(*this);
}

CallMonitor::~CallMonitor() { ticker().remove(*this); }

bool CallMonitor::poll(const Moment&) {
  wake = 0;
  return poll_(data_) != 0;
}

}  // namespace ein::capi
