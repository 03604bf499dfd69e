// einlang.Program, below its Python part: compiling, and the way of a call.
//
// A call with arguments that need no conversion stays here. Everything else is `_call_slowly` of program.py,
// which ends in `_call_plain`.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>
#include <optional>
#include <tuple>

#include "calls.h"
#include "effects.h"

namespace einlang {
namespace {

// ---- compiling

struct Texts {
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  explicit Texts(std::vector<std::string> from) : texts(std::move(from)) {
    for (const std::string& t : texts) pointers.push_back(t.c_str());
  }
};

std::vector<Program::Value> values_of(const ein_program* p, size_t count,
                                      const ein_value* (*get)(const ein_program*, size_t)) {
  std::vector<Program::Value> out;
  for (size_t i = 0; i < count; ++i) {
    const ein_value* v = get(p, i);
    nb::list dims;
    for (int32_t k = 0; k < v->rank; ++k) {
      dims.append(*v->coords[k] ? str(v->coords[k]) : nb::none());
    }
    PyObject* name = PyUnicode_InternFromString(v->path);
    out.push_back({nb::steal(name), nb::tuple(dims), v->dtype, v->rank, v->needed != 0});
  }
  return out;
}

nb::object coloured(ein_program* handle) {
  char* text = nullptr;
  ein_error error;
  if (ein_text(handle, EIN_COLOURED, EIN_AS_TEXT, nullptr, nullptr, 0, &text, &error) != EIN_OK) {
    return str("");
  }
  nb::object out = str(text);
  ein_text_free(text);
  return out;
}

// nanobind does not destroy an object whose `__init__` ends by an exception.
struct Undo {
  Program* made;
  ~Undo() {
    if (made) made->~Program();
  }
};

void init(
    Program* self, std::string source, std::string name,
    std::optional<std::vector<std::string>> outputs,
    std::vector<std::tuple<int, std::vector<std::string>, std::vector<std::string>>> derivations,
    std::string precision, int opt_level, int threads, bool cache,
    std::vector<std::pair<std::string, std::string>> modules, uint64_t grad_memory,
    std::vector<std::tuple<std::string, std::string, bool>> earlier) {
  new (self) Program;
  Undo undo{self};
  std::vector<ein_file> files;
  std::vector<ein_earlier> before;
  for (const auto& [path, content] : modules) files.push_back({path.c_str(), content.c_str()});
  for (const auto& [title, content, hidden] : earlier) {
    before.push_back({title.c_str(), content.c_str(), hidden});
  }
  Texts kept(outputs.value_or(std::vector<std::string>()));
  std::deque<Texts> lists;
  std::vector<ein_derivation> steps;
  for (auto& [form, of, wrt] : derivations) {
    Texts &nums = lists.emplace_back(std::move(of)), &dens = lists.emplace_back(std::move(wrt));
    steps.push_back({static_cast<ein_form>(form), nums.pointers.data(), nums.pointers.size(),
                     dens.pointers.data(), dens.pointers.size()});
  }
  ein_options options;
  ein_options_init(&options);
  if (outputs) {
    static const char* none[] = {nullptr};
    options.outputs = kept.pointers.empty() ? none : kept.pointers.data();
    options.output_count = kept.pointers.size();
  }
  options.derivations = steps.data();
  options.derivation_count = steps.size();
  options.files = files.data();
  options.file_count = files.size();
  options.grad_memory = grad_memory;
  options.earlier = before.data();
  options.earlier_count = before.size();
  options.precision = precision.c_str();
  options.opt_level = opt_level;
  options.threads = threads;
  options.no_cache = !cache;
  ein_error error;
  ein_status status;
  {
    nb::gil_scoped_release others_run;
    status = ein_compile(source.c_str(), name.c_str(), &options, &self->handle, &error);
  }
  if (status != EIN_OK) {
    nb::object found = str(self->handle ? ein_diagnostics(self->handle, EIN_JSON) : "");
    nb::object text = str(self->handle ? ein_diagnostics(self->handle, EIN_TEXT) : "");
    nb::object shown = nb::make_tuple(text, self->handle ? coloured(self->handle) : text);
    raise("compile_failure", nb::int_(static_cast<int>(status)),
          nb::make_tuple(str(error.code), str(error.message)), shown, found);
  }
  self->inputs = values_of(self->handle, ein_input_count(self->handle), ein_input);
  self->outputs = values_of(self->handle, ein_output_count(self->handle), ein_output);
  for (size_t i = 0; i < self->outputs.size(); ++i) {
    self->output_paths.emplace_back(ein_output(self->handle, i)->path);
  }
  undo.made = nullptr;
}

// (path, dtype, dims, extents as texts) for each
nb::list describe(const Program& p, bool inputs) {
  nb::list out;
  const std::vector<Program::Value>& values = inputs ? p.inputs : p.outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    const ein_value* v = inputs ? ein_input(p.handle, i) : ein_output(p.handle, i);
    nb::list shape;
    for (int32_t k = 0; k < v->rank; ++k) {
      if (v->extents[k] >= 0) {
        shape.append(v->extents[k]);
      } else {
        shape.append(str(v->extent_texts[k]));
      }
    }
    out.append(nb::make_tuple(values[i].name, static_cast<int>(v->dtype), values[i].dims,
                              nb::tuple(shape), v->needed != 0));
  }
  return out;
}

// ---- calling

nb::object called(PyObject* self, Program& p, const ein_tensor* inputs, const ein_tensor* outputs,
                  std::shared_ptr<Memory> memory, nb::object labels) {
  call(p, inputs, outputs, *memory);
  return make_result(nb::borrow(self), std::move(memory), "", std::move(labels));
}

// Null when something takes a closer look.
nb::object call_directly(PyObject* self, PyObject* given, PyObject* out) {
  Program& p = *nb::inst_ptr<Program>(self);
  Memory held;  // of the inputs, until the call is over
  auto memory = std::make_shared<Memory>();
  held.buffers.reserve(p.inputs.size());
  Arguments inputs(p.inputs);
  if (!take_inputs(p, given, inputs, held)) return {};
  if (!out) return called(self, p, inputs.tensors, nullptr, std::move(memory), nb::none());
  memory->buffers.reserve(p.outputs.size());
  Arguments outputs(p.outputs);
  if (!take_outputs(p, out, outputs, *memory)) return {};
  return called(self, p, inputs.tensors, outputs.tensors, std::move(memory), nb::none());
}

PyObject* call_by_keyword(PyObject* self, PyObject* args, PyObject* given) {
  if (PyTuple_Size(args) > 0) {
    PyErr_SetString(PyExc_TypeError,
                    "inputs are given by name: p(x=x, W=W), or p.call({\"x\": x}) from a mapping");
    return nullptr;
  }
  return guarded(
      [](PyObject* p, PyObject* inputs) {
        nb::object out = call_directly(p, inputs, nullptr);
        if (out.is_valid()) return out;
        nb::object from = inputs ? nb::borrow(inputs) : nb::object(nb::dict());
        return nb::object(nb::handle(p).attr("_call_slowly")(from, nb::none(), nb::none(), false));
      },
      self, given);
}

nb::object call_mapping(nb::handle self, nb::object given, nb::object out, nb::object copy,
                        bool align) {
  if (PyDict_CheckExact(given.ptr()) && (out.is_none() || PyDict_CheckExact(out.ptr()))) {
    nb::object direct = call_directly(self.ptr(), given.ptr(), out.is_none() ? nullptr : out.ptr());
    if (direct.is_valid()) return direct;
  }
  return self.attr("_call_slowly")(given, out, copy, align);
}

// After the slow way: nothing is left to convert.
nb::object call_plain(nb::handle self, nb::dict given, nb::object out, nb::object labels) {
  Program& p = *nb::inst_ptr<Program>(self);
  Memory held;
  auto memory = std::make_shared<Memory>();
  held.buffers.reserve(p.inputs.size());
  memory->buffers.reserve(p.outputs.size());
  Arguments inputs(p.inputs), outputs(p.outputs);
  if (!take_inputs(p, given.ptr(), inputs, held) ||
      (!out.is_none() && !take_outputs(p, out.ptr(), outputs, *memory))) {
    PyErr_SetString(PyExc_AssertionError, "_call_plain takes converted arguments");
    throw nb::python_error();
  }
  return called(self.ptr(), p, inputs.tensors, out.is_none() ? nullptr : outputs.tensors,
                std::move(memory), std::move(labels));
}

// ---- with effects

nb::object run_plain(nb::handle self, nb::dict given, nb::object labels, nb::object print,
                     nb::object file) {
  Program& p = *nb::inst_ptr<Program>(self);
  Memory held;
  auto memory = std::make_shared<Memory>();
  held.buffers.reserve(p.inputs.size());
  Arguments inputs(p.inputs);
  if (!take_inputs(p, given.ptr(), inputs, held)) {
    PyErr_SetString(PyExc_AssertionError, "_run_plain takes converted arguments");
    throw nb::python_error();
  }
  Effects effects{{}, std::move(print), std::move(file), {}};
  ein_run_options options = effects.options();
  ein_error error;
  effects.running.state = PyEval_SaveThread();
  ein_status status =
      ein_run(p.handle, inputs.tensors, p.inputs.size(), &options, &memory->result, &error);
  PyEval_RestoreThread(effects.running.state);
  if (effects.raised) throw nb::python_error(std::move(*effects.raised));
  if (status != EIN_OK) raise_failure(status, error);
  return make_result(nb::borrow(self), std::move(memory), "", std::move(labels));
}

// The extents of all outputs for inputs of these extents. Values are needed for inputs that are extents.
nb::object extents(nb::handle self, nb::dict shapes, nb::dict values) {
  Program& p = *nb::inst_ptr<Program>(self);
  std::vector<std::vector<int64_t>> kept(p.inputs.size());
  std::vector<int64_t> scratch(p.inputs.size());
  std::vector<ein_tensor> inputs(p.inputs.size());
  Memory held;
  held.buffers.reserve(p.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Program::Value& v = p.inputs[i];
    kept[i] = nb::cast<std::vector<int64_t>>(shapes[v.name]);
    inputs[i] = {v.dtype, static_cast<int32_t>(kept[i].size()), kept[i].data(), nullptr};
    if (!values.contains(v.name)) continue;
    nb::object value = values[v.name];
    std::vector<int64_t> room(static_cast<size_t>(v.rank));
    if (!take_input(value.ptr(), v, held, room.data(), &scratch[i], inputs[i])) {
      throw nb::value_error("a value of an input that is an extent is a number");
    }
    inputs[i].shape = kept[i].data();
  }
  size_t room = 0;
  for (const Program::Value& v : p.outputs) room += static_cast<size_t>(v.rank);
  std::vector<int64_t> found(room + 1);
  ein_error error;
  ein_status status =
      ein_extents(p.handle, inputs.data(), inputs.size(), found.data(), room, &error);
  if (status != EIN_OK) raise_failure(status, error);
  nb::dict out;
  size_t at = 0;
  for (const Program::Value& v : p.outputs) {
    nb::list shape;
    for (int32_t k = 0; k < v.rank; ++k) shape.append(found[at++]);
    out[v.name] = nb::tuple(shape);
  }
  return out;
}

nb::object text(Program& p, int kind, int format, std::optional<std::string> of,
                std::vector<std::string> wrt) {
  Texts dens(std::move(wrt));
  char* made = nullptr;
  ein_error error;
  ein_status status;
  {
    nb::gil_scoped_release others_run;
    status = ein_text(p.handle, static_cast<ein_text_kind>(kind),
                      static_cast<ein_text_format>(format), of ? of->c_str() : nullptr,
                      dens.pointers.data(), dens.pointers.size(), &made, &error);
  }
  if (status != EIN_OK) {
    raise("compile_failure", nb::int_(static_cast<int>(status)),
          nb::make_tuple(str(error.code), str(error.message)), nb::make_tuple(str(""), str("")),
          str(""));
  }
  nb::object out = str(made);
  ein_text_free(made);
  return out;
}

// A program with its safe fixes applied, whether it compiles or not.
nb::object fixed(std::string source, std::string name) {
  ein_program* handle = nullptr;
  ein_error error;
  char* made = nullptr;
  ein_status status;
  {
    nb::gil_scoped_release others_run;
    ein_compile(source.c_str(), name.c_str(), nullptr, &handle, &error);
    status = ein_text(handle, EIN_FIXED, EIN_AS_TEXT, nullptr, nullptr, 0, &made, &error);
    ein_program_free(handle);
  }
  if (status != EIN_OK) throw std::runtime_error(error.message);
  nb::object out = str(made);
  ein_text_free(made);
  return out;
}

PyType_Slot kSlots[] = {{Py_tp_call, reinterpret_cast<void*>(call_by_keyword)}, {0, nullptr}};

}  // namespace

void define_program(nb::module_& m) {
  nb::class_<Program>(m, "Program", nb::type_slots(kSlots), nb::is_weak_referenceable())
      .def("__init__", &init, nb::arg("source"), nb::arg("name"), nb::arg("outputs").none(),
           nb::arg("derivations"), nb::arg("precision"), nb::arg("opt_level"), nb::arg("threads"),
           nb::arg("cache"), nb::arg("modules"), nb::arg("grad_memory"),
           nb::arg("earlier") = std::vector<std::tuple<std::string, std::string, bool>>())
      .def("call", &call_mapping, nb::arg("inputs"), nb::kw_only(),
           nb::arg("out").none() = nb::none(), nb::arg("copy").none() = nb::none(),
           nb::arg("align") = false)
      .def("_call_plain", &call_plain, nb::arg("inputs"), nb::arg("out").none(),
           nb::arg("labels").none())
      .def("_run_plain", &run_plain, nb::arg("inputs"), nb::arg("labels").none(), nb::arg("write"),
           nb::arg("file").none())
      .def("_loaded",
           [](const Program& p) {
             nb::list out;
             for (size_t i = 0; const char* path = ein_loaded(p.handle, i); ++i)
               out.append(str(path));
             return out;
           })
      .def("_modules",
           [](const Program& p) {
             nb::list out;
             for (size_t i = 0; const ein_file* f = ein_module(p.handle, i); ++i) {
               out.append(nb::make_tuple(str(f->path), str(f->text)));
             }
             return out;
           })
      .def("_describe", &describe, nb::arg("inputs"))
      .def("_extents", &extents, nb::arg("shapes"), nb::arg("values"))
      .def("_text", &text, nb::arg("kind"), nb::arg("format"), nb::arg("of").none() = nb::none(),
           nb::arg("wrt") = std::vector<std::string>())
      .def("_diagnostics",
           [](const Program& p, bool json) {
             return str(ein_diagnostics(p.handle, json ? EIN_JSON : EIN_TEXT));
           })
      .def_prop_ro("_handle",
                   [](const Program& p) { return reinterpret_cast<uintptr_t>(p.handle); })
      .def_prop_ro("backend", [](const Program& p) { return ein_backend(p.handle); })
      .def_prop_ro("copies", [](const Program& p) { return p.copies.load(); })
      .def("_count_copy", [](Program& p) { ++p.copies; });
  m.def("fixed", &fixed, nb::arg("source"), nb::arg("name"));
}

}  // namespace einlang
