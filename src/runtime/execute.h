// Calls a compiled program: computes extents from the shapes of inputs, makes the checks at entry,
// provides memory, and explains failures. Nothing here depends on the compiler, so `ein run`, the C
// interface and libraries made by `ein build` all call programs in the same way.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/block.h"
#include "runtime/image.h"
#include "runtime/monitor.h"
#include "runtime/native_abi.h"
#include "runtime/row_file.h"

namespace ein {

// Dense, row-major memory owned by somebody else.
struct View {
  DType dtype = DType::F32;
  std::span<const int64_t> shape = {};
  void* data = nullptr;
  bool given = true;
  RowReader* rows = nullptr;  // of an input that streams: `data` is its window
};
View view_of(const Tensor& t);

// What one call needs while it runs. Kept for the next call, which then allocates nothing; two
// calls must not use it at the same time.
struct Frame {
  struct Area {  // memory that the caller gave
    const std::string* name;
    uintptr_t from, to;
    bool output;
  };
  std::vector<Area> areas;
  std::vector<int64_t> params, dims;
  std::vector<size_t> first;    // by buffer: where its extents start in `dims`
  std::vector<void*> pointers;  // for rows: those of the first thread

  std::span<const int64_t> shape(const Image& image, size_t buffer) const {
    return {dims.data() + first[buffer], image.buffers[buffer].dims.size()};
  }

  // The program's own memory, laid out for these extents and this many threads.
  struct Placed {
    uint32_t buffer = 0;
    int worker = 0;
    size_t at = 0;
  };
  std::vector<int64_t> laid_out_for;
  int workers = 0;
  std::vector<Placed> placed;
  Block block;
  size_t block_bytes = 0;
  std::vector<std::vector<void*>> by_worker;  // for each thread, `pointers` with its own rows
  std::vector<NativeFailure> failures;
  std::vector<NativeContext> contexts;
};

struct KeptState;
class Exchange;

struct CallOptions {
  Monitor* monitor = nullptr;
  std::function<void(Moment&)> observe = {};     // adds the watched values, before it is shown
  std::vector<int64_t>* kernel_times = nullptr;  // receives nanoseconds, by kernel
  const KeptState* resume = nullptr;             // where to go on (state.h)
  Exchange* exchange = nullptr;                  // of a program with moves (exchange.h)
};

struct CallResult {
  std::optional<RuntimeError> error;
  std::optional<Stopped> stopped;
  uint32_t step = 0;    // at which step of the schedule it was stopped
  std::string refused;  // why `resume` does not fit; then nothing was run
  // E0812: the family, the address of the cell, and its value. The caller writes the message.
  struct NotFinite {
    std::string family;
    std::vector<int64_t> at;
    double value = 0;
  };
  std::optional<NotFinite> not_finite;
};

// Computes the extents of the inputs and of every buffer into `frame`; checks shapes, dtypes and
// entry constraints.
std::optional<RuntimeError> prepare(const Image& image, std::span<const View> inputs, Frame& frame);

// Call this after `prepare`. `pointers` of Output buffers must be set or null; null ones get memory
// from `frame`.
CallResult execute(const Image& image, NativeEntry entry, std::span<const View> inputs,
                   Frame& frame, const CallOptions& options = {});

// The size of an output in bytes; throws std::bad_alloc if it does not fit in 63 bits.
size_t byte_size(std::span<const int64_t> shape, DType dtype);

// A copy of a buffer after a call.
Tensor value_of(const Image& image, const Frame& frame, uint32_t buffer);
RuntimeError out_of_memory(const Image& image, const Frame& frame, size_t buffer);

}  // namespace ein
