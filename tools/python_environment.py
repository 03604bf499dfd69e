"""Makes a virtual environment with what the Python package and its tests need, from PyPI. Does nothing when it is
there and has all of it. Usage: python_environment.py FOLDER [--optional]

With --optional it also installs packages that some tests need and that may be out of reach. FOLDER/optional.json then says
of each why it is missing, or null."""

import json
import os
import pathlib
import subprocess
import sys
import venv

# What builds the package, what it works with, and what checks it.
PACKAGES = ["nanobind>=3.0,<4", "scikit-build-core>=1.1,<2", "numpy", "xarray", "ml_dtypes", "pytest", "mypy",
            "pyright[nodejs]", "ipython", "ipykernel", "nbclient", "nbformat", "marimo", "scikit-learn"]
# By the name one imports. PyPI's PyTorch brings gigabytes of libraries for graphics cards along; TORCH_INDEX names an
# index that has one without.
TORCH_INDEX = os.environ.get("TORCH_INDEX")
OPTIONAL = {
    "torch": [*(["--extra-index-url", TORCH_INDEX] if TORCH_INDEX else []), "torch==2.13.0"],
    "jax": ["jax>=0.10,<0.11", "jaxlib>=0.10,<0.11"],
    "transformers": ["transformers>=5,<6", "safetensors"],
}


def pip(python, *arguments, **options):
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, **options)


def install_optional(folder, python):
    """One package after the other, so that one that is missing does not keep the others away."""
    record = folder / "optional.json"
    known = json.loads(record.read_text()) if record.is_file() else {}
    for name, arguments in OPTIONAL.items():
        if name in known and known[name] is None:
            continue
        done = pip(python, "--timeout", "15", "--retries", "1", *arguments, stderr=subprocess.PIPE, text=True)
        wrong = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        known[name] = None if done.returncode == 0 else " ".join(wrong) or f"pip ended with {done.returncode}"
        if known[name]:
            print(f"NOT TESTED: {name} cannot be installed, so its tests do not run. {known[name]}", flush=True)
    record.write_text(json.dumps(known, indent=2) + "\n")


def main(folder, optional):
    python = folder / "bin" / "python"
    done = folder / "packages.txt"
    wanted = "\n".join(PACKAGES) + "\n"
    if not (done.is_file() and done.read_text() == wanted and python.exists()):
        if not python.exists():
            venv.create(folder, with_pip=True)
        if pip(python, *PACKAGES).returncode != 0:
            print("the Python package needs packages from PyPI, which could not be installed: " + ", ".join(PACKAGES)
                  + ". Connect to the network or set PIP_INDEX_URL to a mirror, and configure again.", file=sys.stderr)
            return 1
        done.write_text(wanted)
    if optional:
        install_optional(folder, python)
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), "--optional" in sys.argv[2:]))
