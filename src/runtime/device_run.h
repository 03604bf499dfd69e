// A program on a device, while it runs: its code, and where the newest copy of each buffer is.
//
// The host runs the program's machine code, which launches kernels one after the other and does the
// rest itself. Before the host accesses a buffer it announces that, and only then are cells copied
// back. A failure in a launch leaves a record on the device. Of several records, the one with the
// smallest key wins, and later launches do nothing. The host looks at the record whenever it waits
// for the device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda.h"
#include "runtime/effect.h"
#include "runtime/execute.h"

namespace ein {

// The record of failures: words in the memory of the device. Generated code writes it, too
// (codegen/emit_device.cc).
struct DeviceFailure {
  enum Word : uint32_t {
    Lock,    // 1 while a thread writes
    Set,     // 1 once a thread has written
    Serial,  // of the launch; this and the next three are the key
    Block,
    Phase,  // of the block: its warp, then which part of the work
    Thread,
    Site,
    Values,
    kWords = Values + NativeFailure::kMaxValues
  };
};

class DeviceRun {
 public:
  // If the run cannot begin, `wrong()` says why. Inputs and constants are on the host; of an input
  // that streams, its window.
  DeviceRun(const Image& image, const Frame& frame, NativeFailure* failure);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  const std::optional<RuntimeError>& wrong() const { return wrong_; }
  // Both return 1 if the program must stop: because of `wrong()`, or because of a failure, which is
  // then in the `failure` given to the constructor.
  int32_t launch(int64_t number, int64_t blocks, const int64_t* words);
  int32_t touch(const int64_t* loads, int64_t load_count, const int64_t* stores,
                int64_t store_count);
  // Makes sure that all buffers which the host may read during this kernel are on the host.
  int32_t fetch_all(uint32_t kernel);
  // Copies the outputs to the host. Returns whether a launch has failed, even if the host failed as
  // well, later.
  bool finish();

 private:
  struct Place {
    Cuda::Address at = 0;
    bool here = true, there = false;  // whether the host, and the device, have the newest cells
  };
  size_t bytes_of(uint32_t buffer) const;
  bool fine(int result, const char* doing);
  bool reserve(uint32_t buffer);
  bool upload(uint32_t buffer);
  bool download(uint32_t buffer);
  bool look_at_record();

  const Image& image_;
  const Frame& frame_;
  NativeFailure* failure_;
  const Cuda* cuda_ = nullptr;
  std::vector<void*> functions_;  // by launch
  std::vector<Place> places_;     // by buffer
  Cuda::Address record_ = 0, scratch_ = 0;
  size_t scratch_bytes_ = 0;
  int64_t serial_ = 0;
  bool failed_ = false;
  std::optional<RuntimeError> wrong_;
};

// Called by generated code with the context of a program for a device.
int32_t device_launch(const NativeContext* context, int64_t number, int64_t blocks,
                      const int64_t* words);
int32_t device_touch(const NativeContext* context, const int64_t* loads, int64_t load_count,
                     const int64_t* stores, int64_t store_count);

// Why no GPU can be used here, in a sentence; empty if one can.
std::string gpu_missing();

}  // namespace ein
