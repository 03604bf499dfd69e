// A signal that would end the process without a word is a fault of ours: it is reported like every
// other one, with status 70. The handler has a stack of its own, because a full stack is one of the
// reasons for being here.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "cli/cli.h"

namespace ein::cli {

#ifndef __SANITIZE_ADDRESS__  // the sanitizer has the better report

namespace {

void on_fault(int signal) {
  auto say = [](const char* text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(kInternal);
  };
  say("ein: a fault in the compiler: ");
  say(signal == SIGSEGV || signal == SIGBUS ? "an address that is not ours (or a full stack)"
      : signal == SIGFPE                    ? "an arithmetic trap"
      : signal == SIGILL                    ? "an instruction that this machine does not have"
                                            : "the process gave up");
  say("\nplease report it with the program that caused it\n");
  _exit(kInternal);
}

}  // namespace

void report_faults() {
  constexpr size_t kBytes = 1 << 16;
  static void* const memory = std::malloc(kBytes);
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  if (memory) sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_fault;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

#else

void report_faults() {}

#endif

}  // namespace ein::cli
