// Arguments that are taken as they are: arrays of the right type, dense and row-major, and numbers. All else
// goes to inputs.py, which converts it or says what is wrong with it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "dlpack.h"
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
  if (view.ndim > 0 && !view.shape) return false;
  if (view.len == 0 || !view.strides)
    return true;  // arrays of ctypes have none, whatever one asks for
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

// Whether one slice is dense and row-major; the slices may lie anywhere.
bool is_dense(const DlTensor& t, int32_t levels) {
  if (!t.strides || std::find(t.shape, t.shape + t.ndim, 0) != t.shape + t.ndim) return true;
  int64_t step = 1;
  for (int32_t k = t.ndim; k-- > levels;) {
    if (t.shape[k] != 1 && t.strides[k] != step) return false;
    step *= t.shape[k];
  }
  return true;
}

// A type of tensors that offers DLPack's functions, and what its tensors have besides memory.
struct TensorType {
  PyTypeObject* type;
  const DlExchange* api;
  bool has_gradients, has_sign;
};

// Null when the type offers none. The types that do are few, and live as long as the process.
const TensorType* tensor_type(PyTypeObject* type) {
  static std::vector<TensorType> known;
  for (const TensorType& t : known) {
    if (t.type == type) return &t;
  }
  // Not inherited: subclasses may mean something else by their memory.
  auto* object = reinterpret_cast<PyObject*>(type);
  nb::object own = nb::steal(PyObject_GetAttrString(object, "__dict__"));
  nb::object capsule;
  if (own.is_valid()) {
    capsule = nb::steal(PyMapping_GetItemString(own.ptr(), "__dlpack_c_exchange_api__"));
  }
  if (!capsule.is_valid()) {
    PyErr_Clear();
    return nullptr;
  }
  const DlExchange* api = exchange_of(capsule.ptr());
  if (!api) return nullptr;
  Py_INCREF(object);
  known.push_back({type, api, PyObject_HasAttrString(object, "requires_grad") == 1,
                   PyObject_HasAttrString(object, "is_neg") == 1});
  return &known.back();
}

// False also when there is no answer.
bool is_false(nb::object answer) {
  if (!answer.is_valid()) PyErr_Clear();
  return answer.is_valid() && answer.ptr() == Py_False;
}

// Whether PyTorch is inside of torch.func.jvp or its like, where tensors may have tangents.
bool has_tangents() {
  nb::object found =
      nb::borrow(PyDict_GetItemString(PyImport_GetModuleDict(), "torch.autograd.forward_ad"));
  if (!found.is_valid()) return false;
  nb::object level = nb::steal(PyObject_GetAttrString(found.ptr(), "_current_level"));
  if (level.is_valid() && PyLong_CheckExact(level.ptr())) return PyLong_AsLong(level.ptr()) >= 0;
  PyErr_Clear();
  return true;
}

bool take_foreign(PyObject* object, const Program::Value& wanted, int64_t* extents,
                  ein_tensor& out) {
  const TensorType* type = tensor_type(Py_TYPE(object));
  if (!type) return false;
  if (type->has_gradients &&
      (!is_false(nb::steal(PyObject_GetAttrString(object, "requires_grad"))) || has_tangents())) {
    return false;
  }
  // PyTorch changes signs without touching the memory.
  if (type->has_sign && !is_false(nb::steal(PyObject_CallMethod(object, "is_neg", nullptr)))) {
    return false;
  }
  DlTensor t;
  if (!take_exchanged(*type->api, object, wanted.dtype, wanted.rank, 0, t)) return false;
  std::copy(t.shape, t.shape + t.ndim, extents);
  out = {wanted.dtype, wanted.rank, extents, static_cast<char*>(t.data) + t.byte_offset};
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
  if (take_number(object, wanted, scratch, out)) return true;
  if (take_foreign(object, wanted, extents, out)) return true;
  // Subclasses of NumPy's arrays may mean something else by their memory.
  if (!PyObject_CheckBuffer(object) || !g_ndarray || PyObject_TypeCheck(object, g_ndarray)) {
    return false;
  }
  return take_buffer(object, wanted, PyBUF_STRIDED_RO | PyBUF_FORMAT, memory, extents, out);
}

const DlExchange* exchange_of(PyObject* capsule) {
  auto* table =
      static_cast<const DlExchange*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (!table) PyErr_Clear();
  while (table && table->major != 1) table = static_cast<const DlExchange*>(table->older);
  return table;
}

bool take_exchanged(const DlExchange& api, PyObject* object, ein_dtype dtype, int32_t rank,
                    int32_t levels, DlTensor& out) {
  if (api.tensor_of(object, &out) != 0) {
    PyErr_Clear();
    return false;
  }
  ein_dtype found;
  if (out.device.type != kCpu || !dtype_of_dl(out.dtype, found) || found != dtype) return false;
  if (out.ndim != rank + levels || !is_dense(out, levels)) return false;
  // Tensors without values have no memory.
  bool empty = std::find(out.shape, out.shape + out.ndim, 0) != out.shape + out.ndim;
  return empty || (out.data && is_aligned(static_cast<char*>(out.data) + out.byte_offset,
                                          static_cast<Py_ssize_t>(ein_dtype_size(dtype))));
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
