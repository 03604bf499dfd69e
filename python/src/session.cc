// einlang._native.Session: the sessions of the prompt. kernel.py is made of this.
#include <nanobind/stl/string.h>

#include "effects.h"

namespace einlang {
namespace {

struct Session {
  ein_session* handle = nullptr;

  Session(bool cache, bool coloured) {
    ein_session_options options{sizeof options, !cache, coloured};
    ein_error error;
    ein_status status = ein_session_new(&options, &handle, &error);
    if (status != EIN_OK) raise_failure(status, error);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { ein_session_free(handle); }
};

// A text of the library, which is freed.
nb::object taken(char* text) {
  nb::object out = str(text);
  ein_text_free(text);
  return out;
}

// (status, reply as JSON). An exception of `write` or `file`, or Ctrl-C, is raised when the entry has ended.
nb::object enter(Session& s, std::string text, std::string name, nb::object write,
                 nb::object file) {
  Effects effects{{}, std::move(write), std::move(file), {}};
  ein_run_options options = effects.options();
  char* reply = nullptr;
  ein_error error{};
  effects.running.state = PyEval_SaveThread();
  ein_status status =
      ein_session_enter(s.handle, text.c_str(), name.c_str(), &options, &reply, &error);
  PyEval_RestoreThread(effects.running.state);
  if (effects.raised) {
    ein_text_free(reply);
    throw nb::python_error(std::move(*effects.raised));
  }
  if (!reply) raise_failure(status, error);
  return nb::make_tuple(static_cast<int>(status), taken(reply));
}

nb::object asked(Session& s, const std::string& text, size_t offset,
                 ein_status (*ask)(ein_session*, const char*, size_t, char**, ein_error*)) {
  char* out = nullptr;
  ein_error error;
  ein_status status = ask(s.handle, text.c_str(), offset, &out, &error);
  if (status != EIN_OK) raise_failure(status, error);
  return taken(out);
}

nb::object value(Session& s, const std::string& name) {
  auto memory = std::make_shared<Memory>();
  ein_error error;
  ein_status status = ein_session_value(s.handle, name.c_str(), &memory->result, &error);
  if (status != EIN_OK) throw nb::key_error(error.message);
  const ein_tensor* tensor = ein_result_output(memory->result, 0);
  return make_array(memory, *tensor, nb::none(), nb::none(), false);
}

}  // namespace

void define_session(nb::module_& m) {
  nb::class_<Session>(m, "Session")
      .def(nb::init<bool, bool>(), nb::arg("cache") = true, nb::arg("coloured") = false)
      .def("enter", &enter, nb::arg("text"), nb::arg("name"), nb::arg("write"),
           nb::arg("file").none() = nb::none())
      .def("complete", [](Session& s, const std::string& text,
                          size_t offset) { return asked(s, text, offset, ein_session_complete); })
      .def("inspect", [](Session& s, const std::string& text,
                         size_t offset) { return asked(s, text, offset, ein_session_inspect); })
      .def("value", &value)
      .def_static("reads", [](const std::string& text) {
        return static_cast<int>(ein_session_reads(text.c_str()));
      });
}

}  // namespace einlang
