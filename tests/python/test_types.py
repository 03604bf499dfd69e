"""The types of the package under `mypy --strict` and pyright: of its own files, and of a user's."""

import json
import os
import pathlib
import shutil
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


WRONG = 'import einlang\neinlang.compile("", optlevel=2)\neinlang.compile("").grad(3)\n'


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
    user.write_text(WRONG)
    status, found = check(user)
    assert status == 1 and found.count("error:") == 2, found


def pyright(folder, *arguments):
    """What it says, as JSON. It asks the interpreter that is first on the path where packages are."""
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", *arguments], cwd=folder, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "PATH": path, "PYTHONPATH": str(folder / "stubs")})
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return json.loads(done.stdout)


def test_pyright(tmp_path):
    """A user's program in strict mode, our own files in the usual one, and no public name without a type."""
    package = tmp_path / "stubs" / "einlang"
    shutil.copytree(pathlib.Path(einlang.__file__).parent, package, ignore=shutil.ignore_patterns("*.so*", "__pycache__", "bin"))
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"strict": ["user.py"]}))
    found = [item for item in pyright(tmp_path)["generalDiagnostics"] if item["severity"] == "error"]
    assert sorted((pathlib.Path(item["file"]).name, item["rule"]) for item in found) == [
        ("wrong.py", "reportArgumentType"), ("wrong.py", "reportCallIssue")], found
    completeness = pyright(tmp_path, "--verifytypes", "einlang", "--ignoreexternal")["typeCompleteness"]
    assert completeness["completenessScore"] == 1 and completeness["exportedSymbolCounts"]["withKnownType"] > 200
