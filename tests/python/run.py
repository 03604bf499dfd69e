"""Builds the Python package against the library of a build folder and runs its tests, in a virtual environment of that
folder with packages from PyPI. Usage: run.py ROOT BUILD [arguments of pytest]"""

import os
import pathlib
import subprocess
import sys


def main(root, build, *more):
    environment = build / "environment"
    python = environment / "bin" / "python"

    def step(*command, good=(0,), **options):
        done = subprocess.run([str(part) for part in command], **options)
        if done.returncode not in good:
            sys.exit(done.returncode)

    step(sys.executable, "-B", root / "tools/python_environment.py", environment, "--optional")
    # The environment's interpreter, whatever the first one on the path is by now.
    step("cmake", "-S", root / "python", "-B", build / "python-build", "-G", "Ninja", f"-DEIN_BUILD={build}",
         f"-DPython_EXECUTABLE={python}", stdout=subprocess.DEVNULL)
    step("cmake", "--build", build / "python-build", "-j", "2")
    env = {**os.environ, "PYTHONPATH": str(build / "python"), "EINLANG_CACHE": "off", "EIN": str(build / "ein")}
    # PyTorch and JAX have threads of their own, so they are not loaded where other tests fork. 5: nothing was run, because
    # the package cannot be installed (conftest.optional) or `more` selects other tests.
    tests = root / "tests/python"
    apart = [tests / f"test_{name}.py" for name in ("torch", "jax", "models")]
    pytest = [python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    step(*pytest, tests, *(f"--ignore={file}" for file in apart), *more, good=(0, 5) if more else (0,), env=env, cwd=build)
    for file in apart:
        step(*pytest, file, *more, good=(0, 5), env=env, cwd=build)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:])
