// What a long run displays and saves while it runs, and how it reacts to Ctrl-C.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/live_plot.h"
#include "cli/log.h"
#include "runtime/monitor.h"

namespace ein::cli {

struct MonitorOptions {
  std::string progress = "auto";   // or always, never
  std::vector<std::string> names;  // names of the watched values
  std::string log, plot;           // files; empty: none
  std::string save;                // the folder for the state of the run; empty: it is not saved
  // Save after this much time, or this many steps; zero: not for that reason.
  std::chrono::milliseconds save_after{0};
  int64_t save_steps = 0;
  bool resumed = false;
};

// Exists while a program runs: shows its progress, writes its log and its state, and turns Ctrl-C
// into a stop between two steps. If a program does not reach the end of a step within a second of
// Ctrl-C, the process is ended, unless its state is to be saved.
class RunMonitor : public Monitor {
 public:
  explicit RunMonitor(MonitorOptions options);
  ~RunMonitor() override;
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;
  static bool shows(const std::string& progress);  // whether there is anybody to show it to

  bool poll(const Moment& now) override;
  bool cares(const Moment& now) override;
  const std::optional<RuntimeError>& error() const { return error_; }
  // After the run: the error if something could not be written.
  std::optional<RuntimeError> finish();
  bool state_kept() const { return kept_; }  // when the run was stopped

 private:
  using Clock = std::chrono::steady_clock;
  void show(const Moment& now);
  void start_timer();
  void save(const Moment& now);
  bool save_due(const Moment& now) const;

  const MonitorOptions options_;
  bool shows_ = false, terminal_ = false, line_open_ = false, kept_ = false;
  std::string family_;  // the recurrence of the last line, and its start
  Clock::time_point begin_, shown_, saved_;
  int64_t begin_done_ = 0, saved_done_ = -1;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<LivePlot> plot_;
  std::optional<RuntimeError> error_;
  std::atomic<bool> due_{false};  // the timer has fired
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread timer_;
};

// "`h` stopped at t = 12, after 12 of 100 steps"
std::string stop_text(const Stopped& where);

// The file that holds a state.
std::string state_path(const std::string& folder);

}  // namespace ein::cli
