// How a running program is watched and stopped. Between two steps of the outermost sequential loop,
// a back end looks at `wake` and calls `poll` only if it is set, by a timer or a signal. That costs
// one load for each step, and no calls that nobody asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// A moment between two steps.
struct Moment {
  std::string family, coordinate;  // the recurrence that runs, and the coordinate of its steps
  int64_t done = 0, steps = 0;
  int64_t next = 0;                                     // the address of the next step
  std::vector<std::pair<std::string, Tensor>> watched;  // values of the last step, by name
  bool by_rows = false;   // it runs row by row: `done` and `steps` count pieces of equal size
  bool downward = false;  // it runs from the last address to the first
  // A step of a family that runs along, by the family's name, if it is still kept. Only valid while
  // the monitor is asked.
  std::function<std::optional<Tensor>(const std::string& family, int64_t step)> step_of = {};

  // Everything that a run needs to resume from here, as bytes; empty if it cannot resume. Only
  // valid while the monitor is asked.
  std::function<std::string()> state = {};

  int64_t last() const { return downward ? next + 1 : next - 1; }  // the last finished step
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual bool poll(const Moment& now) = 0;  // true: stop here; resets `wake`
  // Whether the watched values are needed; asked before they are computed.
  virtual bool cares(const Moment&) { return true; }
  std::atomic<int32_t> wake{0};
};

// Where a program was stopped. What was finished before is kept.
using Stopped = Moment;

// The cells of a dense tensor at one address of one coordinate.
Tensor slice(const void* data, DType dtype, const std::vector<int64_t>& shape, size_t axis,
             int64_t at);

}  // namespace ein
