"""Builds the Python package against the library of a build folder and runs its tests, in a virtual environment of that
folder with packages from PyPI. Usage: run.py ROOT BUILD [arguments of pytest]"""

import os
import pathlib
import subprocess
import sys


def main(root, build, *more):
    environment = build / "environment"
    python = environment / "bin" / "python"

    def step(*command, **options):
        done = subprocess.run([str(part) for part in command], **options)
        if done.returncode:
            sys.exit(done.returncode)

    step(sys.executable, "-B", root / "tools/python_environment.py", environment, "--optional")
    # The environment's interpreter, whatever the first one on the path is by now.
    step("cmake", "-S", root / "python", "-B", build / "python-build", "-G", "Ninja", f"-DEIN_BUILD={build}",
         f"-DPython_EXECUTABLE={python}", stdout=subprocess.DEVNULL)
    step("cmake", "--build", build / "python-build", "-j", "2")
    env = {**os.environ, "PYTHONPATH": str(build / "python"), "EINLANG_CACHE": "off", "EIN": str(build / "ein")}
    step(python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", root / "tests/python", *more, env=env, cwd=build)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:])
