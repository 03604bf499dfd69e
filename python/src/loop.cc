// einlang.Loop: a step that is called again and again. The state stays in two buffers for each of its values, one
// that the step reads and one that it writes, which then change places.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "calls.h"

namespace einlang {
namespace {

constexpr size_t kAlignment = 64;  // of vector registers and cache lines

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Room = std::unique_ptr<void, Free>;

Room make_room(size_t bytes) {
  size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
  Room out(std::aligned_alloc(kAlignment, whole));
  if (!out) throw std::bad_alloc();
  return out;
}

struct State {
  size_t input, output;  // of the program
  std::vector<int64_t> shape;
  size_t bytes = 0;
  Room now, next;  // null until it is set
};

struct Loop {
  nb::object program;
  std::vector<State> states;
  std::vector<bool> hidden;    // by output: belongs to the state
  std::vector<bool> is_state;  // by input
  std::mutex running;          // one step at a time

  Program& p() const { return *nb::inst_ptr<Program>(program); }
};

// The pairs are (input, output), by number.
void init(Loop* self, nb::object program, std::vector<std::pair<size_t, size_t>> pairs) {
  new (self) Loop;
  self->program = std::move(program);
  self->hidden.resize(self->p().outputs.size());
  self->is_state.resize(self->p().inputs.size());
  for (auto [input, output] : pairs) {
    self->states.push_back({input, output, {}, 0, nullptr, nullptr});
    self->is_state.at(input) = true;
    self->hidden.at(output) = true;
  }
}

// `array` is converted: dense, of the right type.
void set(Loop& loop, size_t number, nb::handle array) {
  State& s = loop.states.at(number);
  const Program::Value& wanted = loop.p().inputs[s.input];
  Memory held;
  std::vector<int64_t> extents(static_cast<size_t>(wanted.rank) + 1);
  int64_t scratch = 0;
  ein_tensor given;
  if (!take_input(array.ptr(), wanted, held, extents.data(), &scratch, given)) {
    throw nb::value_error("the state is given as a converted array");
  }
  s.shape.assign(given.shape, given.shape + given.rank);
  s.bytes = ein_dtype_size(given.dtype);
  for (int64_t n : s.shape) s.bytes *= static_cast<size_t>(n);
  s.now = make_room(s.bytes);
  s.next = make_room(s.bytes);
  std::memcpy(s.now.get(), given.data, s.bytes);
}

// A copy, which later steps leave alone.
nb::object get(const Loop& loop, size_t number) {
  const State& s = loop.states.at(number);
  if (!s.now) return nb::none();
  const Program::Value& value = loop.p().inputs[s.input];
  auto memory = std::make_shared<Memory>();
  Room copy = make_room(s.bytes);
  std::memcpy(copy.get(), s.now.get(), s.bytes);
  ein_tensor tensor{value.dtype, value.rank, s.shape.data(), copy.get()};
  memory->release = std::free;
  memory->foreign = copy.release();
  return make_array(std::move(memory), tensor, value.dims, nb::none(), true);
}

// Null when something takes a closer look.
nb::object step(PyObject* self, PyObject* given, nb::object labels) {
  Loop& loop = *nb::inst_ptr<Loop>(self);
  Program& p = loop.p();
  size_t count = given ? static_cast<size_t>(PyDict_Size(given)) : 0;
  if (count != p.inputs.size() - loop.states.size()) return {};
  Arguments inputs(p.inputs), outputs(p.outputs);
  Memory held;
  held.buffers.reserve(count);
  int64_t* extents = inputs.extents;
  PyObject *name = nullptr, *object = nullptr;
  Py_ssize_t place = 0;
  while (given && PyDict_Next(given, &place, &name, &object)) {
    int64_t i = find(p.inputs, name);
    if (i < 0 || loop.is_state[static_cast<size_t>(i)]) return {};
    const Program::Value& wanted = p.inputs[static_cast<size_t>(i)];
    if (!take_input(object, wanted, held, extents, inputs.scratch + i, inputs.tensors[i]))
      return {};
    extents += wanted.rank;
  }
  std::unique_lock alone(loop.running, std::try_to_lock);
  if (!alone.owns_lock()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "another thread is in a step of this loop: steps follow each other");
    throw nb::python_error();
  }
  for (size_t k = 0; k < p.outputs.size(); ++k) outputs.tensors[k].rank = -1;
  for (const State& s : loop.states) {
    if (!s.now) return {};
    const Program::Value &from = p.inputs[s.input], &to = p.outputs[s.output];
    inputs.tensors[s.input] = {from.dtype, from.rank, s.shape.data(), s.now.get()};
    outputs.tensors[s.output] = {to.dtype, to.rank, s.shape.data(), s.next.get()};
  }
  auto memory = std::make_shared<Memory>();
  call(p, inputs.tensors, outputs.tensors, *memory);
  for (State& s : loop.states) std::swap(s.now, s.next);
  return make_result(loop.program, std::move(memory), "", std::move(labels), loop.hidden);
}

PyObject* call_by_keyword(PyObject* self, PyObject* args, PyObject* given) {
  if (PyTuple_Size(args) > 0) {
    PyErr_SetString(PyExc_TypeError, "inputs are given by name: loop(x=x, y=y)");
    return nullptr;
  }
  return guarded(
      [](PyObject* loop, PyObject* inputs) {
        nb::object out = step(loop, inputs, nb::none());
        if (out.is_valid()) return out;
        nb::object from = inputs ? nb::borrow(inputs) : nb::object(nb::dict());
        return nb::object(nb::handle(loop).attr("_call_slowly")(from));
      },
      self, given);
}

PyType_Slot kSlots[] = {{Py_tp_call, reinterpret_cast<void*>(call_by_keyword)}, {0, nullptr}};

}  // namespace

void define_loop(nb::module_& m) {
  nb::class_<Loop>(m, "Loop", nb::type_slots(kSlots))
      .def("__init__", &init, nb::arg("program"), nb::arg("pairs"))
      .def("_set", &set, nb::arg("number"), nb::arg("array"))
      .def("_get", &get, nb::arg("number"))
      .def(
          "_step",
          [](nb::handle self, nb::dict given, nb::object labels) {
            nb::object out = step(self.ptr(), given.ptr(), std::move(labels));
            if (out.is_valid()) return out;
            PyErr_SetString(PyExc_AssertionError, "_step takes converted arguments");
            throw nb::python_error();
          },
          nb::arg("inputs"), nb::arg("labels").none());
}

}  // namespace einlang
