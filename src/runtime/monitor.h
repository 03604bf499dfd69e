// How a running program is watched and stopped. Between two steps of the outermost sequential loop
// a back end looks at `wake` and calls `poll` only when it is set, by a timer or a signal: a load
// per step, and never more calls than somebody asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// A moment between two steps.
struct Moment {
  std::string family, coordinate;  // the recurrence that runs, and along what
  int64_t done = 0, steps = 0;
  int64_t next = 0;                                     // the address of the step to come
  std::vector<std::pair<std::string, Tensor>> watched;  // the last step of the watched families
  bool by_rows = false;  // it runs row by row: `done` and `steps` count pieces of equal size
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual bool poll(const Moment& now) = 0;  // true: stop here; resets `wake`
  std::atomic<int32_t> wake{0};
};

// Where a program was told to stop. What was finished before is kept.
using Stopped = Moment;

// The cells of a dense tensor at one address of one coordinate.
Tensor slice(const void* data, DType dtype, const std::vector<int64_t>& shape, size_t axis,
             int64_t at);

}  // namespace ein
