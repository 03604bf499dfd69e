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

    PRODUCT = ("let x: [f32; i, k]; let W: [f32; k, j]; let h[i, k] = tanh(x[i, k]);"
               "let y[i, j] = sum[k](h[i, k] * W[k, j]);")

    def processors(self):
        flags = set(pathlib.Path("/proc/cpuinfo").read_text().split())
        levels = {"sse2": set(), "avx2": {"avx2", "fma", "f16c", "bmi2"}}
        levels["avx512"] = levels["avx2"] | {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"}
        levels["avx512-bf16"] = levels["avx512"] | {"avx512_bf16"}
        return ["native", *(name for name, needed in levels.items() if needed <= flags)]

    def products(self, code, arrays, precision, *args):
        ins = [a for name, array in arrays.items() for a in ("--in", f"{name}={self.write_array(name, array)}")]
        done = self.check(["-c", code, *ins, "--out", f"y={self.path('y.npy')}", "--precision", precision, *args], 0)
        self.assertEqual(done.stdout, "")
        return numpy.load(self.path("y.npy"))

    def write_array(self, name, array):
        numpy.save(self.path(f"{name}.npy"), array)
        return self.path(f"{name}.npy")

    def test_kernels(self):
        # Sums in more than one part and with an odd number of terms, on every kernel that this machine can run.
        random = numpy.random.default_rng(1)
        x, W = (random.standard_normal(shape).astype("f4") for shape in ((70, 1101), (1101, 90)))
        for precision, rounded in ROUND.items():
            a, b = rounded(numpy.tanh(x.astype("f8"))).astype("f8"), rounded(W).astype("f8")
            # The last bit of tanh may be rounded the other way.
            bound = (0 if precision == "f32" else 4e-5) + 1e-5
            for cpu in self.processors():
                with self.subTest(precision=precision, cpu=cpu):
                    args = {"x": x, "W": W}, precision, "--cpu", cpu
                    y = self.products(self.PRODUCT, *args, "--threads", "1")
                    self.assertLess((abs(y - a @ b) / (abs(a) @ abs(b))).max(), bound)
                    more = self.products(self.PRODUCT, *args, "--threads", "3")
                    numpy.testing.assert_array_equal(y.view("u4"), more.view("u4"))
        ref = self.products(self.PRODUCT, {"x": x, "W": W}, "bf16-mixed", "--backend", "ref")
        a, b = bf16(numpy.tanh(x)).astype("f8"), bf16(W).astype("f8")
        self.assertLess((abs(ref - a @ b) / (abs(a) @ abs(b))).max(), 5e-5)

    def test_operands_take_half_the_memory(self):
        arrays = {"x": numpy.ones((512, 512), "f4"), "W": numpy.ones((512, 512), "f4")}
        ins = [a for name, array in arrays.items() for a in ("--in", f"{name}={self.write_array(name, array)}")]
        held = {}
        for precision in ROUND:
            done = self.check(["run", "-c", self.PRODUCT, *ins, "--show", "y", "--precision", precision, "--emit", "loops"], 0)
            held[precision] = re.findall(r"^temp (\S+): (\S+),", done.stdout, re.M)
        self.assertEqual(held["f32"], [("h", "f32")])
        for precision in ("bf16", "f16"):
            self.assertEqual([t for _, t in held[f"{precision}-mixed"]], [precision, precision])

    def test_written_conversions_are_exact(self):
        # Without --precision nothing is flushed to zero: these are ordinary products of f32.
        code = ("let x: [f32; i, k]; let W: [f32; k, j]; let a[i, k] = x[i, k] as bf16; let b[k, j] = W[k, j] as bf16;"
                "let y[i, j] = sum[k]((a[i, k] as f32) * (b[k, j] as f32));")
        x = numpy.full((40, 33), 2.0**-130, "f4")
        W = numpy.full((33, 40), 2.0**120, "f4")
        y = self.products(code, {"x": x, "W": W}, "f32")
        numpy.testing.assert_allclose(y, 33 * 2.0**-10, rtol=1e-6)
        plan = self.check(["-c", code, "--in", f"x={self.path('x.npy')}", "--in", f"W={self.path('W.npy')}", "--emit",
                           "plan", "--show", "y"], 0).stdout
        self.assertIn("contract bf16 batch", plan)
        # With it they may be.
        y = self.products(code, {"x": x, "W": W}, "bf16-mixed")
        self.assertTrue(((y == 0) | (abs(y / (33 * 2.0**-10) - 1) < 1e-6)).all())

    def test_a_convolution_is_not_unfolded(self):
        code = ("let x: [f32; c, 20, 21]; let w: [f32; o, c, a, b];"
                "let y[o, p in 0..20, q in 0..21] = sum[c, a, b](x[c, p + a - 1, q + b - 1] * w[o, c, a, b]"
                " where p + a >= 1 && q + b >= 1 && p + a - 1 < 20 && q + b - 1 < 21);")
        random = numpy.random.default_rng(2)
        x, w = random.standard_normal((6, 20, 21)).astype("f4"), random.standard_normal((7, 6, 3, 3)).astype("f4")
        y = self.products(code, {"x": x, "w": w}, "bf16-mixed")
        padded = numpy.pad(bf16(x).astype("f8"), ((0, 0), (1, 1), (1, 1)))
        want = sum(numpy.einsum("cpq,oc->opq", padded[:, a:a + 20, b:b + 21], bf16(w).astype("f8")[:, :, a, b])
                   for a in range(3) for b in range(3))
        numpy.testing.assert_allclose(y, want, atol=1e-4)
        ins = [a for n in "xw" for a in ("--in", f"{n}={self.path(n + '.npy')}")]
        loops = self.check(["-c", code, *ins, "--emit", "loops", "--show", "y", "--precision", "bf16-mixed"], 0).stdout
        temps = re.findall(r"^temp \S+: (\S+), rank (\d)", loops, re.M)
        self.assertIn(("bf16", "3"), temps)
        self.assertIn("contract bf16", loops)

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
