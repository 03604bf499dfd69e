#include "runtime/cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

namespace ein {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int kOldestDriver = 11000;  // CUDA 11.0, the first version with the instructions we use
constexpr int kOldestDevice = 80;     // compute capability 8.0
constexpr int kMajor = 75, kMinor = 76;  // the attributes with the compute capability

struct Opened {
  Cuda cuda;
  std::string why;  // why it cannot be used; empty if it can
};

bool find_all(void* library, Cuda& c, std::string& missing) {
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && missing.empty()) missing = name;
  };
  find(c.cuInit, "cuInit");
  find(c.cuDriverGetVersion, "cuDriverGetVersion");
  find(c.cuDeviceGetCount, "cuDeviceGetCount");
  find(c.cuDeviceGet, "cuDeviceGet");
  find(c.cuDeviceGetName, "cuDeviceGetName");
  find(c.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  find(c.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(c.cuCtxSetCurrent, "cuCtxSetCurrent");
  find(c.cuCtxSynchronize, "cuCtxSynchronize");
  find(c.cuModuleLoadDataEx, "cuModuleLoadDataEx");
  find(c.cuModuleGetFunction, "cuModuleGetFunction");
  find(c.cuMemAlloc, "cuMemAlloc_v2");
  find(c.cuMemFree, "cuMemFree_v2");
  find(c.cuMemcpyHtoD, "cuMemcpyHtoD_v2");
  find(c.cuMemcpyDtoH, "cuMemcpyDtoH_v2");
  find(c.cuMemsetD8, "cuMemsetD8_v2");
  find(c.cuLaunchKernel, "cuLaunchKernel");
  find(c.cuGetErrorString, "cuGetErrorString");
  return missing.empty();
}

std::string start(Cuda& c) {
  void* library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return fmt::format("`{}`, which is part of NVIDIA's driver, cannot be opened", kDriver);
  }
  std::string missing;
  if (!find_all(library, c, missing)) {
    return fmt::format("NVIDIA's driver is too old: it has no `{}`", missing);
  }
  if (int failed = c.cuInit(0)) return "NVIDIA's driver does not start: " + c.what_failed(failed);
  int version = 0, count = 0, device = 0, major = 0, minor = 0;
  if (int failed = c.cuDriverGetVersion(&version)) return c.what_failed(failed);
  if (version < kOldestDriver) {
    return fmt::format(
        "NVIDIA's driver is too old: it is for CUDA {}.{}, and at least {}.{} is needed",
        version / 1000, version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10);
  }
  if (int failed = c.cuDeviceGetCount(&count)) return c.what_failed(failed);
  if (count == 0) return "NVIDIA's driver finds no GPU in this machine";
  char name[128] = {};
  int failed = c.cuDeviceGet(&device, 0);
  if (!failed) failed = c.cuDeviceGetName(name, sizeof name - 1, device);
  if (!failed) failed = c.cuDeviceGetAttribute(&major, kMajor, device);
  if (!failed) failed = c.cuDeviceGetAttribute(&minor, kMinor, device);
  if (failed) return c.what_failed(failed);
  if (10 * major + minor < kOldestDevice) {
    return fmt::format("the GPU `{}` has compute capability {}.{}, and at least {}.{} is needed",
                       name, major, minor, kOldestDevice / 10, kOldestDevice % 10);
  }
  failed = c.cuDevicePrimaryCtxRetain(&c.context, device);
  return failed ? fmt::format("the GPU `{}` cannot be used: {}", name, c.what_failed(failed)) : "";
}

}  // namespace

std::string Cuda::what_failed(int result) const {
  const char* text = nullptr;
  if (!cuGetErrorString || cuGetErrorString(result, &text) != 0 || !text) {
    return fmt::format("error {} of the driver", result);
  }
  return text;
}

const Cuda* cuda(std::string& why) {
  static const Opened opened = [] {
    Opened out;
    out.why = start(out.cuda);
    return out;
  }();
  why = opened.why;
  return why.empty() ? &opened.cuda : nullptr;
}

}  // namespace ein
