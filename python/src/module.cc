#include "native.h"

NB_MODULE(_native, m) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError, "einlang cannot be used in a sub-interpreter");
    throw nanobind::python_error();
  }
  // What a notebook or an operator holds until the process ends is no leak.
  nanobind::set_leak_warnings(false);
  m.attr("__version__") = ein_version();
  einlang::define_array(m);
  einlang::define_result(m);
  einlang::define_program(m);
  einlang::define_loop(m);
  einlang::define_session(m);
  einlang::define_tensors(m);
  einlang::define_xla(m);
}
