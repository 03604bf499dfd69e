"""Makes a virtual environment with what the Python package and its tests need, from PyPI. Does nothing when it is
there and has all of it. Usage: python_environment.py FOLDER"""

import pathlib
import subprocess
import sys
import venv

# What builds the package, what it works with, and what checks it.
PACKAGES = ["nanobind>=3.0,<4", "scikit-build-core>=1.1,<2", "numpy", "xarray", "ml_dtypes", "pytest", "mypy",
            "ipython", "ipykernel", "nbclient", "nbformat", "marimo", "scikit-learn"]


def main(folder):
    python = folder / "bin" / "python"
    done = folder / "packages.txt"
    wanted = "\n".join(PACKAGES) + "\n"
    if done.is_file() and done.read_text() == wanted and python.exists():
        return 0
    if not python.exists():
        venv.create(folder, with_pip=True)
    installed = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
    if installed.returncode != 0:
        print("the Python package needs packages from PyPI, which could not be installed: " + ", ".join(PACKAGES)
              + ". Connect to the network or set PIP_INDEX_URL to a mirror, and configure again.", file=sys.stderr)
        return 1
    done.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
