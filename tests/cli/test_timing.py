"""Where the time goes: `ein run --time` and `ein bench`. Usage: test_timing.py EIN"""

import json
import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

PRODUCT = """let A: [f32; i, k];
let B: [f32; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
"""


class Timing(Cli):
    def bench(self, code, *args, repeat=2):
        done = self.check(["bench", "-c", code, "--format", "json", "--no-peaks", "--repeat", str(repeat), *args], 0)
        return json.loads(done.stdout)

    def work(self, code, name, *args):
        """Operations and bytes of the kernel that computes `name`."""
        for k in self.bench(code, *args)["kernels"]:
            if name in k["families"]:
                return k["operations"], k["bytes"]
        self.fail(f"nothing computes {name}")

    def product(self):
        for name, shape in (("A", (8, 16)), ("B", (16, 4))):
            numpy.save(self.path(name + ".npy"), numpy.ones(shape, numpy.float32))
        return ["--in", f"A={self.path('A.npy')}", "--in", f"B={self.path('B.npy')}"]


class Time(Timing):
    def test_standard_output_is_what_it_is(self):
        done = self.check(["run", "-c", "let x[i in 0..4] = sin(i as f32); print(x[0]);", "--time"], 0, "0.0\n",
                          "compiled in ")
        self.assertRegex(done.stderr, r"parse [\d.]+, sema [\d.]+.*plan [\d.]+.*machine")
        self.assertRegex(done.stderr, r"\nfamily +time +share +GFLOP/s +of peak +GB/s +of stream\n")
        self.assertRegex(done.stderr, r"this machine, 1 thread: [\d.]+ GFLOP/s f32, [\d.]+ GFLOP/s f64, stream [\d.]+ GB/s\n")

    def test_json(self):
        done = self.check(["run", "-c", "let x = 1.5;", "--show", "x", "--format", "json", "--time"], 0, None, "compile")
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["x"]["data"], 1.5)
        report = json.loads(done.stderr)
        self.assertEqual([k["families"] for k in report["kernels"]], [["x"]])
        self.assertGreater(report["machine"]["flops_f32"], 1e8)
        self.assertGreater(report["machine"]["stream_bytes"], 1e8)
        self.assertGreater(report["compile"]["total"], 0)

    def test_checkpointing_counts_as_compiling(self):
        code = """let w = 0.9;
#[checkpoint]
let h[0] = w;
let h[t in 1..50] = w * h[t - 1];
let loss = h[49];
print(@loss / @w > 0.0);"""
        self.assertIn("checkpoint ", self.check(["run", "-c", code, "--time"], 0, "true\n", "compiled in").stderr)

    def test_nothing_native(self):
        self.check(["run", "-c", "print(1);", "--backend", "ref", "--time"], 0, "1\n", "--time: nothing ran as native code\n")

    def test_a_failure_is_still_one(self):
        code = "let n: i32; let x = 7 / n; print(x);"
        self.check(["run", "-c", code, "--set", "n=0", "--time"], 3, "", "error[E0806]")


class Work(Timing):
    def test_product(self):
        self.assertEqual(self.work(PRODUCT, "C", *self.product()), (2 * 8 * 16 * 4, 4 * (8 * 16 + 16 * 4 + 8 * 4)))

    def test_what_does_not_move_is_done_once(self):
        code = "let a = 2.0; let x[i in 0..100] = i as f32 * sqrt(a); print(x);"
        self.assertEqual(self.work(code, "x")[0], 101)

    def test_half_a_square(self):
        x = "let x[i in 0..100] = i as f32; "
        code = x + "let p[i in 0..100] = sum[k in 0..=i](max(x[k], x[i])); print(p);"
        self.assertEqual(self.work(code, "p")[0], 2 * 100 * 101 / 2)
        gated = x + "let p[i in 0..100] = sum[k](max(x[k], x[i])) where k <= i; print(p);"
        self.assertEqual(self.work(gated, "p")[0], 2 * 100 * 101 / 2)

    def test_a_running_sum_is_linear(self):
        x = "let x[i in 0..100] = i as f32; "
        for p in ("sum[k in 0..=i](x[k])", "sum[k](x[k]) where k <= i", "sum[k in i..100](x[k])", "1.0 + max[k in 0..i](x[k])"):
            code = f"{x} let p[i in 0..100] = {p}; print(p[99], p[50]);"
            work = sum(k["operations"] for k in self.bench(code)["kernels"])
            self.assertLessEqual(work, 400, p)

    def test_a_gather_moves_what_it_reads(self):
        code = """let t[v in 0..1000, d in 0..8] = (v * d) as f32;
let at[n in 0..10]: i32 = n * 7;
let y[n, d] = t[at[n], d];
print(y);"""
        self.assertEqual(self.work(code, "y"), (0, 4 * (80 + 80)))  # `at` is computed where it is used

    def test_a_scattered_sum_is_one_pass(self):
        code = """let t[v in 0..1000] = v as f32;
let at[n in 0..10]: i32 = n * 7;
let loss = sum[n](t[at[n]] * 2.0);
let g = @loss / @t;
print(g);"""
        self.assertLessEqual(self.work(code, "g")[0], 20)

    def test_steps(self):
        code = "let h[0] = 1.0; let h[t in 1..1001] = h[t - 1] * 0.5 + 1.0; print(h[1000]);"
        kernel = [k for k in self.bench(code)["kernels"] if "h" in k["families"]][0]
        self.assertTrue(kernel["steps"])
        self.assertEqual(kernel["operations"], 2000)

    def test_steps_from_an_input(self):
        code = """let n: i32;
let w = 0.5;
let h[0] = 1.0;
let h[t in 1..n + 1] = h[t - 1] * w + 1.0;
let loss = h[n];
let g = @loss / @w;"""
        kernels = self.bench(code, "--set", "n=1000", "--show", "g")["kernels"]
        back = [k for k in kernels if "d_loss_d_h" in k["families"]]
        self.assertGreaterEqual(back[0]["operations"], 1000)

    def test_doubles_have_their_own_peak(self):
        done = self.check(["bench", "-c", "let x: f64 = 2.0; let y = x * x; print(y);", "--repeat", "1", "--format", "json"], 0)
        machine = json.loads(done.stdout)["machine"]
        self.assertLess(machine["flops_f64"], machine["flops_f32"])


class Bench(Timing):
    def test_table(self):
        done = self.check(["bench", "-c", PRODUCT, *self.product(), "--repeat", "3"], 0)
        self.assertRegex(done.stdout, r"\nC  +[\d.]+ .s +[\d.]+ % +[\d.]+ +[\d.]+ % +[\d.]+ +[\d.]+ %\n")
        self.assertRegex(done.stdout, r"a run takes .* \(median of 3; .*\); computed: C\n")
        self.assertNotIn("made-up", done.stdout)

    def test_runs_and_values(self):
        c = self.path("C.npy")
        report = self.bench(PRODUCT, *self.product(), "--out", f"C={c}", repeat=4)
        self.assertEqual(len(report["runs"]), 4)
        self.assertEqual(numpy.load(c).tolist(), [[16.0] * 4] * 8)

    def test_memory_is_what_the_program_holds(self):
        report = self.bench("let n: i32; let y[i in 0..n] = i as f64; let s = sum[i](y[n - 1 - i] * y[i]);",
                            "--set", "n=4000000", "--show", "y,s")
        self.assertAlmostEqual(report["memory"] / 32e6, 1, delta=0.2)

    def test_precision(self):
        code = "let a = [1.001, 2.0]; let b = [1.0, 2.0]; let s = sum[k](a[k] * b[k]);"
        for precision, want in (("f32", 5.001), ("bf16-mixed", 5)):
            self.bench(code, "--precision", precision, "--out", f"s={self.path('s.npy')}", repeat=1)
            self.assertAlmostEqual(numpy.load(self.path("s.npy")).item(), want, places=5)

    def test_effects_do_not_happen(self):
        done = self.check(["bench", "-c", "let x = 1.0; print(x); assert(x > 2.0);", "--repeat", "2", "--no-peaks"], 0)
        self.assertTrue(done.stdout.startswith("compiled in "))

    def test_inputs_made_up(self):
        report = self.bench(PRODUCT)
        self.assertEqual(sorted(report["made_up"]), ["A", "B"])
        self.assertEqual(report["computed"], ["C"])
        done = self.check(["bench", "-c", PRODUCT, "--repeat", "1", "--no-peaks"], 0)
        self.assertIn("inputs with made-up values and small extents: A, B; supply them with --in NAME=FILE\n", done.stdout)

    def test_wrong_usage(self):
        for args, message in ((["--repeat", "0"], ""), (["--show", "D"], "the program defines no value `D`"),
                              (["--set", "A=1"], "`A` is a tensor"), (["--out", "C"], "--out needs NAME=FILE")):
            self.check(["bench", "-c", PRODUCT, *args], 2, err=message)
        self.check(["bench", "-c", "print(\"hello\");"], 2, err="the program does not define any value to compute")
        self.check(["bench", self.path("none.ein")], 2, err="none.ein")

    def test_programs_that_are_wrong(self):
        self.check(["bench", "-c", "let x = y;"], 1, err="error[E0201]")
        self.check(["bench", "-c", "let n: i32; let x = 7 / n; print(x);", "--set", "n=0"], 3, err="error[E0806]")


if __name__ == "__main__":
    test_cli.EIN = sys.argv.pop(1)
    unittest.main()
