#include "runtime/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.h"

namespace ein {
namespace {

constexpr int kOutOfMemory = 2;             // CUDA_ERROR_OUT_OF_MEMORY
constexpr int64_t kMostBlocks = INT32_MAX;  // of a launch, along x

// The code of a program, which is loaded once in this process.
struct LoadedCode {
  int failed = 0;
  std::string log;
  std::vector<void*> functions;
};

const LoadedCode& loaded(const Cuda& cuda, const Image& image) {
  static std::mutex mutex;
  static std::map<std::string, LoadedCode> all;
  std::lock_guard lock(mutex);
  auto [it, fresh] = all.try_emplace(image.ptx);
  LoadedCode& out = it->second;
  if (!fresh) return out;
  constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // CU_JIT_ERROR_LOG_BUFFER, and its size
  char log[4096] = {};
  int names[] = {kErrorLog, kErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  void* module = nullptr;
  out.failed = cuda.cuModuleLoadDataEx(&module, image.ptx.c_str(), 2, names, values);
  out.log = log;
  for (const Image::Launch& n : image.launches) {
    void* function = nullptr;
    if (!out.failed) out.failed = cuda.cuModuleGetFunction(&function, module, n.name.c_str());
    out.functions.push_back(function);
  }
  return out;
}

}  // namespace

std::string gpu_missing() {
  std::string why;
  cuda(why);
  return why;
}

DeviceRun::DeviceRun(const Image& image, const Frame& frame, NativeFailure* failure)
    : image_(image), frame_(frame), failure_(failure), places_(image.buffers.size()) {
  std::string why;
  cuda_ = cuda(why);
  if (!cuda_) {
    wrong_ = RuntimeError{Code::E0813, "no GPU can be used: " + why};
    return;
  }
  if (!fine(cuda_->cuCtxSetCurrent(cuda_->context), "beginning")) return;
  const LoadedCode& code = loaded(*cuda_, image);
  if (code.failed) {
    wrong_ = RuntimeError{Code::E0813, fmt::format("the GPU does not accept the program: {}{}{}",
                                                   cuda_->what_failed(code.failed),
                                                   code.log.empty() ? "" : "; ", code.log)};
    return;
  }
  functions_ = code.functions;
  for (uint32_t b = 0; b < places_.size(); ++b) {  // other buffers have no contents yet
    auto space = image.buffers[b].space;
    places_[b].there =
        space != Image::Buffer::Space::Input && space != Image::Buffer::Space::Constant;
  }
  const size_t bytes = DeviceFailure::kWords * sizeof(int64_t);
  if (fine(cuda_->cuMemAlloc(&record_, bytes), "getting memory")) {
    fine(cuda_->cuMemsetD8(record_, 0, bytes), "beginning");
  }
}

DeviceRun::~DeviceRun() {
  if (!cuda_) return;
  cuda_->cuCtxSynchronize();
  for (const Place& p : places_) {
    if (p.at) cuda_->cuMemFree(p.at);
  }
  if (record_) cuda_->cuMemFree(record_);
  if (scratch_) cuda_->cuMemFree(scratch_);
}

bool DeviceRun::fine(int result, const char* doing) {
  if (result != 0 && !wrong_) {
    wrong_ = RuntimeError{
        Code::E0813, fmt::format("the GPU failed while {}: {}", doing, cuda_->what_failed(result))};
  }
  return result == 0;
}

size_t DeviceRun::bytes_of(uint32_t buffer) const {
  return byte_size(frame_.shape(image_, buffer), image_.buffers[buffer].dtype);
}

bool DeviceRun::reserve(uint32_t buffer) {
  Place& place = places_[buffer];
  if (place.at) return true;
  int result = cuda_->cuMemAlloc(&place.at, std::max<size_t>(bytes_of(buffer), 1));
  if (result == kOutOfMemory) {
    wrong_ = out_of_memory(image_, frame_, buffer);
    wrong_->message = "on the GPU: " + wrong_->message;
    return false;
  }
  return fine(result, "getting memory");
}

bool DeviceRun::upload(uint32_t buffer) {
  Place& place = places_[buffer];
  if (!reserve(buffer)) return false;
  if (place.there) return true;
  place.there = true;
  size_t bytes = bytes_of(buffer);
  return bytes == 0 ||
         fine(cuda_->cuMemcpyHtoD(place.at, frame_.pointers[buffer], bytes), "copying cells to it");
}

bool DeviceRun::download(uint32_t buffer) {
  Place& place = places_[buffer];
  if (place.here) return true;
  place.here = true;
  size_t bytes = bytes_of(buffer);
  return bytes == 0 || fine(cuda_->cuMemcpyDtoH(frame_.pointers[buffer], place.at, bytes),
                            "computing or copying cells back");
}

// Waits for all launches, then looks at the record of failures.
bool DeviceRun::look_at_record() {
  if (failed_ || wrong_) return false;
  int64_t words[DeviceFailure::kWords] = {};
  if (!fine(cuda_->cuMemcpyDtoH(words, record_, sizeof words), "computing")) return false;
  failed_ = words[DeviceFailure::Set] != 0;
  if (!failed_) return true;
  failure_->site = words[DeviceFailure::Site];
  failure_->caller = -1;
  std::copy_n(words + DeviceFailure::Values, NativeFailure::kMaxValues, failure_->values);
  return false;
}

int32_t DeviceRun::launch(int64_t number, int64_t blocks, const int64_t* words) {
  if (blocks <= 0) return 0;
  const Image::Launch& n = image_.launches[static_cast<size_t>(number)];
  if (blocks > kMostBlocks) {
    wrong_ =
        RuntimeError{Code::E0701, fmt::format("a GPU cannot run `{}` for so many cells", n.name)};
    return 1;
  }
  std::vector<int64_t> values;
  auto is_scratch = [&](uint32_t b) {
    return image_.buffers[b].space == Image::Buffer::Space::Row;
  };
  size_t bytes = 0;  // scratch memory of all blocks
  std::vector<size_t> from;
  for (uint32_t b : n.buffers) {
    if (!is_scratch(b)) continue;
    from.push_back(bytes);
    bytes += (bytes_of(b) * static_cast<size_t>(blocks) + 255) / 256 * 256;
  }
  if (bytes > scratch_bytes_) {
    if (scratch_ && !fine(cuda_->cuMemFree(scratch_), "freeing memory")) return 1;
    scratch_ = 0;
    if (int result = cuda_->cuMemAlloc(&scratch_, bytes)) {
      wrong_ = RuntimeError{result == kOutOfMemory ? Code::E0807 : Code::E0813,
                            fmt::format("on the GPU: {} bytes of scratch for `{}`: {}", bytes,
                                        n.name, cuda_->what_failed(result))};
      return 1;
    }
    scratch_bytes_ = bytes;
  }
  size_t piece = 0;
  for (uint32_t b : n.buffers) {
    if (is_scratch(b)) {
      values.push_back(static_cast<int64_t>(scratch_ + from[piece++]));
      continue;
    }
    if (!upload(b)) return 1;
    values.push_back(static_cast<int64_t>(places_[b].at));
  }
  for (uint32_t b : n.written) places_[b].here = is_scratch(b);
  for (uint32_t k : n.extents) values.push_back(frame_.dims[k]);
  values.insert(values.end(), words, words + n.words);
  values.push_back(static_cast<int64_t>(record_));
  values.push_back(++serial_);
  std::vector<void*> arguments;
  for (int64_t& v : values) arguments.push_back(&v);
  int result =
      cuda_->cuLaunchKernel(functions_[static_cast<size_t>(number)], static_cast<unsigned>(blocks),
                            1, 1, n.threads, 1, 1, 0, nullptr, arguments.data(), nullptr);
  return fine(result, "starting a kernel") ? 0 : 1;
}

int32_t DeviceRun::touch(const int64_t* loads, int64_t load_count, const int64_t* stores,
                         int64_t store_count) {
  // Rows that the host does not store must keep their cells.
  bool waits = false;
  for (const auto& [list, count] : {std::pair{loads, load_count}, {stores, store_count}}) {
    for (int64_t i = 0; i < count; ++i) waits |= !places_[static_cast<size_t>(list[i])].here;
  }
  if (waits && serial_ > 0 && !look_at_record()) return 1;
  for (const auto& [list, count] : {std::pair{loads, load_count}, {stores, store_count}}) {
    for (int64_t i = 0; i < count; ++i) {
      if (!download(static_cast<uint32_t>(list[i]))) return 1;
    }
  }
  for (int64_t i = 0; i < store_count; ++i) places_[static_cast<size_t>(stores[i])].there = false;
  return 0;
}

int32_t DeviceRun::fetch_all(uint32_t kernel) {
  if (!look_at_record()) return 1;
  for (uint32_t b = 0; b < places_.size(); ++b) {
    // Other buffers that share this memory may have overwritten it.
    const Lifetime& lives = image_.buffers[b].lives;
    if (lives.first <= kernel && kernel <= lives.last && !download(b)) return 1;
  }
  return 0;
}

bool DeviceRun::finish() {
  if (!look_at_record()) return false;
  for (uint32_t b = 0; b < places_.size(); ++b) {
    if (image_.buffers[b].space == Image::Buffer::Space::Output && !download(b)) return false;
  }
  return true;
}

int32_t device_launch(const NativeContext* context, int64_t number, int64_t blocks,
                      const int64_t* words) {
  return static_cast<DeviceRun*>(context->device)->launch(number, blocks, words);
}

int32_t device_touch(const NativeContext* context, const int64_t* loads, int64_t load_count,
                     const int64_t* stores, int64_t store_count) {
  return static_cast<DeviceRun*>(context->device)->touch(loads, load_count, stores, store_count);
}

}  // namespace ein
