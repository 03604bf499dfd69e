// What a run calls back with: what it prints and saves, and whether it shall go on.
#pragma once

#include <optional>

#include "calls.h"

namespace einlang {

// Each call takes the GIL; an exception of one ends the run. It must not move while a run uses its options.
struct Effects {
  Running running;
  nb::object print, file;
  std::optional<nb::python_error> raised;

  ein_run_options options();
  template <class F>
  void with_gil(const F& body) {
    PyEval_RestoreThread(running.state);
    try {
      if (!raised) body();
    } catch (nb::python_error& e) { raised.emplace(std::move(e)); }
    running.state = PyEval_SaveThread();
  }
};

nb::object decoded(const char* text, size_t length);

}  // namespace einlang
