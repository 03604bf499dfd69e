// Private to src/capi: asks the caller about every 50 ms whether a call should go on.
#pragma once

#include "runtime/monitor.h"

namespace ein::capi {

// The monitor of one call. One thread of the library wakes the monitors of all running calls; it
// sleeps when no call is running.
class CallMonitor final : public Monitor {
 public:
  CallMonitor(int32_t (*asked)(void*), void* data);
  ~CallMonitor() override;
  CallMonitor(const CallMonitor&) = delete;
  CallMonitor& operator=(const CallMonitor&) = delete;

  bool poll(const Moment&) override;

 private:
  int32_t (*poll_)(void*);
  void* data_;
  CallMonitor *before_ = nullptr, *after_ = nullptr;  // neighbours in the list of running calls
  friend struct Ticker;
};

}  // namespace ein::capi
