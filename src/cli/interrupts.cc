#include "cli/interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cli/cli.h"

namespace ein::cli {
namespace {

volatile std::sig_atomic_t g_pressed = 0, g_runs = 0, g_resized = 0;
int g_signal[2] = {-1, -1};  // a pipe: signal handlers write to it, waiting functions read
std::atomic<std::atomic<int32_t>*> g_step{nullptr};  // the flag that the running program looks at

void say(const char* text, size_t size) {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, size);
}

void wake_wait() { [[maybe_unused]] ssize_t written = write(g_signal[1], "", 1); }

void on_resize(int) {
  g_resized = 1;
  wake_wait();
}

void on_press(int) {
  if (g_pressed && g_runs) _exit(kInterrupted);
  g_pressed = 1;
  wake_wait();
  if (!g_runs) return;
  if (std::atomic<int32_t>* step = g_step.load()) step->store(1);
  itimerval limit{{0, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &limit, nullptr);
}

void on_long_step(int) {
  static const char text[] = "\nwaiting for the end of a step; Ctrl-C again ends the session\n";
  if (g_runs) say(text, sizeof text - 1);
}

}  // namespace

void watch_interrupts() {
  if (pipe2(g_signal, O_CLOEXEC | O_NONBLOCK) != 0) g_signal[0] = g_signal[1] = -1;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_press;
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = on_long_step;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = on_resize;
  sigaction(SIGWINCH, &action, nullptr);
}

bool take_resize() {
  bool out = g_resized != 0;
  g_resized = 0;
  return out;
}

bool wait_for_input() {
  pollfd wait[2] = {{STDIN_FILENO, POLLIN, 0}, {g_signal[0], POLLIN, 0}};
  while (poll(wait, 2, -1) < 0 && errno == EINTR) {}
  char rest[64];
  while (read(g_signal[0], rest, sizeof rest) > 0) {}
  return !g_pressed && !g_resized;
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
