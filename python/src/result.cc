// einlang.Result: a mapping with attributes. Arrays are made when they are asked for.
#include <nanobind/stl/string.h>

#include <algorithm>

#include "native.h"

namespace einlang {
namespace {

Program& program_of(const Result& r) { return *nb::inst_ptr<Program>(r.program); }

nb::object array_of(const Result& r, size_t number) {
  const ein_tensor* tensor = ein_result_output(r.memory->result, number);
  const Program::Value& value = program_of(r).outputs[number];
  nb::object labels = nb::none();
  if (!r.labels.is_none()) {
    nb::dict all = nb::cast<nb::dict>(r.labels), own;
    for (nb::handle dim : value.dims) {
      if (!dim.is_none() && all.contains(dim)) own[dim] = all[dim];
    }
    if (own.size() > 0) labels = own;
  }
  return make_array(r.memory, *tensor, value.dims, labels, true);
}

bool shows(const Result& r, size_t number) { return r.hidden.empty() || !r.hidden[number]; }

// The value or the part of that name; invalid when there is none.
nb::object find(const Result& r, PyObject* name) {
  const Program& p = program_of(r);
  if (r.prefix.empty()) {
    for (size_t i = 0; i < p.outputs.size(); ++i) {
      if (p.outputs[i].name.ptr() == name && shows(r, i)) return array_of(r, i);
    }
  }
  if (!PyUnicode_Check(name)) return {};
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (!text) throw nb::python_error();
  std::string path = r.prefix + std::string(text, static_cast<size_t>(size));
  for (size_t i = 0; i < p.output_paths.size(); ++i) {
    if (p.output_paths[i] == path && shows(r, i)) return array_of(r, i);
  }
  path += '.';
  for (size_t i = 0; i < p.output_paths.size(); ++i) {
    if (!p.output_paths[i].starts_with(path) || !shows(r, i)) continue;
    return make_result(r.program, r.memory, path, r.labels, r.hidden);
  }
  return {};
}

nb::list keys(const Result& r) {
  std::vector<std::string> seen;
  const std::vector<std::string>& paths = program_of(r).output_paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    if (!path.starts_with(r.prefix) || !shows(r, i)) continue;
    std::string name =
        path.substr(r.prefix.size(), path.find('.', r.prefix.size()) - r.prefix.size());
    if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
  }
  nb::list out;
  for (const std::string& name : seen) out.append(nb::str(name.c_str(), name.size()));
  return out;
}

PyObject* raised() {
  try {
    throw;
  } catch (nb::python_error& e) { e.restore(); } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

// Values first, so that no method hides one; `__class__` and its like cannot be names of values.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  try {
    const Result& r = *nb::inst_ptr<Result>(self);
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name, &size);
    bool special = text && size > 1 && text[0] == '_' && text[1] == '_';
    if (!special) {
      if (nb::object found = find(r, name); found.is_valid()) return found.release().ptr();
    }
    PyObject* method = PyObject_GenericGetAttr(self, name);
    if (method || special || !PyErr_ExceptionMatches(PyExc_AttributeError)) return method;
    PyErr_Clear();
    nb::object message =
        nb::module_::import_("einlang.show").attr("no_value")(nb::handle(name), keys(r));
    PyErr_SetObject(PyExc_AttributeError, message.ptr());
    return nullptr;
  } catch (...) { return raised(); }
}

nb::object get_item(const Result& r, nb::handle name) {
  if (nb::object found = find(r, name.ptr()); found.is_valid()) return found;
  nb::object message = nb::module_::import_("einlang.show").attr("no_value")(name, keys(r));
  PyErr_SetObject(PyExc_KeyError, message.ptr());
  throw nb::python_error();
}

PyType_Slot kSlots[] = {{Py_tp_getattro, reinterpret_cast<void*>(get_attribute)}, {0, nullptr}};

}  // namespace

nb::object make_result(nb::object program, std::shared_ptr<Memory> memory, std::string prefix,
                       nb::object labels, std::vector<bool> hidden) {
  nb::object made = nb::inst_alloc(nb::type<Result>());
  new (nb::inst_ptr<Result>(made)) Result{std::move(program), std::move(memory), std::move(prefix),
                                          std::move(labels), std::move(hidden)};
  nb::inst_mark_ready(made);
  return made;
}

void define_result(nb::module_& m) {
  nb::class_<Result>(m, "Result", nb::type_slots(kSlots), nb::is_final())
      .def("__getitem__", &get_item)
      .def("__len__", [](const Result& r) { return keys(r).size(); })
      .def("__iter__", [](const Result& r) { return nb::iter(keys(r)); })
      .def("__contains__",
           [](const Result& r, nb::handle name) { return find(r, name.ptr()).is_valid(); })
      .def("keys", &keys)
      .def("values",
           [](const Result& r) {
             nb::list out;
             for (nb::handle key : keys(r)) out.append(find(r, key.ptr()));
             return out;
           })
      .def("items",
           [](const Result& r) {
             nb::list out;
             for (nb::handle key : keys(r)) out.append(nb::make_tuple(key, find(r, key.ptr())));
             return out;
           })
      .def(
          "get",
          [](const Result& r, nb::handle name, nb::object otherwise) {
            nb::object found = find(r, name.ptr());
            return found.is_valid() ? found : otherwise;
          },
          nb::arg("name"), nb::arg("default").none() = nb::none())
      .def("__dir__", [](const Result& r) { return keys(r); });
}

}  // namespace einlang
