"""Builds the Python package against the library of a build folder and runs its tests, in a virtual environment of that
folder with packages from PyPI. Of a sanitised build it runs the tests that call programs, with the sanitizers in Python too.
Usage: run.py ROOT BUILD [arguments of pytest]"""

import os
import pathlib
import subprocess
import sys


# What calls programs in this process. The others measure memory, start processes, or load libraries of their own.
SANITISED = ["arrays_in", "arrays_out", "cells", "errors", "functions", "interface", "loop", "random"]


def sanitizers():
    """What a Python that is not sanitised needs to load a library that is. Python itself keeps memory until it ends."""
    def library(name):
        return subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()

    return {"LD_PRELOAD": ":".join(library(f"lib{name}.so") for name in ("asan", "ubsan", "stdc++")), "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


def main(root, build, *more):
    sanitised = "EIN_SANITIZE:BOOL=ON" in (build / "CMakeCache.txt").read_text()
    environment = build / "environment"
    python = environment / "bin" / "python"

    def step(*command, good=(0,), **options):
        done = subprocess.run([str(part) for part in command], **options)
        if done.returncode not in good:
            sys.exit(done.returncode)

    step(sys.executable, "-B", root / "tools/python_environment.py", environment, *([] if sanitised else ["--optional"]))
    # The environment's interpreter, whatever the first one on the path is by now.
    step("cmake", "-S", root / "python", "-B", build / "python-build", "-G", "Ninja", f"-DEIN_BUILD={build}",
         f"-DPython_EXECUTABLE={python}", f"-DEIN_SANITIZE={'ON' if sanitised else 'OFF'}", stdout=subprocess.DEVNULL)
    step("cmake", "--build", build / "python-build", "-j", "2")
    env = {**os.environ, "PYTHONPATH": str(build / "python"), "EINLANG_CACHE": "off", "EIN": str(build / "ein")}
    # PyTorch and JAX have threads of their own, so they are not loaded where other tests fork. The tests of the kernel leave an
    # event loop behind in which those of notebooks wait for messages in vain. 5: nothing was run, because the package cannot be
    # installed (conftest.optional) or `more` selects other tests.
    tests = root / "tests/python"
    apart = [tests / f"test_{name}.py" for name in ("kernel", "torch", "jax", "models")]
    pytest = [python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    if sanitised:
        step(*pytest, *(tests / f"test_{name}.py" for name in SANITISED), *more, env={**env, **sanitizers()}, cwd=build)
        return
    step(*pytest, tests, *(f"--ignore={file}" for file in apart), *more, good=(0, 5) if more else (0,), env=env, cwd=build)
    for file in apart:
        step(*pytest, file, *more, good=(0, 5), env=env, cwd=build)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:])
