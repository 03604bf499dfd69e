// What generated code and its caller agree on: the context passed in, the record of a failure, and
// the table of functions that generated code may call. Offsets are those of C; all pointers are 64
// bits.
#pragma once

#include <cstdint>

#include "runtime/integers.h"
#include "runtime/processor.h"

namespace ein {

struct NativeFailure {
  static constexpr int kMaxValues = 64;
  int64_t site = -1;
  int64_t values[kMaxValues] = {};
  int64_t caller = -1;  // the site of the call, when a function stopped
};

struct NativeContext {
  void* const* buffers = nullptr;   // by buffer number
  const int64_t* dims = nullptr;    // extents of all buffers, one after the other, none below 0
  const int64_t* params = nullptr;  // symbolic extents
  NativeFailure* failure = nullptr;
  const void* const* functions = nullptr;
  // Looked at before each step of an outermost sequential loop; when it is not 0, `poll` is called
  // with the site of the loop, the step to come and the number of steps, and stops the program by
  // returning anything but 0. Also called, always, to fetch rows of a streamed input: with a site
  // that names it, the first row and 0.
  const int32_t* wake = nullptr;
  int32_t (*poll)(void* state, int64_t site, int64_t next, int64_t steps) = nullptr;
  void* state = nullptr;
  // One for every thread that may share a loop, with scratch and a failure record of its own; null
  // when loops are not shared.
  const NativeContext* workers = nullptr;
  // Nanoseconds: when the kernel before ended (the caller says when the first one begins), then
  // what each kernel took. Null: not timed.
  int64_t* times = nullptr;
  // Of programs that can go on where a run was stopped: the first kernel to run, and in it the loop
  // of this site starts at this step. Nothing was stopped: site −1.
  int64_t first_kernel = 0, resumed_site = -1, resumed_step = 0;
  // Of threads that run a loop of steps together (team.h): which one this is, of how many.
  int64_t rank = 0, members = 1;
  void* device = nullptr;  // of programs for one (device_run.h)
};

using NativeEntry = int32_t (*)(const NativeContext*);  // 0, or 1 when `failure` is filled

enum class NativeFn : uint32_t {
#define EIN_FN(name, address) name,
#include "runtime/functions.def"
#undef EIN_FN
};
const void* const* native_functions(Level level);

// 1 when base to the exponent lies outside of lowest..most, 0 otherwise.
int64_t power_overflows(int64_t base, int64_t exponent, int64_t lowest, int64_t most);

int64_t clock_nanoseconds();
void kernel_ended(int64_t* times, int64_t kernel);  // adds what it took to NativeContext::times

}  // namespace ein
