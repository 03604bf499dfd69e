// einlang.Array: memory, type, extents and names. The buffer protocol and DLPack in both directions.
#include <nanobind/stl/string.h>

#include <cstring>

#include "dlpack.h"
#include "native.h"

namespace einlang {
namespace {

nb::object new_array(Array&& from) {
  nb::object made = nb::inst_alloc(nb::type<Array>());
  new (nb::inst_ptr<Array>(made)) Array(std::move(from));
  nb::inst_mark_ready(made);
  return made;
}

// ---- the buffer protocol

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Array& a = *nb::inst_ptr<Array>(self);
  view->obj = nullptr;
  const char* format = format_of(a.dtype);
  if (!format) {
    PyErr_SetString(PyExc_BufferError,
                    "the buffer protocol has no bfloat16: use numpy() or from_dlpack");
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) && !a.writable) {
    PyErr_SetString(PyExc_BufferError, "the array is read-only");
    return -1;
  }
  bool dense = a.dense();
  bool asks_dense = (flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
                    (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  bool asks_columns = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && a.rank() > 1;
  if ((asks_dense && !dense) || asks_columns) {
    PyErr_SetString(PyExc_BufferError, "the array is not laid out that way");
    return -1;
  }
  view->buf = a.data;
  view->itemsize = static_cast<Py_ssize_t>(ein_dtype_size(a.dtype));
  view->len = a.size() * view->itemsize;
  view->readonly = !a.writable;
  view->ndim = (flags & PyBUF_ND) ? a.rank() : 1;
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  view->shape = (flags & PyBUF_ND) ? reinterpret_cast<Py_ssize_t*>(a.shape.data()) : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                      ? reinterpret_cast<Py_ssize_t*>(a.strides.data())
                      : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  Py_INCREF(self);
  view->obj = self;
  return 0;
}

// ---- DLPack

enum Code : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

struct TypeRow {
  ein_dtype dtype;
  const char* format;
  Code code;
};
constexpr TypeRow kTypes[] = {{EIN_BOOL, "?", kBool}, {EIN_I8, "b", kInt},
                              {EIN_I16, "h", kInt},   {EIN_I32, "i", kInt},
                              {EIN_I64, "l", kInt},   {EIN_U8, "B", kUint},
                              {EIN_F16, "e", kFloat}, {EIN_BF16, nullptr, kBfloat},
                              {EIN_F32, "f", kFloat}, {EIN_F64, "d", kFloat}};

}  // namespace

DlType dl_type(ein_dtype dtype) {
  return {kTypes[dtype].code, static_cast<uint8_t>(8 * ein_dtype_size(dtype)), 1};
}

bool dtype_of_dl(DlType given, ein_dtype& out) {
  for (const TypeRow& row : kTypes) {
    DlType t = dl_type(row.dtype);
    if (t.code != given.code || t.bits != given.bits || given.lanes != 1) continue;
    out = row.dtype;
    return true;
  }
  return false;
}

namespace {

// Keeps the Array alive for whoever takes the tensor, with its strides in elements.
struct Export {
  PyObject* array;
  std::vector<int64_t> strides;
};

DlTensor dl_tensor(PyObject* self, Export& kept) {
  Array& a = *nb::inst_ptr<Array>(self);
  kept.array = self;
  Py_INCREF(self);
  auto size = static_cast<int64_t>(ein_dtype_size(a.dtype));
  for (int64_t s : a.strides) kept.strides.push_back(s / size);
  return {a.data, {kCpu, 0}, a.rank(), dl_type(a.dtype), a.shape.data(), kept.strides.data(), 0};
}

void release_export(Export* kept) {
  // Whoever ends the life of a tensor may do so from any thread.
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(kept->array);
  PyGILState_Release(state);
  delete kept;
}

template <class Managed>
void delete_managed(Managed* m) {
  release_export(static_cast<Export*>(m->context));
  delete m;
}

template <class Managed>
PyObject* capsule_of(Managed* m, const char* name) {
  return PyCapsule_New(m, name, [](PyObject* capsule) {
    const char* own = PyCapsule_GetName(capsule);
    bool versioned = own && std::strcmp(own, "dltensor_versioned") == 0;
    bool taken = !own || (!versioned && std::strcmp(own, "dltensor") != 0);
    if (taken) return;
    if (versioned) {
      auto* left = static_cast<DlVersioned*>(PyCapsule_GetPointer(capsule, own));
      left->deleter(left);
    } else {
      auto* left = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule, own));
      left->deleter(left);
    }
  });
}

nb::object to_dlpack(nb::handle self, nb::object, nb::object max_version, nb::object device,
                     nb::object copy) {
  Array& a = *nb::inst_ptr<Array>(self);
  if (!device.is_none() && nb::cast<int>(device[0]) != kCpu) {
    PyErr_SetString(PyExc_BufferError, "the array is in the memory of the CPU");
    throw nb::python_error();
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    PyErr_SetString(PyExc_BufferError, "the array is given as it is: copy it afterwards");
    throw nb::python_error();
  }
  bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  if (!versioned && !a.writable) {
    PyErr_SetString(PyExc_BufferError,
                    "the array is read-only, which needs DLPack 1.0: ask with max_version=(1, 0)");
    throw nb::python_error();
  }
  auto* kept = new Export{};
  if (versioned) {
    auto* m = new DlVersioned{1,
                              0,
                              kept,
                              delete_managed<DlVersioned>,
                              a.writable ? 0 : kReadOnly,
                              dl_tensor(self.ptr(), *kept)};
    return nb::steal(capsule_of(m, "dltensor_versioned"));
  }
  auto* m = new DlManaged{dl_tensor(self.ptr(), *kept), kept, delete_managed<DlManaged>};
  return nb::steal(capsule_of(m, "dltensor"));
}

// ValueError("device") or ValueError("dtype") when the tensor cannot be read here.
void fill_from_dl(const DlTensor& t, Array& out) {
  if (t.device.type != kCpu) throw nb::value_error("device");
  if (!dtype_of_dl(t.dtype, out.dtype)) throw nb::value_error("dtype");
  auto size = static_cast<int64_t>(ein_dtype_size(out.dtype));
  out.data = static_cast<char*>(t.data) + t.byte_offset;
  out.shape.assign(t.shape, t.shape + t.ndim);
  set_dense_strides(out);
  for (int32_t k = 0; t.strides && k < t.ndim; ++k) {
    out.strides[static_cast<size_t>(k)] = t.strides[k] * size;
  }
}

// The tensor of a capsule as an Array without names.
nb::object from_capsule(nb::object capsule) {
  nb::object made = new_array(Array());
  Array& a = *nb::inst_ptr<Array>(made);
  a.memory = std::make_shared<Memory>();
  a.dims = nb::none();
  a.labels = nb::none();
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto* m = static_cast<DlVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (m->major != 1) throw nb::value_error("version");
    fill_from_dl(m->tensor, a);
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    a.memory->foreign = m;
    a.memory->release = [](void* p) {
      auto* left = static_cast<DlVersioned*>(p);
      if (left->deleter) left->deleter(left);
    };
    a.writable = (m->flags & kReadOnly) == 0;
  } else {
    auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    if (!m) throw nb::python_error();
    fill_from_dl(m->tensor, a);
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    a.memory->foreign = m;
    a.memory->release = [](void* p) {
      auto* left = static_cast<DlManaged*>(p);
      if (left->deleter) left->deleter(left);
    };
    a.writable = true;
  }
  return made;
}

// ---- the rest

// An Array over the memory of an object with the buffer protocol, of another type of the same size if that
// is given: bfloat16 arrives as uint16.
nb::object wrap(nb::object object, int dtype, nb::object dims, nb::object labels) {
  auto memory = std::make_shared<Memory>();
  Buffer buffer;
  bool writable = buffer.get(object.ptr(), PyBUF_STRIDED | PyBUF_FORMAT);
  if (!writable) {
    PyErr_Clear();
    if (!buffer.get(object.ptr(), PyBUF_STRIDED_RO | PyBUF_FORMAT)) throw nb::python_error();
  }
  const Py_buffer& view = buffer.view();
  ein_dtype found = static_cast<ein_dtype>(dtype);
  if (dtype < 0 && !dtype_of_format(view.format, view.itemsize, found))
    throw nb::value_error("dtype");
  if (static_cast<size_t>(view.itemsize) != ein_dtype_size(found)) throw nb::value_error("dtype");
  nb::object made = new_array(Array());
  Array& a = *nb::inst_ptr<Array>(made);
  a.data = view.buf;
  a.dtype = found;
  a.shape.assign(view.shape, view.shape + view.ndim);
  a.strides.assign(view.strides, view.strides + view.ndim);
  a.dims = std::move(dims);
  a.labels = std::move(labels);
  a.writable = writable;
  memory->buffers.push_back(std::move(buffer));
  a.memory = std::move(memory);
  return made;
}

// The same memory under other names.
nb::object renamed(nb::handle self, nb::object dims, nb::object labels) {
  const Array& from = *nb::inst_ptr<Array>(self);
  nb::object made = new_array(Array(from));
  Array& a = *nb::inst_ptr<Array>(made);
  a.dims = std::move(dims);
  a.labels = std::move(labels);
  return made;
}

// The same memory as another type of the same size.
nb::object retyped(nb::handle self, int dtype) {
  auto wanted = static_cast<ein_dtype>(dtype);
  const Array& from = *nb::inst_ptr<Array>(self);
  if (ein_dtype_size(wanted) != ein_dtype_size(from.dtype)) throw nb::value_error("dtype");
  nb::object made = new_array(Array(from));
  nb::inst_ptr<Array>(made)->dtype = wanted;
  return made;
}

nb::object text_of(nb::handle self) {
  const Array& a = *nb::inst_ptr<Array>(self);
  std::vector<std::string> names(a.shape.size());
  for (size_t k = 0; k < names.size() && !a.dims.is_none(); ++k) {
    if (!a.dims[k].is_none()) names[k] = nb::cast<std::string>(nb::str(nb::object(a.dims[k])));
  }
  std::vector<const char*> coords;
  for (const std::string& n : names) coords.push_back(n.c_str());
  ein_tensor t{a.dtype, a.rank(), a.shape.data(), a.data};
  char* text = nullptr;
  ein_error error;
  if (ein_show(&t, coords.data(), &text, &error) != EIN_OK) throw nb::value_error(error.message);
  nb::object out = nb::steal(PyUnicode_FromString(text));
  ein_text_free(text);
  return out;
}

nb::tuple tuple_of(const std::vector<int64_t>& numbers) {
  nb::list out;
  for (int64_t n : numbers) out.append(n);
  return nb::tuple(out);
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

bool Array::dense() const {
  auto step = static_cast<int64_t>(ein_dtype_size(dtype));
  if (size() == 0) return true;
  for (size_t k = shape.size(); k-- > 0;) {
    if (shape[k] != 1 && strides[k] != step) return false;
    step *= shape[k];
  }
  return true;
}

int64_t Array::size() const {
  int64_t out = 1;
  for (int64_t n : shape) out *= n;
  return out;
}

void set_dense_strides(Array& a) {
  a.strides.resize(a.shape.size());
  auto step = static_cast<int64_t>(ein_dtype_size(a.dtype));
  for (size_t k = a.shape.size(); k-- > 0;) {
    a.strides[k] = step;
    step *= a.shape[k];
  }
}

const char* format_of(ein_dtype dtype) { return kTypes[dtype].format; }

bool dtype_of_format(const char* format, Py_ssize_t itemsize, ein_dtype& out) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == '\0' || format[1] != '\0') return false;
  char kind = *format;
  // The sizes of C's types differ between systems; what counts is the size that was given.
  if (kind == 'l' || kind == 'q' || kind == 'i' || kind == 'h' || kind == 'b' || kind == 'n') {
    switch (itemsize) {
      case 1: out = EIN_I8; return true;
      case 2: out = EIN_I16; return true;
      case 4: out = EIN_I32; return true;
      case 8: out = EIN_I64; return true;
      default: return false;
    }
  }
  for (const TypeRow& row : kTypes) {
    if (!row.format || *row.format != kind) continue;
    out = row.dtype;
    return true;
  }
  return false;
}

nb::object make_array(std::shared_ptr<Memory> memory, const ein_tensor& tensor, nb::object dims,
                      nb::object labels, bool writable) {
  nb::object made = new_array(Array());
  Array& a = *nb::inst_ptr<Array>(made);
  a.memory = std::move(memory);
  a.data = tensor.data;
  a.dtype = tensor.dtype;
  a.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  set_dense_strides(a);
  a.dims = std::move(dims);
  a.labels = std::move(labels);
  a.writable = writable;
  return made;
}

void define_array(nb::module_& m) {
  nb::class_<Array>(m, "Array", nb::type_slots(kSlots), nb::is_weak_referenceable(), nb::is_final())
      .def_prop_ro("shape", [](const Array& a) { return tuple_of(a.shape); })
      .def_prop_ro("dims", [](const Array& a) { return a.dims; })
      .def_prop_ro("coords", [](const Array& a) { return a.dims; })
      .def_prop_ro("ndim", &Array::rank)
      .def_prop_ro("size", &Array::size)
      .def_prop_ro("_dtype", [](const Array& a) { return static_cast<int>(a.dtype); })
      .def_prop_ro("_labels", [](const Array& a) { return a.labels; })
      .def_prop_ro("_dense", &Array::dense)
      .def_prop_ro("_writable", [](const Array& a) { return a.writable; })
      .def_prop_ro("_address", [](const Array& a) { return reinterpret_cast<uintptr_t>(a.data); })
      .def(
          "_renamed",
          [](nb::handle self, nb::object dims, nb::object labels) {
            return renamed(self, std::move(dims), std::move(labels));
          },
          nb::arg("dims").none(), nb::arg("labels").none())
      .def("_text", [](nb::handle self) { return text_of(self); })
      .def("__dlpack_device__", [](const Array&) { return nb::make_tuple(kCpu, 0); })
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
           nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
           nb::arg("copy").none() = nb::none());
  m.def("from_capsule", &from_capsule);
  m.def("retyped", &retyped);
  m.def("dtype_size", [](int dtype) { return ein_dtype_size(static_cast<ein_dtype>(dtype)); });
  m.def("wrap", &wrap, nb::arg("object"), nb::arg("dtype") = -1,
        nb::arg("dims").none() = nb::none(), nb::arg("labels").none() = nb::none());
}

}  // namespace einlang
