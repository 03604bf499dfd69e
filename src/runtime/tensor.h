// A dense, row-major tensor that owns its cells: inputs, outputs and values of the reference
// evaluator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/source.h"
#include "runtime/dtype.h"

namespace ein {

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, std::vector<int64_t> shape);  // zero-filled
  static Tensor uncleared(DType dtype, std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  size_t rank() const { return shape_.size(); }
  int64_t size() const { return size_; }  // number of elements
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  template <class T>
  T* as() {
    return static_cast<T*>(data());
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data());
  }

  // Elements as double or int64, converted from and to the element type (floats round to nearest).
  double get_float(int64_t i) const;
  int64_t get_int(int64_t i) const;  // integers and bool
  void set_float(int64_t i, double value);
  void set_int(int64_t i, int64_t value);

 private:
  DType dtype_ = DType::F32;
  std::vector<int64_t> shape_;
  int64_t size_ = 1;
  std::shared_ptr<std::byte> data_;
};

// A failure while a program runs: assert, bounds, missing or ill-shaped input, memory. Exit 3.
struct RuntimeError {
  Code code;  // E08…
  std::string message;
  Span at = {};  // what failed, if that is known
  // The clause being computed: equal expressions share one node, which has the span of the first.
  Span statement = {};
  bool missing_file = false;
};

}  // namespace ein
