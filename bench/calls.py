"""What a call costs besides its work: seconds of one call of a function of one element, from C++ and from Python, each the
least of several rounds. Where something is missing, a text that says what."""

import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = "let x: [f32; i]; let y[i] = 2.0 * x[i] + 1.0;"
PYTHON = f"""
import timeit
import numpy as np
import einlang
p = einlang.compile({PROGRAM!r})
x, y = np.full(1, 3, np.float32), np.zeros(1, np.float32)
given, out = {{"x": x}}, {{"y": y}}
assert float(p(x=x).y.numpy()[0]) == 7
p.call(given, out=out)
assert y[0] == 7
for call in (lambda: p(x=x), lambda: p.call(given, out=out)):
    print(min(timeit.repeat(call, number=20000, repeat=20)) / 20000)
"""
CPP = ("call from C++", "call_into from C++")
PY = ("call from Python", "call with out= from Python")


def _figures(names, command, env=None):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, "EINLANG_CACHE": "off", **(env or {})})
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return _missing(names, last)
    return dict(zip(names, map(float, done.stdout.split())))


def _missing(names, why):
    return {name: f"not measured: {why}" for name in names}


def from_cpp(build):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return _missing(CPP, "no C++ compiler")
    if not (build / "libeinlang.so").exists():
        return _missing(CPP, f"no {build / 'libeinlang.so'}")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "call"
        made = subprocess.run([compiler, "-std=c++20", "-O2", HERE / "c/call.cc", "-I", HERE.parent / "include", "-L", build,
                               "-leinlang", f"-Wl,-rpath,{build}", "-pthread", "-o", program], capture_output=True, text=True)
        if made.returncode != 0:
            return _missing(CPP, (made.stderr.strip().splitlines() or [f"{compiler} failed"])[0])
        return _figures(CPP, [program, PROGRAM])


def from_python(build):
    python = build / "environment/bin/python"
    if not python.exists() or not list((build / "python/einlang").glob("_native*.so")):
        return _missing(PY, f"no Python package in {build}, which tests/python/run.py makes")
    return _figures(PY, [python, "-B", "-c", PYTHON], {"PYTHONPATH": str(build / "python")})


def figures(ein):
    """All of them, for the compiler at `ein`; what belongs to it is in the same folder."""
    build = pathlib.Path(ein).resolve().parent
    return {**from_cpp(build), **from_python(build)}
