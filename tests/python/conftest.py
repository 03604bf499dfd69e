"""What the tests of the Python package share."""

import os
import pathlib
import sys

os.environ.setdefault("EINLANG_CACHE", "off")  # not the cache of whoever runs this

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import einlang  # noqa: E402

LAYER = """
let x: [f32; batch, in];
let W: [f32; out, in];
let z[batch, out] = sum[in](x[batch, in] * W[out, in]);
let loss = mean[batch, out](z[batch, out] ** 2.0);
"""


@pytest.fixture(scope="session")
def layer():
    return einlang.compile(LAYER)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def data(rng):
    return {"x": rng.normal(size=(4, 3)).astype(np.float32), "W": rng.normal(size=(2, 3)).astype(np.float32)}


def optional(name):
    """A package that may be missing, but only if it cannot be installed: tools/python_environment.py notes the reason."""
    import importlib
    import json

    try:
        return importlib.import_module(name)
    except ImportError:
        record = pathlib.Path(sys.prefix) / "optional.json"
        reason = json.loads(record.read_text()).get(name) if record.is_file() else None
        if not reason:
            raise
        pytest.skip(f"NOT TESTED: {name} cannot be installed. {reason}", allow_module_level=True)


def run_python(code, **env):
    """A program in a process of its own; its standard output."""
    import subprocess

    here = str(pathlib.Path(einlang.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": here, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
