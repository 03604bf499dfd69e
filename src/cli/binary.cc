// The binary `ein`; the package for Python has a launcher of its own.
#include <einlang/einlang.h>

int main(int argc, char** argv) { return ein_main(argc, argv); }
