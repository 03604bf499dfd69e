"""What shows only after many calls: whether memory grows, and whether threads disturb each other. Takes some minutes, so it is
not part of `make test`.

    PYTHONPATH=build/python build/environment/bin/python -B tests/python/long.py [calls] [compilations] [threads] [start]

Without words, all four. The status is 1 when a figure is over its limit; a wrong value stops at once.
"""

import concurrent.futures
import gc
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("EINLANG_CACHE", "off")  # what is compiled here is of no use to anybody

import numpy as np  # noqa: E402

import einlang  # noqa: E402

MOST_GROWTH = 1_000_000  # bytes of resident memory
MOST_IMPORT, MOST_COMPILE = 0.040, 0.015  # seconds
F32 = np.float32
LAYER = """
let x: [f32; batch, in];
let W: [f32; out, in];
let z[batch, out] = sum[in](x[batch, in] * W[out, in]);
let loss = mean[batch, out](z[batch, out] ** 2.0);
"""
PICK = "let x: [f32; i]; let k: i64; let y = x[k];"


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def report(what, seconds, begin, end):
    grown = end - begin
    print(f"{what}: {seconds:.1f} s, resident {begin / 1e6:.1f} MB before, {end / 1e6:.1f} MB after, {grown / 1e3:+.0f} kB",
          flush=True)
    return grown <= MOST_GROWTH


def calls(count=1_000_000, warm=50_000):
    """Shapes that change, results that are read and dropped, results into given memory, and one call in ten that fails."""
    layer, pick = einlang.compile(LAYER), einlang.compile(PICK)
    own = np.random.default_rng(3)
    data = [(own.normal(size=(n, 3)).astype(F32), own.normal(size=(2, 3)).astype(F32)) for n in range(1, 6)]
    wanted = [x @ W.T for x, W in data]
    into = [np.zeros_like(z) for z in wanted]
    row = np.arange(5, dtype=F32)

    def some(first, last):
        wrong = 0
        for k in range(first, last):
            way, (x, W), z = k % 10, data[k % 5], wanted[k % 5]
            if way < 6:
                r = layer(x=x, W=W)
                if k % 97 == 0:
                    np.testing.assert_allclose(r.z.numpy(), z, rtol=1e-4, atol=1e-5)
            elif way < 8:
                layer.call({"x": x, "W": W}, out={"z": into[k % 5]})
                if k % 101 == 0:
                    np.testing.assert_allclose(into[k % 5], z, rtol=1e-4, atol=1e-5)
            elif way == 8:
                assert float(pick(x=row, k=k % 5).y) == k % 5
            else:
                try:
                    pick(x=row, k=5 + k % 3)
                except einlang.CallError:
                    wrong += 1
        return wrong

    some(0, warm)
    counts = [sys.getrefcount(part) for pair in data for part in pair]
    before, begin = resident(), time.perf_counter()
    wrong = some(0, count)
    seconds = time.perf_counter() - begin
    assert wrong == count // 10, wrong
    fine = report(f"{count:,} calls, {wrong:,} of them errors", seconds, before, resident())
    assert [sys.getrefcount(part) for pair in data for part in pair] == counts, "reference counts do not balance"
    return fine


def compilations(count=1000, warm=200):
    """Programs that all differ, compiled, called and dropped; every tenth is wrong, every fifth has a gradient."""

    def some(first, last):
        x = np.ones(4, F32)
        for k in range(first, last):
            if k % 10 == 9:
                try:
                    einlang.compile(f"let x: [f32; i]; let y[i] = x[i] + unknown_{k};")
                except einlang.CompileError:
                    continue
                raise AssertionError("a wrong program compiled")
            p = einlang.compile(f"let x: [f32; i]; let y[i] = x[i] * {k}.0; let s = sum[i](y[i]);", opt_level=1)
            assert float(p(x=x).s) == 4 * k
            if k % 5 == 0:
                assert p.grad("s", "x")(x=x).grads.x.numpy().tolist() == [k] * 4

    some(0, warm)
    before, begin = resident(), time.perf_counter()
    some(warm, warm + count)
    return report(f"{count:,} compilations", time.perf_counter() - begin, before, resident())


def threads(count=200_000, many=16):
    """Two programs shared by all threads; two calls in seven of the second one fail."""
    layer, pick = einlang.compile(LAYER), einlang.compile(PICK)

    def work(seed):
        own = np.random.default_rng(seed)
        row, wrong = own.normal(size=5).astype(F32), 0
        for k in range(count // many // 2):
            if k % 50 == 0:
                x, W = own.normal(size=(1 + k % 7, 3)).astype(F32), own.normal(size=(2, 3)).astype(F32)
                z = x @ W.T
            np.testing.assert_array_less(np.abs(layer(x=x, W=W).z.numpy() - z), 1e-4)
            try:
                assert pick(x=row, k=k % 7).y.numpy() == row[k % 7]
                assert k % 7 < 5
            except einlang.CallError as error:
                assert k % 7 >= 5 and f"no cell at [{k % 7}]" in str(error), error
                wrong += 1
        return wrong

    def all_threads():
        with concurrent.futures.ThreadPoolExecutor(many) as pool:
            return list(pool.map(work, range(many)))

    all_threads()  # the C library keeps memory for as many threads as there were at once
    before, begin = resident(), time.perf_counter()
    wrong = all_threads()
    seconds = time.perf_counter() - begin
    assert len(set(wrong)) == 1 and wrong[0] > 0, wrong
    return report(f"{count:,} calls from {many} threads, {sum(wrong):,} of them errors, no wrong value", seconds, before,
                  resident())


START = f"""
import time
import numpy
a = time.perf_counter()
import einlang
b = time.perf_counter()
p = einlang.compile({LAYER!r})
c = time.perf_counter()
print(b - a, c - b)
"""


def start(runs=20):
    """The least of several, because the machine may be busy: `import einlang` after NumPy, and the first compilation of a
    program that the cache has."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(einlang.__file__)), "PYTHONPYCACHEPREFIX": folder,
               "PYTHONDONTWRITEBYTECODE": "", "EINLANG_CACHE": os.path.join(folder, "cache")}
        found = [[float(word) for word in subprocess.run([sys.executable, "-c", START], env=env, capture_output=True, text=True,
                                                         check=True).stdout.split()] for _ in range(runs)]
    importing, compiling = (min(column) for column in zip(*found))
    print(f"import einlang after NumPy: {importing * 1e3:.1f} ms; first compilation, cold cache {found[0][1] * 1e3:.1f} ms, "
          f"warm cache {compiling * 1e3:.1f} ms", flush=True)
    return importing <= MOST_IMPORT and compiling <= MOST_COMPILE


def main(*wanted):
    known = {"calls": calls, "compilations": compilations, "threads": threads, "start": start}
    for name in wanted:
        if name not in known:
            sys.exit(f"long.py: no run `{name}`; there are {', '.join(known)}")
    fine = [known[name]() for name in wanted or known]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
