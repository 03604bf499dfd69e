// DLPack as its specification lays it out: tensors that other libraries offer without a copy.
#pragma once

#include <Python.h>
#include <einlang/einlang.h>

#include <cstdint>

namespace einlang {

struct DlDevice {
  int32_t type, id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: dense
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1;
constexpr int32_t kCpu = 1;

// The functions behind `__dlpack_c_exchange_api__` of a tensor type. Each returns 0, or another number after
// a failure: the first then has called `set_error`, the others have set a Python exception.
struct DlExchange {
  uint32_t major, minor;
  void* older;
  int (*allocate)(DlTensor* like, DlVersioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_of)(void* object, DlVersioned** out);
  int (*object_of)(DlVersioned* tensor, void** out);  // takes the tensor over
  int (*tensor_of)(void* object, DlTensor* out);      // valid as long as the object
  int (*stream_of)(int32_t device_type, int32_t device, void** out);
};

// The table of version 1 in a capsule; null when there is none.
const DlExchange* exchange_of(PyObject* capsule);
// A tensor of the CPU that a program can read as it is; false, without an exception, when it takes a closer
// look. `levels` coordinates before those of the program may have any strides.
bool take_exchanged(const DlExchange& api, PyObject* object, ein_dtype dtype, int32_t rank,
                    int32_t levels, DlTensor& out);

DlType dl_type(ein_dtype dtype);
// False when the language has no such type.
bool dtype_of_dl(DlType given, ein_dtype& out);

}  // namespace einlang
