// Private to src/capi: lets a run on a thread of its own call functions on its caller's thread.
#pragma once

#include <einlang/einlang.h>

#include <condition_variable>
#include <functional>
#include <mutex>

#include "runtime/sink.h"

namespace ein::capi {

// Passes functions to a thread that executes them until the other thread is done.
class Relay {
 public:
  // Called on the run's thread; returns when `what` has been executed.
  void call(const std::function<void()>& what) {
    std::unique_lock lock(mutex_);
    asked_ = &what;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !asked_; });
  }
  void end() {
    std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  // Called on the caller's thread; returns when the run is over.
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return asked_ || over_; });
      if (!asked_) return;
      (*asked_)();
      asked_ = nullptr;
      changed_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* asked_ = nullptr;
  bool over_ = false;
};

// What a CallMonitor needs to ask the poll function of ein_run_options: its `data`.
struct Asking {
  Relay& relay;
  const ein_run_options& options;
};
int32_t ask(void* data);

// Sends what a program prints and saves where the options say. Both arguments must outlive the
// result.
Sink sink_of(const ein_run_options& options, Relay& relay);

}  // namespace ein::capi
