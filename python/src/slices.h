// A call on each slice of a batch: what `vmap` of PyTorch and of JAX ends in. Arguments have the coordinates
// of the batch before those of the program. Without such coordinates it is one call.
#pragma once

#include <einlang/einlang.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace einlang {

// A few values without an allocation.
template <class T, size_t kFew>
class Small {
 public:
  explicit Small(size_t size) : many_(size > kFew ? size : 0), size_(size) {}
  T* data() { return many_.empty() ? few_ : many_.data(); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  std::span<T> all() { return {data(), size_}; }

 private:
  T few_[kFew];
  std::vector<T> many_;
  size_t size_;
};

// Steps of all arguments: `steps[i * levels + k]` are the bytes from one slice of argument i to the next along
// coordinate k of the batch; 0 where the slices are the same.
struct Slices {
  std::span<ein_tensor> tensors;  // the first slice of each: extents without those of the batch
  std::span<const int64_t> steps;
};

// Steps of an array that is dense: `within` are the bytes of one slice.
void dense_steps(std::span<const int64_t> batch, int64_t within, std::span<int64_t> out);
int64_t bytes_of(const ein_tensor& t);

// Stops at the first slice that fails. `poll` may be null.
ein_status call_slices(ein_program* program, std::span<const int64_t> batch, Slices inputs,
                       Slices outputs, int32_t (*poll)(void*), void* poll_data, ein_error* error);

}  // namespace einlang
