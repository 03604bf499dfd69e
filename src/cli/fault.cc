// Reports what would otherwise end the process silently: a signal, as a bug in the compiler with
// status 70, and lack of memory, wherever it was noticed. The handler has a stack of its own,
// because a full stack is one of the reasons for being called.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "cli/cli.h"

namespace ein {
// Defined in allocate.cc, unless another program has loaded us.
__attribute__((weak)) bool memory_ran_out();
}  // namespace ein

namespace ein::cli {

#ifndef __SANITIZE_ADDRESS__  // the sanitizer's report is better

namespace {

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(kInternal);
}

[[noreturn]] void out_of_memory() {
  // Writes out what was printed before, unless it is being written right now.
  if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);
  say("error[E0807]: out of memory\n");
  _exit(kRuntimeFailure);
}

// If memory runs out while the stack grows, or in a library that does not check what malloc
// returned, that looks like any other fault. So this tries whether memory is left.
bool no_memory_left() {
  if (memory_ran_out && memory_ran_out()) return true;
  constexpr size_t kBytes = size_t{1} << 20;
  void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return true;
  munmap(p, kBytes);
  return false;
}

// Whether the fault is where the stack would have grown to next.
bool is_full_stack(const siginfo_t* info, const void* machine) {
#ifdef __x86_64__
  const auto& registers = static_cast<const ucontext_t*>(machine)->uc_mcontext.gregs;
  auto top = static_cast<uintptr_t>(registers[REG_RSP]);
  auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  constexpr uintptr_t kNear = 1 << 16;
  return at + kNear > top && at < top + kNear;
#else
  (void)info, (void)machine;
  return false;
#endif
}

void on_fault(int signal, siginfo_t* info, void* machine) {
  if (no_memory_left()) out_of_memory();
  if (signal == SIGSEGV && is_full_stack(info, machine)) {
    say("ein: stack overflow: the program nests too deeply for the memory that this process may "
        "use, or this is a bug in the compiler\n"
        "give the inner parts names with `let`; if that does not help, please report it with the "
        "program that caused it\n");
    _exit(kInternal);
  }
  say("ein: a bug in the compiler: ");
  say(signal == SIGSEGV || signal == SIGBUS ? "invalid memory access (or stack overflow)"
      : signal == SIGFPE                    ? "arithmetic exception"
      : signal == SIGILL                    ? "an instruction that this machine does not support"
                                            : "the process aborted");
  say("\nplease report it together with the program that caused it\n");
  _exit(kInternal);
}

// An exception that cannot be caught: many functions of LLVM let none through.
[[noreturn]] void on_terminate() {
  if (no_memory_left()) out_of_memory();
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) { out_of_memory(); } catch (const std::exception& e) {
    say("ein: a bug in the compiler: ");
    say(e.what());
    say("\nplease report it together with the program that caused it\n");
    _exit(kInternal);
  } catch (...) {}
  std::abort();
}

// Runs before LLVM's constructors, which allocate memory, too.
[[gnu::constructor(101)]] void first() { std::set_terminate(on_terminate); }

}  // namespace

void report_faults() {
  constexpr size_t kBytes = 1 << 16;
  static void* const memory = std::malloc(kBytes);
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  if (memory) sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

#else

void report_faults() {}

#endif

}  // namespace ein::cli
