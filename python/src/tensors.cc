// einlang._native.TensorCall: the kernel of a PyTorch operator. Tensors come and go through the C functions
// that their type offers for DLPack, so nothing here is built against PyTorch.
//
// Arguments of the operator are the inputs of the program, then `levels`: how many coordinates of a batch
// stand before those of the program. An argument that cannot be taken as it is goes to `adapt`, a function of
// torch.py, which raises an exception that says why, or gives arguments that can be taken.
#include <algorithm>

#include "calls.h"
#include "dlpack.h"
#include "slices.h"

namespace einlang {
namespace {

struct TensorCall {
  nb::object program, adapt;
  const DlExchange* api = nullptr;
  size_t extents = 0;  // of all outputs
};

constexpr size_t kFew = 12, kFewLevels = 16, kFewExtents = 32;

struct Inputs {
  Small<ein_tensor, kFew> tensors;
  Small<int64_t, kFew> scratch;
  Small<int64_t, kFewLevels> steps;
  const int64_t* batch = nullptr;  // extents, those of the first tensor
  Inputs(size_t count, size_t levels) : tensors(count), scratch(count), steps(count * levels) {}
};

bool take_tensor(const TensorCall& call, PyObject* object, const Program::Value& wanted,
                 int32_t levels, ein_tensor& out, int64_t* steps, const int64_t*& batch) {
  DlTensor t;
  if (!take_exchanged(*call.api, object, wanted.dtype, wanted.rank, levels, t)) return false;
  auto size = static_cast<int64_t>(ein_dtype_size(wanted.dtype));
  if (!batch) batch = t.shape;
  if (!std::equal(batch, batch + levels, t.shape)) return false;
  out = {wanted.dtype, wanted.rank, t.shape + levels, static_cast<char*>(t.data) + t.byte_offset};
  std::span<const int64_t> outer(t.shape, static_cast<size_t>(levels));
  if (!t.strides) {
    dense_steps(outer, bytes_of(out), {steps, outer.size()});
  } else {
    for (int32_t k = 0; k < levels; ++k) steps[k] = t.strides[k] * size;
  }
  return true;
}

bool take_inputs(const TensorCall& call, const Program& p, PyObject* args, int32_t levels,
                 Inputs& to) {
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    PyObject* object = PyTuple_GetItem(args, static_cast<Py_ssize_t>(i));
    const Program::Value& wanted = p.inputs[i];
    int64_t* steps = to.steps.data() + i * static_cast<size_t>(levels);
    if (PyLong_Check(object)) {
      if (wanted.rank != 0 || !take_integer(object, wanted.dtype, &to.scratch[i])) return false;
      to.tensors[i] = {wanted.dtype, 0, nullptr, &to.scratch[i]};
      std::fill(steps, steps + levels, 0);
    } else if (!take_tensor(call, object, wanted, levels, to.tensors[i], steps, to.batch)) {
      return false;
    }
  }
  return to.batch || levels == 0;
}

// Memory that PyTorch allocates, not yet a tensor of Python.
struct Outputs {
  Small<DlVersioned*, kFew> owned;
  Small<ein_tensor, kFew> tensors;
  Small<int64_t, kFewLevels> steps;
  Small<int64_t, kFewExtents> shapes;
  Outputs(size_t count, size_t levels, size_t extents)
      : owned(count), tensors(count), steps(count * levels), shapes(extents + count * levels) {
    std::fill(owned.all().begin(), owned.all().end(), nullptr);
  }
  ~Outputs() {
    for (DlVersioned* left : owned.all()) {
      if (left) left->deleter(left);
    }
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
};

void allocate(const TensorCall& call, const Program& p, std::span<const int64_t> batch,
              std::span<const int64_t> extents, Outputs& to) {
  int64_t* shape = to.shapes.data();
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const Program::Value& v = p.outputs[i];
    auto rank = static_cast<size_t>(v.rank);
    int64_t* own = std::copy(batch.begin(), batch.end(), shape);
    std::copy_n(extents.data(), rank, own);
    extents = extents.subspan(rank);
    DlTensor like{
        nullptr, {kCpu, 0}, static_cast<int32_t>(batch.size()) + v.rank, dl_type(v.dtype), shape,
        nullptr, 0};
    auto report = [](void*, const char*, const char* message) {
      PyErr_SetString(PyExc_RuntimeError, message);
    };
    if (call.api->allocate(&like, &to.owned[i], nullptr, report) != 0) {
      to.owned[i] = nullptr;
      throw nb::python_error();
    }
    const DlTensor& made = to.owned[i]->tensor;
    to.tensors[i] = {v.dtype, v.rank, own, static_cast<char*>(made.data) + made.byte_offset};
    dense_steps(batch, bytes_of(to.tensors[i]),
                to.steps.all().subspan(i * batch.size(), batch.size()));
    shape = own + rank;
  }
}

nb::object finished(const TensorCall& call, Outputs& outputs, size_t i) {
  void* object = nullptr;
  DlVersioned* tensor = outputs.owned[i];
  outputs.owned[i] = nullptr;
  if (call.api->object_of(tensor, &object) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

// Null when an argument cannot be taken as it is.
nb::object call_tensors(const TensorCall& call, PyObject* args) {
  Program& p = *nb::inst_ptr<Program>(call.program);
  auto count = static_cast<Py_ssize_t>(p.inputs.size());
  if (PyTuple_Size(args) != count + 1) return {};
  auto levels = static_cast<int32_t>(PyLong_AsLong(PyTuple_GetItem(args, count)));
  if (PyErr_Occurred()) throw nb::python_error();
  auto batch_rank = static_cast<size_t>(levels);
  Inputs inputs(p.inputs.size(), batch_rank);
  if (!take_inputs(call, p, args, levels, inputs)) return {};
  std::span<const int64_t> batch(inputs.batch, batch_rank);
  Small<int64_t, kFewExtents> extents(call.extents);
  ein_error error;
  ein_status status = ein_extents(p.handle, inputs.tensors.data(), p.inputs.size(), extents.data(),
                                  call.extents, &error);
  if (status != EIN_OK) raise_failure(status, error);
  Outputs outputs(p.outputs.size(), batch_rank, call.extents);
  allocate(call, p, batch, extents.all(), outputs);
  Running running;
  status = timed(p, running, [&] {
    return call_slices(p.handle, batch, {inputs.tensors.all(), inputs.steps.all()},
                       {outputs.tensors.all(), outputs.steps.all()}, poll, &running, &error);
  });
  if (status != EIN_OK) raise_failure(status, error);
  if (p.outputs.size() == 1) return finished(call, outputs, 0);
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(p.outputs.size())));
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    PyTuple_SetItem(out.ptr(), static_cast<Py_ssize_t>(i),
                    finished(call, outputs, i).release().ptr());
  }
  return out;
}

PyObject* call_operator(PyObject* self, PyObject* args, PyObject*) {
  const TensorCall& call = *nb::inst_ptr<TensorCall>(self);
  try {
    nb::object out = call_tensors(call, args);
    if (out.is_valid()) return out.release().ptr();
    nb::object adapted = call.adapt(nb::handle(args));
    out = call_tensors(call, adapted.ptr());
    if (out.is_valid()) return out.release().ptr();
    PyErr_SetString(PyExc_AssertionError, "adapt() gave arguments that the operator cannot take");
  } catch (nb::python_error& e) { e.restore(); } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) { PyErr_SetString(PyExc_RuntimeError, e.what()); }
  return nullptr;
}

void init(TensorCall* self, nb::object program, nb::handle exchange, nb::object adapt) {
  const DlExchange* table = exchange_of(exchange.ptr());
  if (!table) throw nb::value_error("the tensor type offers no version 1 of DLPack's functions");
  const Program& p = *nb::inst_ptr<Program>(program);
  size_t extents = 0;
  for (const Program::Value& v : p.outputs) extents += static_cast<size_t>(v.rank);
  new (self) TensorCall{std::move(program), std::move(adapt), table, extents};
}

PyType_Slot kSlots[] = {{Py_tp_call, reinterpret_cast<void*>(call_operator)}, {0, nullptr}};

}  // namespace

void define_tensors(nb::module_& m) {
  nb::class_<TensorCall>(m, "TensorCall", nb::type_slots(kSlots))
      .def("__init__", &init, nb::arg("program"), nb::arg("exchange"), nb::arg("adapt"));
}

}  // namespace einlang
