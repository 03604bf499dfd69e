#include "native.h"

NB_MODULE(_native, m) {
  m.attr("__version__") = ein_version();
  einlang::define_array(m);
  einlang::define_result(m);
  einlang::define_program(m);
  einlang::define_loop(m);
}
