// The interface between generated code and its caller: the context passed in, the record of a
// failure, and the table of functions that generated code may call. Offsets are those of C; all
// pointers are 64 bits.
#pragma once

#include <cstdint>

#include "runtime/integers.h"
#include "runtime/processor.h"

namespace ein {

struct NativeFailure {
  static constexpr int kMaxValues = 64;
  int64_t site = -1;
  int64_t values[kMaxValues] = {};
  int64_t caller = -1;  // the call site, if a function stopped
};

struct NativeContext {
  void* const* buffers = nullptr;   // by buffer number
  const int64_t* dims = nullptr;    // extents of all buffers, one after the other, none negative
  const int64_t* params = nullptr;  // symbolic extents
  NativeFailure* failure = nullptr;
  const void* const* functions = nullptr;
  // Looked at before each step of an outermost sequential loop. If it is not 0, `poll` is called
  // with the site of the loop, the next step and the number of steps; it stops the program by
  // returning anything but 0. `poll` is also called, whatever `wake` is, to fetch rows of a
  // streamed input: with a site that names the input, the first row and 0.
  const int32_t* wake = nullptr;
  int32_t (*poll)(void* state, int64_t site, int64_t next, int64_t steps) = nullptr;
  void* state = nullptr;
  // A context for every thread that may share a loop, with its own scratch and failure record. Null
  // if loops are not shared.
  const NativeContext* workers = nullptr;
  // Nanoseconds: first, when the previous kernel ended (the caller sets that at the start), then
  // how long each kernel took. Null: not timed.
  int64_t* times = nullptr;
  // For programs that can resume: the first kernel to run, in which the loop of this site starts at
  // this step. Site −1: nothing to resume.
  int64_t first_kernel = 0, resumed_site = -1, resumed_step = 0;
  // In a team (team.h): which member this is, and how many there are.
  int64_t rank = 0, members = 1;
  void* device = nullptr;  // of programs for a device (device_run.h)
};

using NativeEntry = int32_t (*)(const NativeContext*);  // returns 0, or 1 if `failure` is filled in

enum class NativeFn : uint32_t {
#define EIN_FN(name, address) name,
#include "runtime/functions.def"
#undef EIN_FN
};
const void* const* native_functions(Level level);

// 1 if base to the power of exponent is outside of lowest..most, otherwise 0.
int64_t power_overflows(int64_t base, int64_t exponent, int64_t lowest, int64_t most);

int64_t clock_nanoseconds();
// Adds the kernel's time to NativeContext::times.
void kernel_ended(int64_t* times, int64_t kernel);

}  // namespace ein
