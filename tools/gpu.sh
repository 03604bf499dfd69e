#!/bin/sh
# Everything that needs a GPU, in one go: the file tests on it, its bits against the emulator's, the same bits from run to run,
# and a table of times. Works in a copy of the source tree with its build folder, on a machine that has only NVIDIA's driver and
# Python with NumPy. Usage: tools/gpu.sh [EIN] [--quick] [--device emulated]
here=$(cd "$(dirname "$0")/.." && pwd)
ein=$here/build/ein
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then
  ein=$1
  shift
fi
exec python3 -B "$here/tools/gpu.py" "$here" "$ein" "$@"
