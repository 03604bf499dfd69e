"""Functions of whole matrices (std::linalg) against NumPy and differences: with LAPACK where it is installed, without it
(EINLANG_LAPACK=off), and by the reference evaluator. Usage: matrices.py EIN

The sizes lie on both sides of those from which LAPACK is called. Gradients are compared with central differences of
NumPy's values along random directions, second derivatives with differences of our gradients."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

EIN = str(pathlib.Path(sys.argv[1]).resolve())

PROGRAM = """
use std::linalg::{cholesky, det, eigh, inverse, logdet, lu, qr, solve, solve_lower, solve_upper, svd};
let s: [T; z, n, m];
let a: [T; z, n, m];
let t: [T; z, k, m];
let b: [T; z, n, c];
let w: [T; z, n, m];
let l = cholesky(s);
let lower = solve_lower(a, b);
let upper = solve_upper(a, b);
let (pivot, below, above) = lu(a);
let x = solve(a, b);
let g = inverse(a);
let d = det(a);
let e = logdet(a);
let (q, r) = qr(t);
let (values, vectors) = eigh(s);
let (u, size, v) = svd(t);
let f_cholesky = sum[z, n, m](w[z, n, m] * l[z, n, m]);
let f_lower = sum[z, n, c](lower[z, n, c] ** 2);
let f_upper = sum[z, n, c](upper[z, n, c] ** 2);
let f_lu = sum[z, n, m](w[z, n, m] * (below[z, n, m] + above[z, n, m]));
let f_solve = sum[z, n, c](x[z, n, c] ** 2);
let f_inverse = sum[z, n, m](w[z, n, m] * g[z, n, m]);
let f_det = sum[z](d[z] ** 2);
let f_logdet = sum[z](e[z] ** 2);
let f_qr = sum[z, k, m](q[z, k, m] * (k + 1)) + sum[z, n, m](w[z, n, m] * r[z, n, m]);
let f_eigh = sum[z, n, m](w[z, n, m] * vectors[z, n, m] ** 2) + sum[z, n](values[z, n] ** 2);
let f_svd = sum[z, k, m](u[z, k, m] ** 2 * (k + 1)) + sum[z, n, m](w[z, n, m] * v[z, n, m] ** 2) + sum[z, n](size[z, n] ** 2);
"""
BY = {"cholesky": "s", "lower": "a", "upper": "a", "lu": "a", "solve": "a", "inverse": "a", "det": "a", "logdet": "a",
      "qr": "t", "eigh": "s", "svd": "t"}
for name, x in BY.items():
    PROGRAM += f"let g_{name} = @f_{name} / @{x};\n"
PROGRAM += "let gb_solve = @f_solve / @b;\nlet gb_lower = @f_lower / @b;\n"
AXES = {"s": "z, n, m", "a": "z, n, m", "t": "z, k, m"}
DIRECTIONS = "".join(f"let move_{x}: [T; {axes}];\n" for x, axes in AXES.items())
for name, x in BY.items():
    DIRECTIONS += (f"let along_{name} = sum[{AXES[x]}](g_{name}[{AXES[x]}] * move_{x}[{AXES[x]}]);\n"
                   f"let h_{name} = @along_{name} / @{x};\n")
VALUES = ["l", "lower", "upper", "pivot", "below", "above", "x", "g", "d", "e", "q", "r", "values", "vectors", "u", "size", "v"]


def run(folder, text, inputs, wanted, *options, off=False, threads=None):
    source = folder / "p.ein"
    source.write_text(text)
    command = [EIN, "run", source, *options]
    for n, cells in inputs.items():
        np.save(folder / f"{n}.npy", cells)
        command += ["--in", f"{n}={folder / n}.npy"]
    for n in wanted:
        command += ["--out", f"{n}={folder / n}_out.npy"]
    env = {**os.environ, **({"EINLANG_LAPACK": "off"} if off else {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return {n: np.load(folder / f"{n}_out.npy") for n in wanted}


def inputs_of(n, batch, dtype, seed=1):
    r = np.random.default_rng(seed)
    a = np.eye(n) + 0.4 * r.standard_normal((batch, n, n)) / max(n, 1) ** 0.5
    s = a @ np.swapaxes(a, -1, -2) + np.diag(np.arange(n) * 2.0)
    t = np.concatenate([a * (1 + np.arange(n)), 0.1 * r.standard_normal((batch, 3, n))], -2)
    return {k: v.astype(dtype) for k, v in
            dict(s=s, a=a, t=t, b=r.standard_normal((batch, n, 2)), w=r.standard_normal((batch, n, n))).items()}


def signed(v):
    """The first cell that is nearly as large as the largest is positive."""
    size = np.abs(v)
    first = (size >= size.max(-2, keepdims=True) * (1 - 1e-3)).argmax(-2) if v.shape[-2] else np.zeros(v.shape[:-2] + v.shape[-1:], int)
    top = np.take_along_axis(v, first[..., None, :], -2) if v.shape[-2] else np.ones_like(v[..., :1, :])
    return np.where(top < 0, -1.0, 1.0)


def lu(a):
    """Elimination with exchanges of rows, in NumPy's plain operations."""
    u, l, at = a.copy(), np.eye(len(a)), np.arange(len(a))
    for k in range(len(a)):
        best = k + np.abs(u[k:, k]).argmax()
        u[[k, best]], at[[k, best]] = u[[best, k]], at[[best, k]]
        l[[k, best], :k] = l[[best, k], :k]
        l[k + 1:, k] = u[k + 1:, k] / u[k, k]
        u[k + 1:] -= l[k + 1:, k, None] * u[k]
    return at, l, np.triu(u)


def expected(s, a, t, b, w):
    s, a, t, b, w = (x.astype(float) for x in (s, a, t, b, w))
    low = np.tril(s) + np.swapaxes(np.tril(s, -1), -1, -2)
    q, r = np.linalg.qr(t)
    sign = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    values, vectors = np.linalg.eigh((s + np.swapaxes(s, -1, -2)) / 2)
    u, size, vt = np.linalg.svd(t, full_matrices=False)
    v = np.swapaxes(vt, -1, -2)
    turn = signed(v)
    parts = [lu(m) for m in a]
    out = dict(l=np.linalg.cholesky(low), lower=np.linalg.solve(np.tril(a), b), upper=np.linalg.solve(np.triu(a), b),
               x=np.linalg.solve(a, b), g=np.linalg.inv(a), d=np.linalg.det(a), e=np.linalg.slogdet(a)[1],
               q=q * sign[..., None, :], r=r * sign[..., :, None], values=values, vectors=vectors * signed(vectors),
               u=u * turn, size=size, v=v * turn)
    for k, name in enumerate(("pivot", "below", "above")):
        out[name] = np.array([p[k] for p in parts]).reshape(w.shape[:2] if k == 0 else w.shape)
    return out


def losses(given):
    e = expected(**given)
    w, k = given["w"].astype(float), np.arange(1, given["t"].shape[-2] + 1)[:, None]
    return {"cholesky": (w * e["l"]).sum(), "lower": (e["lower"] ** 2).sum(), "upper": (e["upper"] ** 2).sum(),
            "lu": (w * (e["below"] + e["above"])).sum(), "solve": (e["x"] ** 2).sum(), "inverse": (w * e["g"]).sum(),
            "det": (e["d"] ** 2).sum(), "logdet": (e["e"] ** 2).sum(), "qr": (e["q"] * k).sum() + (w * e["r"]).sum(),
            "eigh": (w * e["vectors"] ** 2).sum() + (e["values"] ** 2).sum(),
            "svd": (e["u"] ** 2 * k).sum() + (w * e["v"] ** 2).sum() + (e["size"] ** 2).sum()}


class Matrices(unittest.TestCase):
    def close(self, got, want, tolerance, what):
        self.assertEqual(got.shape, np.shape(want), what)
        size = 1 + np.abs(want).max(initial=0)
        gap = np.abs(got.astype(float) - want).max(initial=0)
        self.assertTrue(gap <= tolerance * size, f"{what}: {gap} of {size}")

    def folder(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        return pathlib.Path(kept.name)

    def check_values(self, n, batch, dtype, *options, off):
        given = inputs_of(n, batch, dtype)
        folder = self.folder()
        got = run(folder, PROGRAM.replace("T;", "f64;" if dtype == np.float64 else "f32;"), given, VALUES, *options, off=off)
        want = expected(**given)
        for name in VALUES:
            with self.subTest(name=name, n=n, dtype=dtype, off=off, options=options):
                self.close(got[name], want[name], 1e-9 if dtype == np.float64 else 3e-4, name)

    def test_values(self):
        for n, batch in ((1, 2), (2, 1), (5, 3), (20, 2), (33, 1), (50, 2)):
            for dtype in (np.float64, np.float32):
                for off in (False, True):
                    self.check_values(n, batch, dtype, off=off)

    def test_values_of_the_reference(self):
        for n, batch in ((1, 1), (4, 2), (17, 1)):
            for dtype in (np.float64, np.float32):
                self.check_values(n, batch, dtype, "--backend", "ref", off=False)

    def test_no_cells(self):
        for n, batch in ((0, 2), (3, 0)):
            for options in ((), ("--backend", "ref")):
                given = inputs_of(n, batch, np.float64)
                got = run(self.folder(), PROGRAM.replace("T;", "f64;"), given, ["l", "x", "g", "above", "d", "e"], *options)
                self.assertEqual(got["l"].shape, (batch, n, n))
                self.assertEqual(got["x"].shape, (batch, n, 2))
                self.assertTrue((got["d"] == 1).all() and (got["e"] == 0).all())

    def check_gradients(self, n, batch, *options, off, second=False):
        given = inputs_of(n, batch, np.float64)
        folder, r = self.folder(), np.random.default_rng(2)
        text = (PROGRAM + (DIRECTIONS if second else "")).replace("T;", "f64;")
        moves = {x: r.standard_normal(given[x].shape) for x in AXES}
        extra = {f"move_{x}": m for x, m in moves.items()} if second else {}
        wanted = [f"g_{name}" for name in BY] + ["gb_solve", "gb_lower"]
        got = run(folder, text, {**given, **extra}, wanted + [f"h_{name}" for name in BY] * second, *options, off=off)
        h = 1e-5
        ends = [{**given, **{x: given[x] + sign * h * m for x, m in moves.items()}} for sign in (1, -1)]
        above, below = (losses(e) for e in ends)
        for name, x in BY.items():
            want, mine = (above[name] - below[name]) / (2 * h), (got[f"g_{name}"] * moves[x]).sum()
            with self.subTest(name=name, n=n, off=off):
                self.assertLess(abs(mine - want), 1e-5 * (1 + abs(want) + np.abs(got[f"g_{name}"]).sum()), name)
        for name in ("solve", "lower"):
            move = r.standard_normal(given["b"].shape)
            sides = [losses({**given, "b": given["b"] + sign * h * move})[name] for sign in (1, -1)]
            want, mine = (sides[0] - sides[1]) / (2 * h), (got[f"gb_{name}"] * move).sum()
            with self.subTest(by_right_side=name, n=n, off=off):
                self.assertLess(abs(mine - want), 1e-5 * (1 + abs(want)), name)
        if not second:
            return
        above, below = (run(folder, PROGRAM.replace("T;", "f64;"), e, wanted, off=off) for e in ends)
        for name in BY:
            with self.subTest(second=name, n=n, off=off):  # the matrix of second derivatives is symmetric
                self.close(got[f"h_{name}"], (above[f"g_{name}"] - below[f"g_{name}"]) / (2 * h), 1e-5, name)

    def test_gradients(self):
        for n, batch in ((1, 1), (3, 2), (40, 1)):
            for off in (False, True):
                self.check_gradients(n, batch, off=off)

    def test_second_derivatives(self):
        for off in (False, True):
            self.check_gradients(3, 2, off=off, second=True)
        self.check_gradients(36, 1, off=False, second=True)

    def test_wide(self):
        """Of fewer rows than columns: Q and R of the first columns, and all right singular vectors."""
        text = """
use std::linalg::{qr, svd};
let a: [f64; z, k, m];
let w: [f64; z, k, m];
let c: [f64; z, n, m];
let (q, r) = qr(a);
let (u, size, v) = svd(a);
let f_qr = sum[z, k, m](w[z, k, m] * q[z, k, m]) + sum[z, n, m](c[z, n, m] * r[z, n, m]);
let g_qr = @f_qr / @a;
// A projection on the first right vectors does not depend on how the others lie.
let p[z, n, m] = sum[j in 0..extent(k)](v[z, n, j] * v[z, m, j]);
let f_svd = sum[z, k, m](w[z, k, m] * u[z, k, m] ** 2) + sum[z, n, m](c[z, n, m] * p[z, n, m]) + sum[z, m](size[z, m] ** 3);
let g_svd = @f_svd / @a;
"""
        r = np.random.default_rng(5)
        for rows, cols in ((1, 2), (3, 7), (34, 50), (200, 230)):
            given = {n: r.standard_normal((2, cols if n == "c" else rows, cols)) for n in "awc"}

            def wanted(a):
                q, upper = np.linalg.qr(a)
                sign = np.sign(np.diagonal(upper, axis1=-2, axis2=-1))
                return q * sign[:, None, :], upper * sign[:, :, None]

            def loss(a):
                q, upper = wanted(a)
                return (given["w"][:, :, :rows] * q).sum() + (given["c"][:, :rows] * upper).sum()

            def svd_loss(a):
                u, size, vt = np.linalg.svd(a, full_matrices=False)
                p = np.swapaxes(vt, 1, 2) @ vt
                return (given["w"][:, :, :rows] * u**2).sum() + (given["c"] * p).sum() + (size**3).sum()
            move = r.standard_normal(given["a"].shape)
            svd_slope = (svd_loss(given["a"] + 1e-6 * move) - svd_loss(given["a"] - 1e-6 * move)) / 2e-6
            slope = (loss(given["a"] + 1e-6 * move) - loss(given["a"] - 1e-6 * move)) / 2e-6
            for off, *options in ((False,), (True,), (False, "--backend", "ref"))[: 3 if rows < 10 else 2]:
                got = run(self.folder(), text, given, ["q", "r", "u", "size", "v", "g_qr", "g_svd"], *options, off=off)
                q, upper = wanted(given["a"])
                self.close(got["q"][:, :, :rows], q, 1e-9, "q")
                self.close(got["r"][:, :rows], upper, 1e-9, "r")
                self.assertTrue((got["q"][:, :, rows:] == 0).all() and (got["r"][:, rows:] == 0).all())
                self.assertLess(abs((got["g_qr"] * move).sum() - slope), 1e-5 * (1 + np.abs(got["g_qr"]).sum()), "g_qr")
                self.assertLess(abs((got["g_svd"] * move).sum() - svd_slope), 1e-5 * (1 + np.abs(got["g_svd"]).sum()), "g_svd")
                u, v, size = got["u"], got["v"], got["size"]
                self.close((u * size[:, None]) @ np.swapaxes(v, 1, 2), given["a"], 1e-12, "product")
                self.close(np.swapaxes(u, 1, 2)[:, :rows] @ u[:, :, :rows], np.broadcast_to(np.eye(rows), (2, rows, rows)), 1e-12, "u")
                self.close(size[:, :rows], np.linalg.svd(given["a"], compute_uv=False), 1e-12, "singular values")
                self.close(size[:, rows:], np.zeros((2, cols - rows)), 1e-12, "singular values beyond the rows")
                self.close(np.swapaxes(v, 1, 2) @ v, np.broadcast_to(np.eye(cols), v.shape), 1e-12, "orthogonal")
                self.close(np.linalg.norm(given["a"] @ v, axis=1), size, 1e-12, "right vectors")

    def test_close_eigenvalues(self):
        r = np.random.default_rng(3)
        for gap in (1e-3, 1e-7, 0.0):
            q = np.linalg.qr(r.standard_normal((30, 30)))[0]
            s = (q * (1 + gap * np.arange(30))) @ q.T
            for off in (False, True):
                got = run(self.folder(), PROGRAM.replace("T;", "f64;"), {**inputs_of(30, 1, np.float64), "s": s[None]},
                          ["values", "vectors"], off=off)
                values, v = got["values"][0], got["vectors"][0]
                self.close(values, np.linalg.eigvalsh(s), 1e-12, "eigenvalues")
                self.close(v.T @ v, np.eye(30), 1e-12, "orthogonal")
                self.close((v * values) @ v.T, (s + s.T) / 2, 1e-12, "product")

    def test_singular_and_indefinite(self):
        for n in (3, 40):
            given = inputs_of(n, 1, np.float64)
            given["a"][0, :, 1] = given["a"][0, :, 0] = 0.0
            given["s"][0, 1, 1] = -5.0
            for off in (False, True):
                for options in ((), ("--backend", "ref"))[: 1 + (n == 3)]:
                    got = run(self.folder(), PROGRAM.replace("T;", "f64;"), given, ["l", "x", "d", "e", "above", "g_det"],
                              *options, off=off)
                    self.assertFalse(np.isfinite(got["l"]).all())  # from the second pivot on
                    self.assertTrue(np.isfinite(got["l"][0, :, 0]).all())
                    self.assertFalse(np.isfinite(got["x"]).all())
                    self.assertEqual(got["d"][0], 0.0)
                    self.assertEqual(got["e"][0], -np.inf)
                    self.assertTrue((got["g_det"] == 0).all())

    def test_large(self):
        """Matrices that threads share block by block: values, gradients, and the same bits for any number of threads."""
        for n, dtype in ((192, np.float64), (250, np.float64), (199, np.float32)):
            self.check_values(n, 1, dtype, off=False)
        self.check_gradients(200, 1, off=False)
        given, results = inputs_of(333, 1, np.float64), []
        names = ["l", "below", "above", "x", "g", "d", "q", "r", "lower", "upper", "g_cholesky", "g_qr", "g_det", "gb_solve"]
        for threads in (1, 2, 3, 7):
            results.append(run(self.folder(), PROGRAM.replace("T;", "f64;"), given, names, "--threads", str(threads)))
        for other in results[1:]:
            for name in names:
                self.assertTrue(np.array_equal(results[0][name], other[name]), name)

    def test_large_and_singular(self):
        given = inputs_of(260, 1, np.float64)
        given["a"][0, :, 100] = given["a"][0, :, 70] = 0.0
        given["s"][0, 210, 210] = -5.0
        got = run(self.folder(), PROGRAM.replace("T;", "f64;"), given, ["l", "d", "x", "pivot", "below", "above", "g_det"])
        self.assertTrue(np.isfinite(got["l"][0, :, :210]).all())
        self.assertFalse(np.isfinite(got["l"][0, 210:, 210:]).all())
        self.assertEqual(got["d"][0], 0.0)
        self.assertFalse(np.isfinite(got["x"]).all())
        self.assertTrue((got["g_det"] == 0).all())
        self.close(got["below"][0] @ got["above"][0], given["a"][0][got["pivot"][0].astype(int)], 1e-12, "product")

    def test_threads_and_places(self):
        """The same bits for any number of threads; inside a recurrence; under a checkpoint; of a transpose."""
        text = """
use std::linalg::{cholesky, solve};
let a: [f64; z, n, m];
let b: [f64; z, n];
let x = solve(a, b);
let turned[z, n, m] = a[z, m, n];
let y = solve(turned, b);
#[checkpoint(2)]
let h[0, z, n] = b[z, n];
let h[t in 1..6, z, n] = {
    let now[z, n, m] = a[z, n, m] + (if n == m { 0.1 * h[t - 1, z, n] ** 2 } else { 0.0 });
    let right[z, n] = h[t - 1, z, n];
    let next = solve(now, right);
    next[z, n]
};
let loss = sum[z, n](h[5, z, n] ** 2);
let da = @loss / @a;
"""
        given = {k: inputs_of(40, 5, np.float64)[k] for k in "ab"}
        given["b"] = given["b"][:, :, 0]
        names, results = ["x", "y", "loss", "da"], []
        for threads in (1, 2, 3, 7):
            results.append(run(self.folder(), text, given, names, "--threads", str(threads)))
        for other in results[1:]:
            for n in names:
                self.assertTrue(np.array_equal(results[0][n], other[n]), n)
        self.close(results[0]["x"], np.linalg.solve(given["a"], given["b"][..., None])[..., 0], 1e-10, "x")
        self.close(results[0]["y"], np.linalg.solve(np.swapaxes(given["a"], 1, 2), given["b"][..., None])[..., 0], 1e-10, "y")

        def loss(a):
            h = given["b"]
            for _ in range(5):
                now = a + np.eye(40) * (0.1 * h**2)[:, :, None]
                h = np.linalg.solve(now, h[..., None])[..., 0]
            return (h**2).sum()
        self.assertAlmostEqual(float(results[0]["loss"]), loss(given["a"]), delta=1e-8 * loss(given["a"]))
        move = np.random.default_rng(4).standard_normal(given["a"].shape)
        want = (loss(given["a"] + 1e-6 * move) - loss(given["a"] - 1e-6 * move)) / 2e-6
        self.assertLess(abs((results[0]["da"] * move).sum() - want), 1e-4 * (1 + abs(want)))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
