#include "cli/monitor.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "cli/cli.h"
#include "runtime/bytes.h"
#include "runtime/show.h"
#include "runtime/streams.h"

namespace ein::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirst = 200ms, kEvery = 100ms, kEveryLine = 1000ms;
constexpr size_t kLongestValue = 60;

// Through these, signal handlers reach the only monitor of the process.
std::atomic<std::atomic<int32_t>*> g_wake{nullptr};
volatile std::sig_atomic_t g_interrupted = 0;

volatile std::sig_atomic_t g_keeps = 0;  // the state of the run is to be saved

void on_interrupt(int) {
  if (g_interrupted) _exit(kInterrupted);  // second Ctrl-C
  g_interrupted = 1;
  if (std::atomic<int32_t>* wake = g_wake.load()) wake->store(1);
  if (g_keeps) {  // waits for the end of the step, however long that takes
    static const char note[] =
        "\nsaving the state after this step; Ctrl-C again ends the run at once\n";
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, note, sizeof note - 1);
    return;
  }
  itimerval limit{{0, 0}, {0, 900'000}};
  setitimer(ITIMER_REAL, &limit, nullptr);
}

void on_time_out(int) {
  static const char text[] = "\ninterrupted in the middle of a step; nothing was written\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  _exit(kInterrupted);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string value_text(const Tensor& t) {
  std::string out = ein::show(t, std::vector<std::string>(t.rank()));
  std::replace(out.begin(), out.end(), '\n', ' ');
  if (out.size() > kLongestValue) out = out.substr(0, kLongestValue) + "...";
  return out;
}

std::string percentage(const Moment& now) {
  return fmt::format("{} %", 100 * now.done / now.steps);
}

}  // namespace

bool RunMonitor::shows(const std::string& progress) {
  return progress == "always" || (progress == "auto" && isatty(STDERR_FILENO) != 0);
}

RunMonitor::RunMonitor(MonitorOptions options) : options_(std::move(options)) {
  terminal_ = isatty(STDERR_FILENO) != 0;
  shows_ = shows(options_.progress);
  begin_ = shown_ = saved_ = Clock::now();
  g_interrupted = 0;
  g_keeps = !options_.save.empty();
  g_wake = &wake;
  for (int signal : {SIGINT, SIGTERM}) handle(signal, on_interrupt);
  handle(SIGALRM, on_time_out);
  if (!options_.log.empty()) {
    log_ = std::make_unique<RunLog>(options_.log, options_.names, options_.resumed);
    error_ = log_->error();
  }
  if (!options_.plot.empty()) plot_ = std::make_unique<LivePlot>(options_.plot, options_.names);
  if (log_ || plot_ || options_.save_steps > 0) wake = 1;
  if (shows_ || options_.save_after.count() > 0) start_timer();
}

void RunMonitor::start_timer() {
  try {
    timer_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      for (auto wait = kFirst; !ended_.wait_for(lock, wait, [this] { return over_; });
           wait = kEvery) {
        due_ = true;
        wake = 1;
      }
    });
  } catch (const std::system_error&) {
    shows_ = false;  // no thread could be started, but the run can go on
  }
}

RunMonitor::~RunMonitor() {
  itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  for (int signal : {SIGINT, SIGTERM, SIGALRM}) handle(signal, SIG_DFL);
  g_wake = nullptr;
  if (timer_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    timer_.join();
  }
  if (line_open_) put_error(fmt::format("\r\x1b[K"));
}

bool RunMonitor::save_due(const Moment& now) const {
  if (options_.save.empty() || now.done == saved_done_) return false;
  bool steps = options_.save_steps > 0 && now.done > 0 && now.done % options_.save_steps == 0;
  bool time = options_.save_after.count() > 0 && Clock::now() - saved_ >= options_.save_after;
  return g_interrupted || steps || time;
}

bool RunMonitor::cares(const Moment& now) {
  if (g_interrupted || error_ || log_ || due_) return true;
  if ((plot_ && plot_->wants(now)) || save_due(now)) return true;
  wake = log_ || plot_ || options_.save_steps > 0;
  return false;
}

bool RunMonitor::poll(const Moment& now) {
  bool due = due_.exchange(false);
  wake = log_ || plot_ || options_.save_steps > 0;
  if (log_) {
    if (now.done > 0) log_->add(now, now.last());
    if (!error_) error_ = log_->error();
  }
  if (plot_ && !error_) error_ = plot_->add(now);
  if (!error_ && save_due(now)) save(now);
  if (g_interrupted || error_) return true;
  if (shows_ && due) show(now);
  return false;
}

void RunMonitor::save(const Moment& now) {
  try {
    OutFile file(state_path(options_.save));
    file.write(now.state());
    file.close();
  } catch (const Malformed& m) {
    error_ = RuntimeError{Code::E0808,
                          fmt::format("cannot write `{}`: {}", state_path(options_.save), m.why)};
    return;
  }
  saved_ = Clock::now();
  saved_done_ = now.done;
  kept_ = true;
}

std::optional<RuntimeError> RunMonitor::finish() {
  if (log_) {
    log_->close();
    if (!error_) error_ = log_->error();
  }
  if (plot_ && !error_) error_ = plot_->draw();
  return error_;
}

void RunMonitor::show(const Moment& now) {
  auto time = Clock::now();
  bool first = family_ != now.family;
  if (first) {
    family_ = now.family;
    // The first recurrence began at about the same time as the program.
    if (begin_done_ != 0 || line_open_) begin_ = time;
    begin_done_ = line_open_ ? now.done : 0;
  }
  if (!first && !terminal_ && time - shown_ < kEveryLine) return;
  shown_ = time;
  double seconds = std::chrono::duration<double>(time - begin_).count();
  double rate = seconds > 0 ? static_cast<double>(now.done - begin_done_) / seconds : 0;
  std::string line = now.by_rows
                         ? fmt::format("{}: {} of its rows", now.family, percentage(now))
                         : fmt::format("{}: step {} of {}", now.family, now.done, now.steps);
  if (rate > 0) {
    if (!now.by_rows) line += fmt::format(", {:.{}f} steps/s", rate, rate < 10 ? 1 : 0);
    line +=
        fmt::format(", {} left", duration_text(static_cast<double>(now.steps - now.done) / rate));
  }
  for (const auto& [name, value] : now.watched) {
    line += fmt::format(", {} = {}", name, value_text(value));
  }
  if (terminal_) {
    put_error(fmt::format("\r{}\x1b[K", line));
    line_open_ = true;
  } else {
    put_error(fmt::format("{}\n", line));
  }
  std::fflush(stderr);
}

std::string stop_text(const Stopped& where) {
  if (where.by_rows) {
    return fmt::format("`{}` stopped after {} of its rows", where.family, percentage(where));
  }
  std::string at = where.coordinate.empty() ? "step" : where.coordinate;
  return fmt::format("`{}` stopped at {} = {}, after {} of {} steps", where.family, at, where.next,
                     where.done, where.steps);
}

std::string state_path(const std::string& folder) { return folder + "/state.ein-state"; }

}  // namespace ein::cli
