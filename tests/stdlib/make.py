"""Writes the tests beside it that compare the library with NumPy and SciPy: make.py [NAME...]. The numbers are in the
tests; only this script needs NumPy. Every case is checked in f64 and f32, its derivatives by differences (f64) and
against those (f32)."""

import importlib
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


class File:
    """One test file or several. `$` in coordinates and expressions is the number of the case, so that names stay apart."""

    def __init__(self, name, comment, uses=(), tolerance=1e-9, single=2e-5, slope=2e-4, some=4):
        self.path = HERE / f"{name}.ein"
        self.head = [f"// {comment}", *(f"use {u};" for u in uses)]
        self.body, self.tail, self.out, self.count, self.files = [], [], [], 0, 0
        self.tolerance, self.single, self.slope = tolerance, single, slope
        self.some = some  # cases in one file: every difference compiles the whole file
        self.rng = np.random.default_rng(len(name) * 7919 + sum(map(ord, name)))

    def draw(self, *shape, low=-1.0, high=1.0, away=()):
        """Random cells with three digits, none of them near a number of `away`."""
        x = np.round(self.rng.uniform(low, high, shape), 3)
        for a in away:
            x = np.where(np.abs(x - a) < 0.05, np.round(x + 0.11, 3), x)
        return x

    def given(self, name, cells, kind="f64"):
        cells = np.asarray(cells)
        text = repr(cells.tolist()).replace("True", "true").replace("False", "false")
        shape = f"[{', '.join(map(str, cells.shape))}]" if cells.size == 0 else ""
        self.tail.append(f"//! in {name} = {text} : {kind}{shape}")

    def case(self, inputs, expr, coords, want, f32=True, derivative=True, backward=None,
             backward_count=None):
        """inputs: name -> (cells, "b$, k$"); those of integers or booleans have no derivative. `coords` are those of
        the result, `want` its cells; `backward` is the library's own backward pass with `g$` above it."""
        if len(self.out) == self.some:
            self.write()
        self.count += 1
        n = str(self.count)
        sub = lambda text: text.replace("$", n)
        put = self.body.append
        coords = sub(coords)
        at = f"[{coords}]" if coords else ""
        over = lambda op, body: f"{op}[{coords}]({body})" if coords else body
        floats = []
        for name, (cells, names) in inputs.items():
            cells = np.asarray(cells)
            kind = {"f": "f64", "i": "i32", "b": "bool"}[cells.dtype.kind]
            put(f"let {name}{n}: {tensor(kind, sub(names))};")
            self.given(name + n, cells, kind)
            if kind == "f64":
                floats.append((name + n, sub(names), cells.size))
        want = np.asarray(want, dtype=float)
        weights = np.round(self.rng.uniform(0.5, 1.5, want.shape) * self.rng.choice([-1, 1], want.shape), 2)
        for name, cells in ((f"want{n}", want), (f"w{n}", weights)):
            put(f"let {name}: {tensor('f64', coords)};")
            self.given(name, cells)
        call = sub(expr)
        put(f"let y{n}{at} = {call};")
        close = f"abs(y{n}{at} - want{n}{at}) <= {number(self.tolerance)} * (1.0 + abs(want{n}{at}))"
        put(f"let right{n} = {over('all', close)};")
        line = f"{n}: {{right{n}}}"
        if derivative:
            put(f"let loss{n} = {over('sum', f'w{n}{at} * y{n}{at}')};")
            for name, _, size in floats:
                put(f"let d{name} = @loss{n} / @{name};")
                if size:
                    self.tail.append(f"//! grad: d{name} = loss{n} / {name}")
        if backward:
            above = re.sub(rf"\bg{n}\b", "w" + n, sub(backward))
            put(f"let back{n} = {above};")
            for k, (name, names, _) in enumerate(floats[:backward_count or len(floats)]):
                i = f"[{names}]" if names else ""
                part = f"back{n}.{k}" if len(floats) > 1 and backward_count != 1 else f"back{n}"
                put(f"let part{k}_{n} = {part};")
                same = f"abs(part{k}_{n}{i} - d{name}{i}) <= 0.000000000001 * (1.0 + abs(d{name}{i}))"
                put(f"let back_d{name} = {f'all[{names}]({same})' if names else same};")
                line += f", back {{back_d{name}}}"
        if f32:
            for name, names, _ in floats:
                put(f"let {name}s = {name} as {tensor('f32', names)};")
                call = re.sub(rf"\b{name}\b", name + "s", call)
            put(f"let w{n}s = w{n} as {tensor('f32', coords)};")
            put(f"let y{n}s{at} = {call};")
            close = f"abs(y{n}s{at} as f64 - want{n}{at}) <= {number(self.single)} * (1.0 + abs(want{n}{at}))"
            put(f"let right{n}s = {over('all', close)};")
            line += f", f32 {{right{n}s}}"
            if derivative:
                put(f"let loss{n}s = {over('sum', f'w{n}s{at} * y{n}s{at}')};")
                for name, names, _ in floats:
                    put(f"let d{name}s = @loss{n}s / @{name}s;")
                    i = f"[{names}]" if names else ""
                    close = f"abs(d{name}s{i} as f64 - d{name}{i}) <= {number(self.slope)} * (1.0 + abs(d{name}{i}))"
                    put(f"let right_d{name}s = {f'all[{names}]({close})' if names else close};")
                    line += f", d{name} {{right_d{name}s}}"
        # Printed, not asserted: differences move the inputs.
        put(f'print("{line}");')
        self.out.append("//= " + re.sub(r"\{\w*\}", "true", line))
        return self

    def write(self):
        self.files += 1
        path = self.path if self.files == 1 else self.path.with_stem(f"{self.path.stem}_{self.files}")
        path.write_text("\n".join(self.head + self.body + self.tail + ["//= out:"] + self.out) + "\n")
        self.body, self.tail, self.out = [], [], []


def tensor(kind, names):
    return f"[{kind}; {names}]" if names else kind


def number(x):
    return np.format_float_positional(x)


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(p.stem for p in HERE.glob("cases_*.py"))
    for name in names:
        importlib.import_module(name).make(File)
