// Ctrl-C in a session: it stops what is being done, not the session.
#pragma once

#include "runtime/monitor.h"

namespace ein::cli {

void watch_interrupts();  // from now on Ctrl-C and changes of size are noted
bool interrupted();       // since it was last forgotten
void forget_interrupt();
bool take_resize();  // whether the terminal has changed its size since this was last asked

// Waits until standard input has something to read. False: Ctrl-C was pressed, or the terminal has changed its size.
// Signals may arrive on any thread, so a wait alone would not notice them.
bool wait_for_input();

// While it lives, Ctrl-C stops a run between two steps. One step may take as long as it likes, so after a second the
// user is told that pressing it again ends the session.
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
