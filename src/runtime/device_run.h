// A program on a device, while it runs: its code, and where the newest copy of each buffer is.
//
// The host runs the program's machine code, which launches kernels one after the other and does the
// rest itself. Before it touches a buffer it says so; only then are cells copied back. What fails in
// a launch leaves a record on the device, of which the smallest key wins; the launches after it do
// nothing. The host looks at the record whenever it waits for the device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda.h"
#include "runtime/effect.h"
#include "runtime/execute.h"

namespace ein {

// The record of failures: words, in the memory of the device. Written by generated code too
// (codegen/emit_device.cc).
struct DeviceFailure {
  enum Word : uint32_t {
    Lock,    // 1 while somebody writes
    Set,     // 1 once somebody has
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
  // `wrong()` says what could not be begun. Inputs and constants are on the host; where an input
  // streams, its window is.
  DeviceRun(const Image& image, const Frame& frame, NativeFailure* failure);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  const std::optional<RuntimeError>& wrong() const { return wrong_; }
  // These give 1 when the program has to stop: `wrong()`, or a failure of the program, which is then
  // where the constructor was told.
  int32_t launch(int64_t number, int64_t blocks, const int64_t* words);
  int32_t touch(const int64_t* loads, int64_t load_count, const int64_t* stores,
                int64_t store_count);
  // All buffers are there that the host may look at while this kernel runs.
  int32_t fetch_all(uint32_t kernel);
  // Outputs are there. Whether a launch has failed, even if the host has, later.
  bool finish();

 private:
  struct Place {
    Cuda::Address at = 0;
    bool here = true, there = false;  // the newest cells are with the host, on the device
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

// Called by generated code; a context of a program for a device.
int32_t device_launch(const NativeContext* context, int64_t number, int64_t blocks,
                      const int64_t* words);
int32_t device_touch(const NativeContext* context, const int64_t* loads, int64_t load_count,
                     const int64_t* stores, int64_t store_count);

// Why no GPU can be used here, in a sentence; empty when one can.
std::string gpu_missing();

}  // namespace ein
