// What a long run shows on standard error, and Ctrl-C.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/monitor.h"

namespace ein::cli {

// Alive while a program runs: shows its progress, and turns Ctrl-C into a stop between two steps.
// A program that does not come to the end of a step within a second of Ctrl-C is ended as it is.
class RunMonitor : public Monitor {
 public:
  explicit RunMonitor(const std::string& progress);  // auto, always or never
  ~RunMonitor() override;
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  bool poll(const Moment& now) override;

 private:
  using Clock = std::chrono::steady_clock;
  void show(const Moment& now);

  bool shows_ = false, terminal_ = false, line_open_ = false;
  std::string family_;  // the recurrence of the last line, with its start
  Clock::time_point begin_, shown_;
  int64_t begin_done_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread timer_;
};

// "`h` stopped at t = 12, after 12 of 100 steps"
std::string stop_text(const Stopped& where);

}  // namespace ein::cli
