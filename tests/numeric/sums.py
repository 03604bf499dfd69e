"""How many digits sums of floats keep: every kind of sum that there is, over cells of several distributions, against
exact sums. Usage: sums.py EIN [--long]

What is documented (docs/reference.md): a sum of n floats is within 20 log2(n) units of the sum of their sizes, a unit
being 2^-24 for f32 and 2^-53 for f64, rounding of the cells' own products included; sums that are rounded to f16 or
bf16 are within that and half a unit in their own last place. Running and routed sums of f64 are added one after the
other: within n units. The reference adds all in f64, one after the other, and rounds once. All have the
same bits for any number of threads.

`--long` prints the errors, in units, for 10^4 to 10^8 cells (f64: 10^7) beside NumPy's."""

import concurrent.futures
import functools
import math
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np

UNITS = {"f16": 2.0**-24, "bf16": 2.0**-24, "f32": 2.0**-24, "f64": 2.0**-53}  # of what sums are taken in
OWN = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 0.0, "f64": 0.0}  # of what they are rounded to afterwards
FLOATS = ("f32", "f64")
WIDE = 12  # rows, or columns, of the matrices; more than one register of results

DISTRIBUTIONS = {
    "0.1 everywhere": lambda n, rng: np.full(n, 0.1),
    "uniform": lambda n, rng: rng.random(n),
    "both signs": lambda n, rng: rng.random(n) * 2 - 1,
    "heavy tails": lambda n, rng: np.exp(4 * rng.standard_normal(n)),
    "growing": lambda n, rng: np.arange(1, n + 1) / n,
    "large and small": lambda n, rng: np.where(np.arange(n) % 2 == 0, 1e4, 1.1e-4),
}


# ---- exact sums -----------------------------------------------------------------------------------------------------

PIECE = 1 << 20


def exact(pieces):
    """The sum of arrays of f64, as two numbers that come to it but for 2^-100 of it."""
    sums = []
    for piece in pieces:
        cells = piece.ravel().tolist()
        high = math.fsum(cells)
        sums += [high, math.fsum(cells + [-high])]
    high = math.fsum(sums)
    return high, math.fsum(sums + [-high])


def pieces_of(cells):
    return (cells[i : i + PIECE] for i in range(0, len(cells), PIECE))


def two_products(x, y):
    """The products of f64 cells, exactly: the rounded ones and what is missing."""
    def halves(a):
        c = a * 134217729.0
        high = c - (c - a)
        return high, a - high
    p = x * y
    (xh, xl), (yh, yl) = halves(x), halves(y)
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


def plain(cells):
    """The exact sum of the cells, the sum of their sizes, how many."""
    flat = cells.ravel()
    return exact(pieces_of(flat)), exact(np.abs(p) for p in pieces_of(flat))[0], flat.size


def dot(x, y):
    pairs = list(zip(pieces_of(x), pieces_of(y)))
    sizes = exact(np.abs(a * b) for a, b in pairs)[0]
    return exact(part for a, b in pairs for part in two_products(a, b)), sizes, x.size


# ---- kinds of sums --------------------------------------------------------------------------------------------------

class Cells:
    """The inputs of all programs over the same cells, as values of f64 that the type has: in one line, as rows (`xr`)
    and as columns (`xc`)."""

    def __init__(self, dtype, cells):
        self.dtype = dtype
        n = len(cells)
        self.x = rounded(dtype, cells)
        self.y = rounded(dtype, np.roll(self.x, n // 3) + 0.25)
        whole = n // WIDE * WIDE
        self.xr, self.yr = (v[:whole].reshape(WIDE, -1) for v in (self.x, self.y))
        self.xc, self.yc = (v[:whole].reshape(-1, WIDE) for v in (self.x, self.y))
        self.at = np.arange(n, dtype=np.int32)[::-1]
        self.to = np.where(np.arange(n, dtype=np.int32) % 7 == 0, np.int32(2), np.int32(1))
        self.from_ = np.array([0, n // 3, n])


def rounded(dtype, cells):
    if dtype == "bf16":
        bits = cells.astype(np.float32).view(np.uint32).astype(np.uint64)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return cells.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]).astype(np.float64)


def stored(dtype, values):
    if values.dtype != np.float64:
        return values
    if dtype == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2")
    return values.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])


X, XR, XC = "let x: [T; n];", "let xr: [T; m, n];", "let xc: [T; m, n];"
XY, XYR, XYC = X + " let y: [T; n];", XR + " let yr: [T; m, n];", XC + " let yc: [T; m, n];"
TO, AT, FROM = " let to: [i32; n];", " let at: [i32; n];", " let from_: [i64; 3];"
SOME = (0, 3, WIDE - 1)  # of the rows or columns of a result


def over(lines):
    """Expectations of a result with several cells."""
    return lambda c: {i: lines(c, i) for i in SOME}


# By name: the program, whose result is `out`, and by cell of it what `plain` or `dot` give.
KINDS = {
    "sum": (X + "let out = sum[i](x[i]);", lambda c: {0: plain(c.x)}),
    "mean": (X + "let out = mean[i](x[i]);", lambda c: {0: plain(c.x)}),
    "dot": (XY + "let out = sum[i](x[i] * y[i]);", lambda c: {0: dot(c.x, c.y)}),
    "backwards": (X + "let out = sum[i](x[n - 1 - i]);", lambda c: {0: plain(c.x)}),
    "strided": (X + "let out = sum[i in 0..n / 3](x[3 * i]);", lambda c: {0: plain(c.x[::3][: len(c.x) // 3])}),
    "gathered": (X + AT + "let out = sum[i](x[at[i]]);", lambda c: {0: plain(c.x)}),
    "gated": (X + "let out = sum[i](x[i]) where i != 0;", lambda c: {0: plain(c.x[1:])}),
    "gated by data": (X + TO + "let out = sum[i](x[i]) where to[i] != 2;", lambda c: {0: plain(c.x[c.to != 2])}),
    "bounded by data": (X + FROM + "let out[r in 0..2] = sum[i in from_[r]..from_[r + 1]](x[i]);",
                        lambda c: {r: plain(c.x[c.from_[r] : c.from_[r + 1]]) for r in (0, 1)}),
    "fused": (XY + "let a = sum[i](x[i]); let b = sum[i](x[i] * y[i]); let c = max[i](x[i]);"
                   "let out = [a, b, c];", lambda c: {0: plain(c.x), 1: dot(c.x, c.y)}),
    "over steps": (X + "let h[0]: T = x[0]; let h[t in 1..n]: T = x[t] + 0.0 * h[t - 1]; let out = sum[t](h[t]);",
                   lambda c: {0: plain(c.x)}),
    "in a step": (XC + "let h[0]: T = 0.0; let h[t in 1..3]: T = sum[i, j](xc[i, j]) + 0.0 * h[t - 1];"
                       "let out = h[2];", lambda c: {0: plain(c.xc)}),
    "running": (X + "let s[i] = sum[k in 0..=i](x[k]); let out = s[n - 1];", lambda c: {0: plain(c.x)}),
    "running from the end": (X + "let s[i in 0..n] = sum[k in i..n](x[k]); let out = s[0];", lambda c: {0: plain(c.x)}),
    "running, gathered": (X + AT + "let s[i in 0..n] = sum[k in 0..=i](x[at[k]]); let out = s[n - 1];",
                          lambda c: {0: plain(c.x)}),
    "running along rows": (XR + "let s[i, j] = sum[k in 0..=j](xr[i, k]); let out[i] = s[i, n - 1];",
                           over(lambda c, i: plain(c.xr[i]))),
    "running in an expression": (X + "let s[i] = 2.0 * sum[k in 0..=i](x[k]) - 1.0; let out = (s[n - 1] + 1.0) / 2.0;",
                                 lambda c: {0: plain(c.x)}),
    "routed": (X + TO + "let s[v in 0..3] = sum[k](x[k]) where to[k] == v; let out = s[1];",
               lambda c: {0: plain(c.x[c.to == 1])}),
    "along rows": (XR + "let out[i] = sum[j](xr[i, j]);", over(lambda c, i: plain(c.xr[i]))),
    "along columns": (XC + "let out[j] = sum[i](xc[i, j]);", over(lambda c, j: plain(c.xc[:, j]))),
    "of a matrix": (XR + "let out = sum[i, j](xr[i, j]);", lambda c: {0: plain(c.xr)}),
    "of a narrow matrix": (XC + "let out = sum[i, j](xc[i, j]);", lambda c: {0: plain(c.xc)}),
    "of sums": (XC + "let out = sum[i](sum[j](xc[i, j]));", lambda c: {0: plain(c.xc)}),
    "of a triangle": (XC + "let out[i in 0..12] = sum[j in 0..m - i](xc[j, i]);",
                      over(lambda c, i: plain(c.xc[: len(c.xc) - i, i]))),
    "contraction of rows": (XYR + "let out[i, j] = sum[k](xr[i, k] * yr[j, k]);",
                            lambda c: {i * WIDE + j: dot(c.xr[i], c.yr[j]) for i, j in ((0, 0), (5, 7), (11, 11))}),
    "contraction of columns": (XYC + "let out[i, j] = sum[k](xc[k, i] * yc[k, j]);",
                               lambda c: {i * WIDE + j: dot(c.xc[:, i], c.yc[:, j]) for i, j in ((0, 0), (5, 7))}),
    "contraction": (XR + "let yc: [T; n, p]; let out[i, j] = sum[k](xr[i, k] * yc[k, j]);",
                    lambda c: {i * WIDE + j: dot(c.xr[i], c.yc[:, j]) for i, j in ((0, 0), (5, 7), (11, 11))}),
    "matrix by vector": (XC + " let w: [T; p]; let out[i in 0..4] = sum[j](xc[i, j] * w[j]);",
                         lambda c: {i: dot(c.xc[i], c.xc[0]) for i in (0, 3)}),
    "written out": (X + "let out = sum[a in 0..8, b in 0..8, c in 0..8](x[64 * a + 8 * b + c]);",
                    lambda c: {0: plain(c.x[:512])}),
    # Derivatives: adjoints add up.
    "adjoint of a scale": (X + "let w: [T; 1]; let loss = sum[i](x[i] * w[0]); let out = @loss / @w;",
                           lambda c: {0: plain(c.x)}),
    "adjoint of a bias": (XC + "let b: [T; p]; let loss = sum[i, j](xc[i, j] * (b[j] + 1.0)); let out = @loss / @b;",
                          over(lambda c, j: plain(c.xc[:, j]))),
    "adjoint of a table": (X + TO + "let w: [T; 3]; let loss = sum[i](x[i] * w[to[i]]); let out = @loss / @w;",
                           lambda c: {1: plain(c.x[c.to == 1]), 2: plain(c.x[c.to == 2])}),
    "adjoint of weights": (XYC + "let w: [T; 12, 12]; let loss = sum[i, j, k](xc[i, k] * w[k, j] * yc[i, j]);"
                                 "let out = @loss / @w;",
                           lambda c: {k * WIDE + j: dot(c.xc[:, k], c.yc[:, j]) for k, j in ((0, 0), (5, 7))}),
    "adjoint along steps": (X + "let w: [T; 1]; let h[0]: T = w[0] * x[0];"
                                "let h[t in 1..n]: T = h[t - 1] + w[0] * x[t]; let out = @h[n - 1] / @w;",
                            lambda c: {0: plain(c.x)}),
}
# Of f16 and bf16: nothing but the sum is rounded to them. Of others the products are too, or what is made of sums.
ROUNDED_ONCE = ("sum", "backwards", "strided", "gathered", "gated", "gated by data", "bounded by data", "running",
                "running from the end", "running, gathered", "running along rows", "routed", "along rows",
                "along columns", "of a matrix", "of a narrow matrix", "of a triangle", "written out")
PLAIN_INPUTS = {"w": lambda kind, c: {"adjoint of weights": c.xc[:WIDE], "matrix by vector": c.xc[0],
                                      "adjoint of a table": c.x[:3]}.get(kind, c.x[:1]),
                "b": lambda kind, c: c.x[:WIDE]}


def bound(kind, dtype, n, reference):
    """In units of the sum of sizes."""
    if reference and "steps" not in kind and "expression" not in kind:
        return n if dtype == "f64" else 3  # one after the other, in f64
    if dtype == "f64" and ("running" in kind or "routed" in kind or "table" in kind):
        return n
    return 20 * math.log2(max(n, 2))


# ---- running them ---------------------------------------------------------------------------------------------------

class Runner:
    """Programs and inputs in one folder; every input is written once."""

    def __init__(self, ein, folder):
        self.ein, self.folder = ein, pathlib.Path(folder)
        self.number = 0

    def start(self, cells):
        """The cells that the runs to come are over."""
        self.cells, self.written = cells, {}
        for old in self.folder.glob("*.npy"):
            old.unlink()

    def input(self, kind, name):
        value = PLAIN_INPUTS[name](kind, self.cells) if name in PLAIN_INPUTS else getattr(self.cells, name)
        path = self.folder / f"{name}{value.shape}.npy"
        if path not in self.written:
            np.save(path, stored(self.cells.dtype, value))
            self.written[path] = True
        return path

    def prepare(self, kind, *options):
        self.number += 1
        source = KINDS[kind][0].replace("T", self.cells.dtype)
        program, out = self.folder / f"{self.number}.ein", self.folder / f"out{self.number}.npy"
        program.write_text(source + "\n")
        args = [self.ein, "run", str(program), "--out", f"out={out}", "--no-cache", *options]
        for name in ("x", "y", "xr", "yr", "xc", "yc", "at", "to", "from_", "w", "b"):
            if f"let {name}: " in source:
                args += ["--in", f"{name}={self.input(kind, name)}"]
        return args, out

    def finish(self, kind, args, out):
        done = subprocess.run(args, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{kind}, {self.cells.dtype}: {done.stderr}")
        value = np.load(out)
        out.unlink()
        if value.dtype.kind == "V":
            value = (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return value

    def value(self, kind, *options):
        return self.finish(kind, *self.prepare(kind, *options))

    def errors(self, kind, value, reference=False):
        """By cell of the result: the error in units of the sum of sizes, and the most it may be."""
        dtype, got = self.cells.dtype, value.astype(np.float64).ravel()
        for at, ((high, low), sizes, n) in self.expected(kind).items():
            by = n if kind == "mean" else 1
            error = abs(float(Fraction(float(got[at])) * by - Fraction(high) - Fraction(low)))
            roundings = abs(high) if kind in ROUNDED_ONCE else 2 * sizes
            yield max(0.0, error - OWN[dtype] * roundings) / (sizes * UNITS[dtype]), bound(kind, dtype, n, reference)

    @functools.lru_cache(maxsize=None)
    def expected_of(self, kind, cells):
        return KINDS[kind][1](cells)

    def expected(self, kind):
        return self.expected_of(kind, self.cells)


def check(runner, n, names, dtypes, kinds, *options):
    """What is wrong; and how many results were looked at."""
    reference = "ref" in options
    failed, looked = [], 0
    for name in names:
        values = DISTRIBUTIONS[name](n, np.random.default_rng(7))
        for dtype in dtypes:
            runner.start(Cells(dtype, values))
            jobs = [(kind, *runner.prepare(kind, *options)) for kind in kinds]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                results = list(pool.map(lambda job: runner.finish(*job), jobs))
            for kind, value in zip(kinds, results):
                for error, most in runner.errors(kind, value, reference):
                    looked += 1
                    if not error <= most:
                        failed.append(f"{kind} of {n} {dtype} cells, {name} {' '.join(options)}: "
                                      f"{error:.1f} units, at most {most:.1f}")
                        break
    return failed, looked


def same_bits(runner, n, kinds):
    """Whatever the number of threads."""
    failed = []
    for dtype in FLOATS:
        runner.start(Cells(dtype, DISTRIBUTIONS["both signs"](n, np.random.default_rng(3))))
        for kind in kinds:
            got = [runner.value(kind, "--threads", str(t)) for t in (1, 2, 3)]
            if any(g.tobytes() != got[0].tobytes() for g in got):
                failed.append(f"{kind}, {dtype}: other bits with other numbers of threads")
    return failed, 2 * len(kinds)


LONG_KINDS = ("sum", "dot", "along columns", "contraction of columns", "routed", "running", "over steps",
              "adjoint of a bias")


def table(runner):
    print("errors in units (2^-24 of the sum of sizes for f32, 2^-53 for f64)")
    for dtype in FLOATS:
        for name in ("0.1 everywhere", "both signs"):
            print(f"\n{dtype}, {name}\n{'cells':>12}" + "".join(f"{k.replace('contraction of', 'contr.,')[:17]:>18}"
                                                              for k in (*LONG_KINDS, "NumPy's sum")))
            for exponent in (4, 5, 6, 7, 8)[: 5 if dtype == "f32" else 4]:
                n = 10**exponent
                runner.start(Cells(dtype, DISTRIBUTIONS[name](n, np.random.default_rng(7))))
                row = [max(e for e, _ in runner.errors(kind, runner.value(kind))) for kind in LONG_KINDS]
                (high, low), sizes, _ = runner.expected("sum")[0]
                theirs = float(np.sum(stored(dtype, runner.cells.x)))
                row.append(abs((theirs - high) - low) / (sizes * UNITS[dtype]))
                runner.expected_of.cache_clear()
                print(f"{n:>12}" + "".join(f"{e:>18.2f}" for e in row), flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(sys.argv[1], folder)
        if "--long" in sys.argv[2:]:
            return table(runner)
        kinds = list(KINDS)
        running = [k for k in kinds if "running" in k]  # the reference takes those in quadratic time
        quick = [k for k in kinds if k not in running]
        every = list(DISTRIBUTIONS)
        long_ones = ("sum", "of a narrow matrix", "over steps", "contraction of columns", "running", "routed")
        rounds = [
            check(runner, 3000, every[2:4], FLOATS, kinds),
            check(runner, 100_000, every[1:], FLOATS, long_ones),
            check(runner, 1_000_000, every[:1], FLOATS, kinds),
            check(runner, 3000, every[1:2], ("f16", "bf16"), kinds),
            check(runner, 10_000_000, every[:1], ("f32",), ("sum", "along columns")),
            check(runner, 300_000, every[2:3], ("f32",), long_ones, "--cpu", "sse2"),
            check(runner, 2000, every[:1], FLOATS, kinds, "-O0"),
            check(runner, 3000, every[:1], ("f16", "f32", "f64"), quick, "--backend", "ref"),
            check(runner, 600, every[:1], ("f32",), running, "--backend", "ref"),
            same_bits(runner, 500_000, long_ones + ("along rows", "adjoint of a bias", "adjoint of a table")),
        ]
    failed = [line for wrong, _ in rounds for line in wrong]
    for line in failed:
        print(line)
    print(f"{sum(looked for _, looked in rounds)} sums, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
