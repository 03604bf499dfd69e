"""The types of the package under `mypy --strict`: of its own files, and of a user's."""

import pathlib
import subprocess
import sys

import einlang

USER = '''
from pathlib import Path

import numpy as np

import einlang

p = einlang.compile("let x: [f32; i]; let y[i] = x[i];", outputs=["y"], opt_level=1)
q: einlang.Program = einlang.compile(Path("a.ein"))
r = p(x=np.ones(3, np.float32))
shape: tuple[int, ...] = r.y.shape
array: einlang.Array = r["y"]
dims: tuple[str | None, ...] = array.dims
total: float = float(array) + np.asarray(array).sum()
g = p.grad("y", wrt=["x"]).call({"x": [1.0]}, out={"y": np.empty(1, np.float32)}, align=True)
names: list[str] = list(p.inputs)
text: str = p.source
try:
    p.run(x=1)
except einlang.CompileError as error:
    fixed: str = error.fixed()
    code: str = error.diagnostics[0].code
'''


def check(*files):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", *map(str, files)],
                          capture_output=True, text=True, timeout=170)
    return done.returncode, done.stdout


def test_types(tmp_path):
    package = pathlib.Path(einlang.__file__).parent
    assert (package / "py.typed").exists()
    user = tmp_path / "user.py"
    user.write_text(USER)
    status, found = check(package, user)
    assert status == 0, found
    user.write_text('import einlang\neinlang.compile("", optlevel=2)\neinlang.compile("").grad(3)\n')
    status, found = check(user)
    assert status == 1 and found.count("error:") == 2, found
