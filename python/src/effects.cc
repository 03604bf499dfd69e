#include "effects.h"

namespace einlang {

nb::object decoded(const char* text, size_t length) {
  return nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(length), "replace"));
}

ein_run_options Effects::options() {
  ein_run_options out{};
  out.size = sizeof out;
  out.data = out.poll_data = this;
  out.write = [](void* data, const char* text, size_t length, int32_t is_error) {
    auto& e = *static_cast<Effects*>(data);
    e.with_gil([&] { e.print(decoded(text, length), is_error != 0); });
  };
  if (!file.is_none()) {
    out.file = [](void* data, const char* path, const char* text, size_t length) {
      auto& e = *static_cast<Effects*>(data);
      bool taken = true;  // after an exception nothing is written any more
      e.with_gil([&] { taken = nb::cast<bool>(e.file(str(path), decoded(text, length))); });
      return int32_t{taken};
    };
  }
  out.poll = [](void* data) {
    auto& e = *static_cast<Effects*>(data);
    e.with_gil([] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
    return int32_t{e.raised.has_value()};
  };
  return out;
}

}  // namespace einlang
