"""How many digits sums of floats keep: every kind of sum that native code knows, over cells of several distributions,
against the exact result. Usage: sums.py EIN [--long]

What is documented (docs/reference.md): a sum of n floats is within 20 log2(n) units of the sum of their sizes, a unit
being 2^-24 for f32 and 2^-53 for f64, rounding of the cells' own products included; sums that are rounded to f16 or
bf16 are within one unit of those too. Running and routed sums of f64 are added one after the other: within n units.

`--long` prints the errors, in units, for 10^4 to 10^8 cells beside NumPy's."""

import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

UNITS = {"f32": 2.0**-24, "f64": 2.0**-53}
TYPES = {"f32": np.float32, "f64": np.float64}


def distributions(n, rng):
    """By name: n cells as f64."""
    yield "0.1 everywhere", np.full(n, 0.1)
    yield "uniform", rng.random(n)
    yield "both signs", rng.random(n) * 2 - 1
    yield "heavy tails", np.exp(4 * rng.standard_normal(n))
    yield "growing", np.arange(1, n + 1) / n
    yield "large and small", np.where(np.arange(n) % 2 == 0, 1e4, 1.1e-4)


# By name: the program, over x (and y) of type T, and how its cells are arranged. Every result is `out`.
FLAT, ROWS, COLUMNS = "flat", "rows", "columns"
KINDS = {
    "sum": (FLAT, "let x: [T; n]; let out = sum[i](x[i]);"),
    "mean": (FLAT, "let x: [T; n]; let out = mean[i](x[i]);"),
    "dot": (FLAT, "let x: [T; n]; let y: [T; n]; let out = sum[i](x[i] * y[i]);"),
    "backwards": (FLAT, "let x: [T; n]; let out = sum[i](x[n - 1 - i]);"),
    "gathered": (FLAT, "let x: [T; n]; let at: [i64; n]; let out = sum[i](x[at[i]]);"),
    "gated": (FLAT, "let x: [T; n]; let out = sum[i](x[i]) where i != 0;"),
    "fused": (FLAT, "let x: [T; n]; let y: [T; n]; let a = sum[i](x[i]); let b = sum[i](x[i] * y[i]);"
                    " let c = max[i](x[i]); let out = a + 0.0 * b + 0.0 * c;"),
    "over steps": (FLAT, "let x: [T; n]; let h[t in 0..n]: T = x[t] + if t > 0 { 0.0 * h[t - 1] } else { 0.0 };"
                         " let out = sum[t](h[t]);"),
    "running": (FLAT, "let x: [T; n]; let s[i] = sum[k in 0..=i](x[k]); let out = s[n - 1];"),
    "routed": (FLAT, "let x: [T; n]; let to: [i64; n];"
                     " let s[v in 0..3] = sum[k](x[k]) where to[k] == v; let out = s[1];"),
    "along rows": (ROWS, "let x: [T; m, n]; let out[i] = sum[j](x[i, j]);"),
    "along columns": (COLUMNS, "let x: [T; m, n]; let out[j] = sum[i](x[i, j]);"),
    "of a matrix": (ROWS, "let x: [T; m, n]; let out = sum[i, j](x[i, j]);"),
    "of a narrow matrix": (COLUMNS, "let x: [T; m, n]; let out = sum[i, j](x[i, j]);"),
    "of a triangle": (COLUMNS, "let x: [T; m, n]; let out[i in 0..4] = sum[j in 0..m - i](x[j, i]);"),
    "contraction": (ROWS, "let x: [T; m, n]; let y: [T; m, n]; let out[i, j] = sum[k](x[i, k] * y[j, k]);"),
    "written out": (FLAT, "let x: [T; n];"
                          " let out = sum[a in 0..8, b in 0..8, c in 0..8](x[64 * a + 8 * b + c]);"),
}
WIDE = 12  # rows, or columns, of the matrices; more than one register of results


def exact(cells):
    return math.fsum(cells.tolist())


def two_products(x, y):
    """The products of f64 cells, exactly: the rounded ones and what is missing."""
    def halves(a):
        c = a * 134217729.0
        high = c - (c - a)
        return high, a - high
    p = x * y
    (xh, xl), (yh, yl) = halves(x), halves(y)
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


def dot(x, y):
    """Exactly, and the sum of the sizes."""
    p, rest = two_products(x, y)
    return math.fsum(p.tolist() + rest.tolist()), exact(np.abs(p))


def expected(kind, x, y):
    """By cell of the result, some of them: the exact sum, the sum of sizes, how many cells."""
    if kind == "contraction":
        return {i * WIDE + j: (*dot(x[i], y[j]), len(x[i])) for i, j in ((0, 0), (5, 7), (WIDE - 1, WIDE - 1))}
    if kind == "dot":
        return {0: (*dot(x, y), len(x))}
    lines = {"along rows": lambda i: x[i], "along columns": lambda i: x[:, i],
             "of a triangle": lambda i: x[: len(x) - i, i]}
    if kind in lines:
        some = {i: lines[kind](i) for i in (0, 3)}
        return {i: (exact(c), exact(np.abs(c)), len(c)) for i, c in some.items()}
    cells = x.ravel()
    if kind == "gated":
        cells = cells[1:]
    if kind == "written out":
        cells = cells[:512]
    n = len(cells)
    if kind == "mean":
        return {0: (exact(cells) / n, exact(np.abs(cells)) / n, n)}
    return {0: (exact(cells), exact(np.abs(cells)), n)}


def bound(kind, dtype, n):
    """In units of the sum of sizes."""
    if dtype == "f64" and kind in ("running", "routed"):
        return n
    return 20 * math.log2(max(n, 2))


class Runner:
    def __init__(self, ein, folder):
        self.ein, self.folder = ein, pathlib.Path(folder)

    def run(self, kind, dtype, inputs, *options):
        program = self.folder / "program.ein"
        program.write_text(KINDS[kind][1].replace("T", dtype) + "\n")
        args = [self.ein, "run", str(program), "--out", f"out={self.folder / 'out.npy'}", *options]
        for name, value in inputs.items():
            if f"let {name}: " not in KINDS[kind][1]:
                continue
            path = self.folder / f"{name}.npy"
            np.save(path, value)
            args += ["--in", f"{name}={path}"]
        done = subprocess.run(args, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{kind}, {dtype}: {done.stderr}")
        return np.load(self.folder / "out.npy").astype(np.float64).ravel()

    def errors(self, kind, dtype, cells, *options):
        """In units of the sums of sizes, by cell of the result; and the bound."""
        kept = TYPES[dtype]
        layout = KINDS[kind][0]
        x = cells.astype(kept)
        y = np.roll(x, len(x) // 3) + kept(0.25)
        if layout == ROWS:
            x, y = (v[: len(v) // WIDE * WIDE].reshape(WIDE, -1) for v in (x, y))
        if layout == COLUMNS:
            x, y = (v[: len(v) // WIDE * WIDE].reshape(-1, WIDE) for v in (x, y))
        n = len(x)
        inputs = {"x": x, "y": y, "at": np.arange(n)[::-1].copy(), "to": np.ones(n, np.int64)}
        got = self.run(kind, dtype, inputs, *options)
        wanted = expected(kind, x.astype(np.float64), y.astype(np.float64))
        for at, (sum_of, sizes, count) in wanted.items():
            yield abs(got[at] - sum_of) / (sizes * UNITS[dtype]), bound(kind, dtype, count)


def check(runner, n, kinds, names, *options):
    failed = []
    for name, cells in distributions(n, np.random.default_rng(7)):
        if names and name not in names:
            continue
        for dtype in UNITS:
            for kind in kinds:
                for error, most in runner.errors(kind, dtype, cells, *options):
                    if not error <= most:
                        failed.append(f"{kind} of {n} {dtype} cells, {name}: {error:.1f} units, "
                                      f"at most {most:.1f} {' '.join(options)}")
                        break
    return failed


def one_bit_for_all(runner, n):
    """The same bits, whatever the number of threads."""
    x = np.random.default_rng(3).random(n) - 0.5
    failed = []
    for kind in ("sum", "of a matrix", "along rows", "contraction"):
        kept = x.astype(np.float32)
        kept = kept if KINDS[kind][0] == FLAT else kept[: n // WIDE * WIDE].reshape(WIDE, -1)
        got = [runner.run(kind, "f32", {"x": kept, "y": kept}, "--threads", str(t)) for t in (1, 2, 5)]
        if any(g.tobytes() != got[0].tobytes() for g in got):
            failed.append(f"{kind}: other bits with other numbers of threads")
    return failed


def table(runner):
    kinds = ("sum", "dot", "along columns", "contraction", "routed", "running", "over steps")
    print("errors in units (2^-24 of the sum of sizes for f32, 2^-53 for f64)")
    for dtype in UNITS:
        for name, values in distributions(1, np.random.default_rng(7)):
            print(f"\n{dtype}, {name}\n{'cells':>12}" + "".join(f"{k:>15}" for k in (*kinds, "NumPy's sum")))
            for exponent in (4, 5, 6, 7, 8):
                n = 10**exponent
                cells = next(c for d, c in distributions(n, np.random.default_rng(7)) if d == name)
                row = [max(e for e, _ in runner.errors(kind, dtype, cells)) for kind in kinds]
                x = cells.astype(TYPES[dtype])
                wide = x.astype(np.float64)
                row.append(abs(float(np.sum(x)) - exact(wide)) / (exact(np.abs(wide)) * UNITS[dtype]))
                print(f"{n:>12}" + "".join(f"{e:>15.2f}" for e in row), flush=True)


def main():
    ein = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(ein, folder)
        if "--long" in sys.argv[2:]:
            return table(runner)
        failed = check(runner, 1000, KINDS, None)
        failed += check(runner, 1_000_000, KINDS, ("0.1 everywhere",))
        failed += check(runner, 300_000, KINDS, ("both signs",))
        failed += check(runner, 10_000_000, ("sum", "mean"), ("0.1 everywhere",))
        failed += check(runner, 1_000_000, ("sum", "along columns", "contraction"), ("0.1 everywhere",), "--cpu", "sse2")
        failed += check(runner, 20_000, KINDS, ("0.1 everywhere",), "-O0")
        no_running = [k for k in KINDS if k != "running"]  # the reference takes every sum anew
        failed += check(runner, 20_000, no_running, ("0.1 everywhere",), "--backend", "ref")
        failed += one_bit_for_all(runner, 1_000_000)
    for line in failed:
        print(line)
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
