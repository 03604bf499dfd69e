"""The benchmark script runs every workload, in small, and would notice a wrong result. Usage: bench_test.py ROOT EIN"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

ROOT, EIN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "bench"))
import calls  # noqa: E402
import cases  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402

ROWS = ("ew softmax layernorm gemm contract chain mlp conv conv2 attention block lstm ode heat kalman embed gmm hvp dp "
        "colscan ensemble filters newton polyfit hdiff vadv spmv fft linalg").split()


class Script(unittest.TestCase):
    def bench(self, *args, env=None):
        return subprocess.run([sys.executable, "-B", ROOT / "bench" / "run.py", EIN, "--quick", *args], text=True,
                              capture_output=True, timeout=900, env={**os.environ, **(env or {})})

    def test_every_row_runs_and_agrees(self):
        with tempfile.TemporaryDirectory() as folder:
            out, chart = pathlib.Path(folder) / "out.json", pathlib.Path(folder) / "out.svg"
            done = self.bench("--json", out, "--svg", chart)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = json.loads(out.read_text())
            self.assertTrue(chart.read_text().startswith("<svg"))
        table = found["threads"]["1"]["cases"]
        self.assertEqual(set(table), {c.name for c in cases.CASES})
        self.assertEqual(list(dict.fromkeys(c.row for c in cases.CASES)), ROWS)
        for name, case in table.items():
            self.assertEqual(case["trouble"], [], name)
            self.assertGreater(case["implementations"]["ours"]["seconds"], 0, name)
        self.assertGreater(found["start"]["hello warm"], 0)
        self.check_calls(found["start"])

    def check_calls(self, start):
        """Every call has a figure, or the reason why it has none."""
        for name in calls.CPP + calls.PY:
            if isinstance(start[name], str):
                self.assertRegex(start[name], "^not measured: .+")
            else:
                self.assertTrue(1e-9 < start[name] < 1e-3, f"{name}: {start[name]} s")

    def test_calls(self):
        """From C++ where the library is: the test `api` needs both as well."""
        if (EIN.parent / "libeinlang.so").exists():
            found = calls.from_cpp(EIN.parent)
            if "EIN_SANITIZE:BOOL=ON" not in (EIN.parent / "CMakeCache.txt").read_text():
                self.assertIsInstance(found["call from C++"], float, found)
            self.check_calls({**found, **calls.from_python(EIN.parent)})
        with tempfile.TemporaryDirectory() as folder:
            found = calls.figures(pathlib.Path(folder) / "ein")
        self.check_calls(found)
        self.assertIn("libeinlang.so", found["call from C++"])
        self.assertIn("tests/python/run.py", found["call from Python"])
        self.assertIn("call from Python not measured: no Python package", report.start_text(found))

    def test_without_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "jax.py").write_text("raise ImportError('not here')\n")
            done = self.bench("--rows", "ew.forward", "--peers", "jax", env={"PYTHONPATH": folder})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("peer jax: not installed", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ew.forward +[\d.]+ [mµn]?s .* alone$")

    def test_wrong_rows(self):
        done = self.bench("--rows", "sofmax")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no row `sofmax`", done.stderr)

    def test_a_workload_that_does_not_run(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "bench" / "run.py", "/bin/false", "--quick"], text=True,
                              capture_output=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)


class Comparison(unittest.TestCase):
    def test_deviation(self):
        a = {"y": numpy.array([1.0, 2.0])}
        self.assertEqual(run.deviation(a, a)[0], 0)
        self.assertAlmostEqual(run.deviation(a, {"y": numpy.array([1.0, 2.5])})[0], 0.2)
        self.assertEqual(run.deviation(a, {"y": numpy.array([[1.0, 2.0]])})[0], float("inf"))
        self.assertEqual(run.deviation(a, {"y": numpy.array([1.0, numpy.nan])})[0], float("inf"))

    def test_differences(self):
        case = next(c for c in cases.CASES if c.name == "heat.gradient")
        given = {n: numpy.asarray(a) for n, a in case.make(True).items()}
        g = given["w"].astype(float)
        for _ in range(int(given["steps"])):  # the transposed step
            p = numpy.zeros_like(g)
            p[1:-1, 1:-1] = g[1:-1, 1:-1]
            near = numpy.zeros_like(g)
            near[:-1] += p[1:]
            near[1:] += p[:-1]
            near[:, :-1] += p[:, 1:]
            near[:, 1:] += p[:, :-1]
            g = g - 0.8 * p + 0.2 * near
        self.assertLess(run.against_differences(case, given, {"dfirst": g})[0], run.DIFFERENCES)
        g[3, 4] *= 1.5
        self.assertGreater(run.against_differences(case, given, {"dfirst": g})[0], 10 * run.DIFFERENCES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
