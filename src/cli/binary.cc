// The binary `ein`; the package for Python has a launcher of its own.
#include <einlang/einlang.h>

#include "runtime/pool.h"

int main(int argc, char** argv) {
  ein::pin_threads();
  return ein_main(argc, argv);
}
