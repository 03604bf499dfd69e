// The extension module `einlang._native`: a thin layer over einlang.h. What is called often is here; what
// explains a mistake, or converts an unusual argument, is Python (program.py, inputs.py).
#pragma once

#include <Python.h>
#include <einlang/einlang.h>
#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace einlang {

namespace nb = nanobind;

// A buffer of a Python object, held as long as this lives.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : view_(other.view_), held_(other.held_) { other.held_ = false; }
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  bool get(PyObject* object, int flags) {
    held_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    return held_;
  }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_ = {};
  bool held_ = false;
};

// What arrays point into: the result of a call, the buffers that a caller gave, or a foreign tensor.
struct Memory {
  ein_result* result = nullptr;
  std::vector<Buffer> buffers;
  std::vector<nb::object> objects;
  std::vector<int64_t> extents;      // of those buffers
  void (*release)(void*) = nullptr;  // of a foreign tensor, with the GIL held
  void* foreign = nullptr;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    ein_result_free(result);
    if (release) release(foreign);
  }
};

// einlang.Array. Never moves: exports point at its extents.
struct Array {
  std::shared_ptr<Memory> memory;
  void* data = nullptr;
  ein_dtype dtype = EIN_F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in bytes
  nb::object dims;               // a tuple of str or None; None: the array has no names at all
  nb::object labels;             // a dict from dims to labels, or None
  bool writable = false;

  int32_t rank() const { return static_cast<int32_t>(shape.size()); }
  bool dense() const;  // and row-major
  int64_t size() const;
};
void set_dense_strides(Array& array);

// The element type of a buffer; false when the language has none like it.
bool dtype_of_format(const char* format, Py_ssize_t itemsize, ein_dtype& out);
const char* format_of(ein_dtype dtype);  // of the buffer protocol; null for bf16

nb::object make_array(std::shared_ptr<Memory> memory, const ein_tensor& tensor, nb::object dims,
                      nb::object labels, bool writable);

void define_array(nb::module_& m);
void define_program(nb::module_& m);
void define_result(nb::module_& m);
void define_loop(nb::module_& m);
void define_session(nb::module_& m);
void define_tensors(nb::module_& m);
void define_xla(nb::module_& m);

// einlang.Program, below its Python part.
struct Program {
  struct Value {
    nb::object name;  // the path, interned
    nb::object dims;
    ein_dtype dtype;
    int32_t rank;
    bool needed;  // false: an input that nothing depends on, which may be left out
  };
  ein_program* handle = nullptr;
  std::vector<Value> inputs, outputs;
  std::vector<std::string> output_paths;
  std::atomic<int64_t> nanoseconds{0};  // of the last call
  std::atomic<int64_t> copies{0};

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { ein_program_free(handle); }
};

// einlang.Result, or a part of it: the values whose paths begin with `prefix`.
struct Result {
  nb::object program;
  std::shared_ptr<Memory> memory;
  std::string prefix;
  nb::object labels;         // a dict, or None
  std::vector<bool> hidden;  // by output: not shown; empty: none
};
nb::object make_result(nb::object program, std::shared_ptr<Memory> memory, std::string prefix,
                       nb::object labels, std::vector<bool> hidden = {});

// A tensor that a Python object offers without a copy; false when it takes a closer look. `scratch` is room
// for a number.
bool take_input(PyObject* object, const Program::Value& wanted, Memory& memory, int64_t* extents,
                int64_t* scratch, ein_tensor& out);
// An int of Python as an integer of that type, into `scratch`; false when it does not fit.
bool take_integer(PyObject* object, ein_dtype dtype, int64_t* scratch);
// The same as take_input for memory that a value shall be written to.
bool take_output(PyObject* object, const Program::Value& wanted, Memory& memory, int64_t* extents,
                 ein_tensor& out);

}  // namespace einlang
