// Ctrl-C in a session stops what is being done, not the session.
#pragma once

#include "runtime/monitor.h"

namespace ein::cli {

void watch_interrupts();  // from now on, Ctrl-C and changes of the terminal's size are noted
bool interrupted();       // whether Ctrl-C was pressed since `forget_interrupt`
void forget_interrupt();
bool take_resize();  // whether the terminal's size has changed since the last call

// Waits until standard input has something to read. False if Ctrl-C was pressed or the terminal's
// size has changed. Signals may arrive on any thread, so waiting alone would not notice them.
bool wait_for_input();

// During its lifetime, Ctrl-C stops a run between two steps. A step may take as long as it likes,
// so after a second the user is told that pressing Ctrl-C again ends the session.
class PromptMonitor : public Monitor {
 public:
  PromptMonitor();
  ~PromptMonitor() override;
  PromptMonitor(const PromptMonitor&) = delete;
  PromptMonitor& operator=(const PromptMonitor&) = delete;
  bool poll(const Moment& now) override;
  bool cares(const Moment& now) override;
};

}  // namespace ein::cli
