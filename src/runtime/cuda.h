// NVIDIA's driver, opened when a program first needs it. The prototypes are our own, so CUDA is not
// needed to build, nor to run programs on the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ein {

// The driver's functions with their names and arguments. Each returns 0, or an error number that
// `what_failed` explains.
struct Cuda {
  using Address = uint64_t;  // in the memory of the device
  int (*cuInit)(unsigned flags);
  int (*cuDriverGetVersion)(int* version);
  int (*cuDeviceGetCount)(int* count);
  int (*cuDeviceGet)(int* device, int ordinal);
  int (*cuDeviceGetName)(char* name, int length, int device);
  int (*cuDeviceGetAttribute)(int* value, int attribute, int device);
  int (*cuDevicePrimaryCtxRetain)(void** context, int device);
  int (*cuCtxSetCurrent)(void* context);
  int (*cuCtxSynchronize)();
  int (*cuModuleLoadDataEx)(void** module, const void* image, unsigned options, int* names,
                            void** values);
  int (*cuModuleGetFunction)(void** function, void* module, const char* name);
  int (*cuMemAlloc)(Address* at, size_t bytes);
  int (*cuMemFree)(Address at);
  int (*cuMemcpyHtoD)(Address to, const void* from, size_t bytes);
  int (*cuMemcpyDtoH)(void* to, Address from, size_t bytes);
  int (*cuMemsetD8)(Address at, unsigned char value, size_t bytes);
  int (*cuLaunchKernel)(void* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                        unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,
                        void* stream, void** arguments, void** more);
  int (*cuGetErrorString)(int result, const char** text);

  void* context = nullptr;  // for the first device
  std::string what_failed(int result) const;
};

// The driver and its first device. Null if there is none; then `why` says what is missing, in a
// sentence.
const Cuda* cuda(std::string& why);

}  // namespace ein
