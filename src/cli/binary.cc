// The main function of `ein`; the Python package has a launcher of its own.
#include <einlang/einlang.h>

int main(int argc, char** argv) { return ein_main(argc, argv); }
