// Private to src/capi: a run on a thread of its own asks things of its caller, on the caller's thread.
#pragma once

#include <einlang/einlang.h>

#include <condition_variable>
#include <functional>
#include <mutex>

#include "runtime/sink.h"

namespace ein::capi {

// Hands functions to a thread that serves them until the other one is done.
class Relay {
 public:
  // On the thread of the run; returns when it is done.
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
  // On the thread of the caller.
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

// The poll of ein_run_options, for a CallMonitor: `data` is an Asking.
struct Asking {
  Relay& relay;
  const ein_run_options& options;
};
int32_t ask(void* data);

// What a program prints and saves goes where the options say. Both must outlive the result.
Sink sink_of(const ein_run_options& options, Relay& relay);

}  // namespace ein::capi
