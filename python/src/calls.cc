#include "calls.h"

#include <chrono>
#include <cstring>

namespace einlang {
namespace {

// Below this, giving up the GIL costs more than it gives to others.
constexpr int64_t kReleaseAfter = 20'000;  // nanoseconds

// Something for each input that is not given; false when one of them is needed.
bool leave_out(const Program& p, PyObject* given, Arguments& to) {
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const Program::Value& v = p.inputs[i];
    if (given && PyDict_Contains(given, v.name.ptr()) == 1) continue;
    if (v.needed) return false;
    to.tensors[i] = {v.dtype, 0, nullptr, nullptr};
  }
  return true;
}

// Asks Python whether a signal came: Ctrl-C leaves an exception.
int32_t poll(void* data) {
  auto& running = *static_cast<Running*>(data);
  bool released = running.state != nullptr;
  if (released) PyEval_RestoreThread(running.state);
  int stop = PyErr_CheckSignals();
  if (released) running.state = PyEval_SaveThread();
  return stop != 0;
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void raise(const char* function, nb::object a, nb::object b, nb::object c, nb::object d) {
  nb::object errors = nb::module_::import_("einlang.errors");
  nb::object exception = errors.attr(function)(a, b, c, d);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

nb::object str(const char* text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
}

void raise_failure(ein_status status, const ein_error& error) {
  if (status == EIN_INTERRUPTED && PyErr_Occurred()) throw nb::python_error();
  raise("call_failure", nb::int_(static_cast<int>(status)),
        nb::make_tuple(str(error.code), str(error.message)), str(ein_failure(EIN_TEXT)),
        str(ein_failure(EIN_JSON)));
}

int64_t find(const std::vector<Program::Value>& values, PyObject* name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name.ptr() == name) return static_cast<int64_t>(i);
  }
  if (!PyUnicode_Check(name)) return -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (PyUnicode_Compare(values[i].name.ptr(), name) == 0) return static_cast<int64_t>(i);
  }
  return -1;
}

bool take_inputs(const Program& p, PyObject* given, Arguments& to, Memory& memory) {
  size_t count = given ? static_cast<size_t>(PyDict_Size(given)) : 0;
  if (count < p.inputs.size() && !leave_out(p, given, to)) return false;
  int64_t* extents = to.extents;
  PyObject *name = nullptr, *object = nullptr;
  Py_ssize_t place = 0;
  while (given && PyDict_Next(given, &place, &name, &object)) {
    int64_t i = find(p.inputs, name);
    if (i < 0) return false;
    const Program::Value& wanted = p.inputs[static_cast<size_t>(i)];
    if (!take_input(object, wanted, memory, extents, to.scratch + i, to.tensors[i])) return false;
    extents += wanted.rank;
  }
  return true;
}

bool take_outputs(const Program& p, PyObject* given, Arguments& to, Memory& memory) {
  size_t total = 0;
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    to.tensors[i].rank = -1;
    total += static_cast<size_t>(p.outputs[i].rank);
  }
  memory.extents.resize(total);  // kept as long as the result, which shows these arrays
  int64_t* extents = memory.extents.data();
  PyObject *name = nullptr, *object = nullptr;
  Py_ssize_t place = 0;
  while (PyDict_Next(given, &place, &name, &object)) {
    int64_t i = find(p.outputs, name);
    if (i < 0) return false;
    const Program::Value& wanted = p.outputs[static_cast<size_t>(i)];
    if (!take_output(object, wanted, memory, extents, to.tensors[i])) return false;
    memory.objects.push_back(nb::borrow(object));
    extents += wanted.rank;
  }
  return true;
}

void call(Program& p, const ein_tensor* inputs, const ein_tensor* outputs, Memory& memory) {
  ein_error error;
  Running running;
  ein_call_options options{sizeof options, outputs, poll, &running};
  bool release = p.nanoseconds.load(std::memory_order_relaxed) > kReleaseAfter;
  int64_t begin = now();
  if (release) running.state = PyEval_SaveThread();
  ein_status status =
      ein_call_with(p.handle, inputs, p.inputs.size(), &options, &memory.result, &error);
  if (release) PyEval_RestoreThread(running.state);
  p.nanoseconds.store(now() - begin, std::memory_order_relaxed);
  if (status != EIN_OK) raise_failure(status, error);
}

PyObject* guarded(nb::object (*body)(PyObject*, PyObject*), PyObject* self, PyObject* given) {
  try {
    return body(self, given).release().ptr();
  } catch (nb::python_error& e) { e.restore(); } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) { PyErr_SetString(PyExc_RuntimeError, e.what()); }
  return nullptr;
}

}  // namespace einlang
