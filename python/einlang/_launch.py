"""The command `ein`: this process becomes the program beside the library."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ein")
    os.execv(program, ["ein", *sys.argv[1:]])
