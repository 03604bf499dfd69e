#include "cli/interrupts.h"

#include <sys/time.h>
#include <unistd.h>

#include <csignal>

#include "cli/cli.h"

namespace ein::cli {
namespace {

volatile std::sig_atomic_t g_pressed = 0, g_runs = 0;
std::atomic<std::atomic<int32_t>*> g_step{nullptr};  // what the running program looks at

void say(const char* text, size_t size) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, size);
}

void on_press(int) {
  if (g_pressed && g_runs) _exit(kInterrupted);
  g_pressed = 1;
  if (!g_runs) return;
  if (std::atomic<int32_t>* step = g_step.load()) step->store(1);
  itimerval limit{{0, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &limit, nullptr);
}

void on_long_step(int) {
  static const char text[] = "\nin the middle of a step; Ctrl-C again ends the session\n";
  if (g_runs) say(text, sizeof text - 1);
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;  // `poll` is interrupted all the same
  action.sa_handler = on_press;
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = on_long_step;
  sigaction(SIGALRM, &action, nullptr);
}

bool interrupted() { return g_pressed != 0; }
void forget_interrupt() { g_pressed = 0; }

PromptMonitor::PromptMonitor() {
  g_pressed = 0;
  g_step = &wake;
  g_runs = 1;
}

PromptMonitor::~PromptMonitor() {
  g_runs = 0;
  g_step = nullptr;
  itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
}

bool PromptMonitor::poll(const Moment&) {
  wake = 0;
  return interrupted();
}

bool PromptMonitor::cares(const Moment&) { return interrupted(); }

}  // namespace ein::cli
