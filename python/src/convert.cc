// Arguments that are taken as they are: arrays of the right type, dense and row-major, and numbers. All else
// goes to inputs.py, which converts it or says what is wrong with it.
#include <cmath>
#include <cstring>
#include <limits>

#include "native.h"

namespace einlang {
namespace {

// numpy.ndarray itself; subclasses may mean something else by their memory. Found when the first one comes.
PyTypeObject* g_ndarray = nullptr;

bool is_ndarray(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == g_ndarray) return true;
  if (g_ndarray) return false;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* numpy = PyDict_GetItemString(modules, "numpy");
  if (!numpy) return false;
  PyObject* found = PyObject_GetAttrString(numpy, "ndarray");
  if (!found) {
    PyErr_Clear();
    return false;
  }
  g_ndarray = reinterpret_cast<PyTypeObject*>(found);  // kept: it lives as long as the process
  return type == g_ndarray;
}

bool is_format(const char* format, Py_ssize_t itemsize, ein_dtype wanted) {
  ein_dtype found;
  return dtype_of_format(format, itemsize, found) && found == wanted;
}

bool is_dense(const Py_buffer& view) {
  if (view.len == 0) return true;
  Py_ssize_t step = view.itemsize;
  for (int k = view.ndim; k-- > 0;) {
    if (view.shape[k] != 1 && view.strides[k] != step) return false;
    step *= view.shape[k];
  }
  return true;
}

bool is_aligned(const void* data, Py_ssize_t itemsize) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(itemsize) == 0;
}

// An Array with the right names, or with none.
bool fits(const Array& a, const Program::Value& wanted) {
  if (a.dtype != wanted.dtype || a.rank() != wanted.rank || !a.labels.is_none()) return false;
  if (!a.dense()) return false;
  if (a.dims.is_none() || a.dims.is(wanted.dims)) return true;
  int same = PyObject_RichCompareBool(a.dims.ptr(), wanted.dims.ptr(), Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

bool take_float(PyObject* object, ein_dtype dtype, int64_t* scratch) {
  double value = PyFloat_AsDouble(object);
  if (dtype == EIN_F64) {
    std::memcpy(scratch, &value, sizeof value);
    return true;
  }
  if (dtype != EIN_F32) return false;
  auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value)) return false;
  std::memcpy(scratch, &narrow, sizeof narrow);
  return true;
}

}  // namespace

bool take_integer(PyObject* object, ein_dtype dtype, int64_t* scratch) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return false;
  auto put = [&](auto zero) {
    using T = decltype(zero);
    if (value < static_cast<long long>(std::numeric_limits<T>::min()) ||
        value > static_cast<long long>(std::numeric_limits<T>::max())) {
      return false;
    }
    auto narrow = static_cast<T>(value);
    std::memcpy(scratch, &narrow, sizeof narrow);
    return true;
  };
  switch (dtype) {
    case EIN_I8: return put(int8_t{});
    case EIN_I16: return put(int16_t{});
    case EIN_I32: return put(int32_t{});
    case EIN_I64: return put(int64_t{});
    case EIN_U8: return put(uint8_t{});
    default: return false;
  }
}

namespace {

bool take_number(PyObject* object, const Program::Value& wanted, int64_t* scratch,
                 ein_tensor& out) {
  if (wanted.rank != 0) return false;
  bool taken = PyFloat_CheckExact(object)  ? take_float(object, wanted.dtype, scratch)
               : PyLong_CheckExact(object) ? take_integer(object, wanted.dtype, scratch)
                                           : false;
  if (taken) out = {wanted.dtype, 0, nullptr, scratch};
  return taken;
}

bool take_buffer(PyObject* object, const Program::Value& wanted, int flags, Memory& memory,
                 int64_t* extents, ein_tensor& out) {
  Buffer& buffer = memory.buffers.emplace_back();
  if (!buffer.get(object, flags)) {
    PyErr_Clear();
    memory.buffers.pop_back();
    return false;
  }
  const Py_buffer& view = buffer.view();
  if (view.ndim != wanted.rank || !is_format(view.format, view.itemsize, wanted.dtype) ||
      !is_dense(view) || !is_aligned(view.buf, view.itemsize)) {
    memory.buffers.pop_back();
    return false;
  }
  // The extents are copied: those of a buffer end with it.
  for (int k = 0; k < view.ndim; ++k) extents[k] = view.shape[k];
  out = {wanted.dtype, wanted.rank, extents, view.buf};
  return true;
}

bool take_array(PyObject* object, const Program::Value& wanted, ein_tensor& out) {
  const Array& a = *nb::inst_ptr<Array>(object);
  if (!fits(a, wanted)) return false;
  out = {a.dtype, a.rank(), a.shape.data(), a.data};
  return true;
}

bool is_array(PyObject* object) {
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<Array>().ptr());
  return Py_TYPE(object) == type;
}

}  // namespace

bool take_input(PyObject* object, const Program::Value& wanted, Memory& memory, int64_t* extents,
                int64_t* scratch, ein_tensor& out) {
  if (is_ndarray(object)) {
    return take_buffer(object, wanted, PyBUF_STRIDED_RO | PyBUF_FORMAT, memory, extents, out);
  }
  if (is_array(object)) return take_array(object, wanted, out);
  return take_number(object, wanted, scratch, out);
}

bool take_output(PyObject* object, const Program::Value& wanted, Memory& memory, int64_t* extents,
                 ein_tensor& out) {
  if (is_ndarray(object)) {
    return take_buffer(object, wanted, PyBUF_STRIDED | PyBUF_FORMAT, memory, extents, out);
  }
  if (!is_array(object) || !nb::inst_ptr<Array>(object)->writable) return false;
  return take_array(object, wanted, out);
}

}  // namespace einlang
