"""`--precision`: what is rounded, what is not, and that both back ends agree. Usage: test_precision.py EIN"""

import json
import os
import pathlib
import re
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from tensor_files import Files  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "mixed_precision.ein"


def bf16(x):
    """Rounded to nearest, ties to even."""
    bits = numpy.asarray(x, "f4").view("u4").astype("u8")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16).astype("u4").view("f4")


def f16(x):
    with numpy.errstate(over="ignore"):
        return numpy.asarray(x, "f4").astype("f2").astype("f4")


ROUND = {"f32": lambda x: numpy.asarray(x, "f4"), "bf16-mixed": bf16, "f16-mixed": f16}


class Precision(Files):
    def values(self, code, names, precision, backend="native", *args):
        done = self.check(["-c", code, "--show", names, "--format", "json", "--precision", precision, "--backend",
                           backend, *args], 0)
        return {k: numpy.array(v["data"], "f8") for k, v in json.loads(done.stdout.splitlines()[-1]).items()}

    def test_contractions(self):
        # Small and large ones, with a factor and a gate, and a convolution.
        code = ("let A[i in 0..{n}, k in 0..{m}] = 3.0 * uniform(1, i, k) - 1.5;"
                "let B[k in 0..{m}, j in 0..{n}] = uniform(2, k, j) - 0.5;"
                "let C[i, j] = sum[k](A[i, k] * B[k, j]);"
                "let D[i, j] = 0.5 * sum[k](A[i, k] * B[k, j] where k > i);"
                "let E[p in 0..{n}] = sum[q in 0..3](A[p, q] * B[q, 1] where p > 0);"
                "let F[i] = sum[k](A[i, k] * A[i, k]) + max[k](A[i, k]) + mean[k](0.1 * A[i, k]);")
        for n, m in ((3, 5), (20, 40)):
            text = code.replace("{n}", str(n)).replace("{m}", str(m))
            for precision, rounded in ROUND.items():
                for backend in ("native", "ref"):
                    v = self.values(text, "A,B,C,D,E,F", precision, backend)
                    a, b = rounded(v["A"]).astype("f8"), rounded(v["B"]).astype("f8")
                    with self.subTest(n=n, precision=precision, backend=backend):
                        numpy.testing.assert_allclose(v["C"], a @ b, atol=1e-5)
                        gate = numpy.arange(m)[None, :] > numpy.arange(n)[:, None]
                        numpy.testing.assert_allclose(v["D"], 0.5 * (a * gate) @ b, atol=1e-5)
                        want = a[:, :3] @ b[:3, 1]
                        want[0] = 0
                        numpy.testing.assert_allclose(v["E"], want, atol=1e-5)
                        plain = v["A"]
                        numpy.testing.assert_allclose(
                            v["F"], (plain ** 2).sum(1) + plain.max(1) + 0.1 * plain.mean(1), atol=1e-5)

    def test_other_types_are_left_alone(self):
        code = ("let a: [f64; k] = [0.1, 0.2]; let b: [f64; k] = [0.3, 0.7]; let d = sum[k](a[k] * b[k]);"
                "let m = [300, 7]; let n = [511, 3]; let e = sum[k](m[k] * n[k]);")
        for backend in ("native", "ref"):
            v = self.values(code, "d,e", "bf16-mixed", backend)
            self.assertEqual((v["d"], v["e"]), (0.1 * 0.3 + 0.2 * 0.7, 300 * 511 + 21))

    def test_derivatives_are_rounded_and_not_changed(self):
        code = "let x = [1.001, 2.003]; let w = [0.5, 0.25]; let y = sum[k](x[k] * w[k]); let l = 3.0 * y; let g = @l / @w;"
        for precision, rounded in ROUND.items():
            v = self.values(code, "x,g,y", precision)
            numpy.testing.assert_allclose(v["y"], rounded(v["x"]) @ numpy.array([0.5, 0.25]), rtol=1e-6)
            numpy.testing.assert_allclose(v["g"], 3 * v["x"], rtol=1e-6)  # no sum of products

    def test_too_large_for_f16(self):
        v = self.check(["-c", "let a = [100000.0, 1.0]; let b = [1.0, 2.0]; print(sum[k](a[k] * b[k]));", "--precision",
                        "f16-mixed"], 0, "inf\n")
        self.assertEqual(v.stderr, "")

    def test_the_plan_says_so(self):
        code = "let a = [1.0, 2.0]; let b = [1.0, 2.0]; print(sum[k](a[k] * b[k]));"
        plan = self.check(["-c", code, "--precision", "bf16-mixed", "--emit", "plan"], 0).stdout
        self.assertIn("rounds operands to bf16", plan)
        self.assertNotIn("rounds", self.check(["-c", code, "--emit", "plan"], 0).stdout)
        self.check(["-c", code, "--precision", "f8"], 2)

    def test_kept_programs_do_not_mix(self):
        code = "let a = [1.001, 2.0]; let b = [1.0, 2.0]; print(sum[k](a[k] * b[k]));"
        env = {"EINLANG_CACHE": self.path("cache")}
        for precision, out in (("f32", "5.001"), ("bf16-mixed", "5.0"), ("f32", "5.001"), ("bf16-mixed", "5.0")):
            self.check(["-c", code, "--precision", precision], 0, out + "\n", env=env)

    def test_the_example(self):
        source = EXAMPLE.read_text()
        program = self.write("p.ein", source)
        unscaled = self.write("q.ein", re.sub(r"let scale\[0\] = [^;]*;", "let scale[0] = 1.0;", source)
                              .replace("fine, 50)", "fine, 1000)").replace("assert", "// assert"))

        def run(path, precision, backend="native"):
            out = self.check([path, "--precision", precision, "--backend", backend], 0).stdout
            skipped, error = re.search(r"skipped (\d+).*→ (\S+)", out, re.S).groups()
            return int(skipped), float(error)

        full = run(program, "f32")
        self.assertEqual(full, run(unscaled, "f32"))
        for precision in ("bf16-mixed", "f16-mixed"):
            native, ref = run(program, precision), run(program, precision, "ref")
            self.assertEqual(native[0], ref[0])
            self.assertAlmostEqual(native[1], full[1], delta=0.0005)
            self.assertAlmostEqual(native[1], ref[1], delta=0.0002)
        self.assertGreater(run(program, "f16-mixed")[0], 3)
        self.assertGreater(run(unscaled, "f16-mixed")[1], 20 * full[1])  # most of its derivatives vanish


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
