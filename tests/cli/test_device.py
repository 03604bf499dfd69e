"""`--device`: what is refused, what a launch is, and how the driver is called, with a stand-in for it (fake_cuda.c) that
runs nothing. Usage: test_device.py EIN"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
EIN = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/ein"

EACH = "let x: [f32; n]; let y[i] = 2.0 * x[i] + 1.0; print(sum[i](y[i]));"
GATHER = "let x: [f32; n]; let at: [i32; m]; let y[i] = x[at[i]] + 1.0;"
PROGRAMS = {
    "each": "let x: [f32; n]; let y[i] = exp(x[i]) * tanh(x[i]) + 1.0;",
    "rows": "let x: [f32; n, m]; let top[i] = max[j](x[i, j]); let e[i, j] = exp(x[i, j] - top[i]);"
            "let t[i] = sum[j](e[i, j]); let p[i, j] = e[i, j] / t[i];",
    "sums": "let x: [f64; n, m]; let s = sum[i, j](x[i, j] * x[i, j]); let top = max[i, j](x[i, j]);",
    "halves": "let x: [f16; n]; let y[i] = x[i] * x[i]; let s = sum[i](x[i]);",
    "integers": "let x: [i32; n]; let y[i] = x[i] * 3 / 7 % 5; let s = sum[i](x[i]); let any = any[i](x[i] > 3);",
    "gather": GATHER,
    "steps": "let x: [f32; n]; let h[0, i] = x[i]; let h[t in 1..20, i] = 0.5 * (h[t - 1, i] + h[t - 1, (i + 1) % n]);",
    "products": "let a: [f32; n, k]; let b: [f32; k, m]; let c[i, j] = sum[k](a[i, k] * b[k, j]);",
    "random": "let x[i in 0..1000] = uniform(7, i); let s = sum[i](x[i]);",
    "row check": "let x: [f32; n, m]; let at: [i32; m]; let y[i] = sum[j](x[i, at[j]] * x[i, j]);"
                 "let z[i, j] = x[i, j] / y[i];",
    "gradient": "let x: [f32; n, m]; let w: [f32; m]; let y[i] = tanh(sum[j](x[i, j] * w[j]));"
                "let loss = sum[i](y[i] * y[i]); let dw = @loss / @w; let dx = @loss / @x;",
}


def run(*args, **environment):
    return subprocess.run([EIN, *args], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "EINLANG_CACHE": "off", **environment})


class Refused(unittest.TestCase):
    def test_what_only_the_processor_does(self):
        for option in (["--backend", "ref"], ["--check-overflow"], ["--trap", "nan"]):
            done = run("run", "-c", "print(1);", "--device", "emulated", *option)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--device emulated and {' '.join(option[:2]) if option[0] == '--backend' else option[0]} cannot be "
                          "combined", done.stderr)


class Text(unittest.TestCase):
    """PTX, by itself: nothing in it whose result is not defined to the last bit."""

    def ptx(self, name):
        done = run("run", "-c", PROGRAMS[name], "--emit", "ptx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(".visible .entry", done.stdout)
        return done.stdout

    def test_nothing_is_approximate_or_out_of_order(self):
        for name in PROGRAMS:
            with self.subTest(name):
                text = self.ptx(name)
                for pattern in (r"\.approx", r"\.ftz", r"atom\.\S*\.f(16|32|64)", r"red\.\S*\.f", r"\bmad\.f",
                                r"div\.full"):
                    self.assertIsNone(re.search(pattern, text), pattern)
                self.assertNotIn(".extern .func", text)

    def test_products_are_not_fused_into_sums(self):
        done = run("run", "-c", "let x: [f32; n]; let y[i] = x[i] * x[i] + 1.5;", "--emit", "ptx")
        self.assertNotIn("fma", done.stdout)
        self.assertIn("mul.rn.f32", done.stdout)
        self.assertIn("add.rn.f32", done.stdout)

    @unittest.skipUnless(shutil.which("ptxas"), "needs the assembler of CUDA")
    def test_the_assembler_takes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in PROGRAMS:
                with self.subTest(name):
                    path = pathlib.Path(folder) / "program.ptx"
                    path.write_text(self.ptx(name))
                    done = subprocess.run(["ptxas", "-arch=sm_80", str(path), "-o", os.devnull], capture_output=True,
                                          text=True, timeout=120)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Driver(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", cls.folder / "libcuda.so.1", HERE / "fake_cuda.c"], check=True,
                       timeout=120)
        (cls.folder / "broken").mkdir()
        (cls.folder / "broken" / "libcuda.so.1").write_text("this is no library")
        (cls.folder / "x.csv").write_text("1\n2\n3\n4\n5\n")
        (cls.folder / "at.csv").write_text("1\n2\n9\n")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def gpu(self, code, *args, mode="", folder=None):
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        done = run("run", "-c", code, "--device", "gpu", "--error-format", "short", *args, FAKE_CUDA=mode,
                   FAKE_CUDA_LOG=str(log), LD_LIBRARY_PATH=str(folder or self.folder))
        return done, log.read_text().splitlines() if log.exists() else []

    def x(self):
        return ["--in", f"x={self.folder / 'x.csv'}"]

    def test_no_driver_is_said_before_anything_starts(self):
        done, _ = self.gpu('save("never.npy", 1);', folder=self.folder / "broken")
        self.assertEqual(done.returncode, 3)
        self.assertIn("E0813", done.stderr)
        self.assertIn("`libcuda.so.1`, which is part of NVIDIA's driver, cannot be opened", done.stderr)
        self.assertFalse(pathlib.Path("never.npy").exists())

    def test_what_may_be_wrong_with_it(self):
        for mode, said in (("none", "finds no GPU in this machine"), ("old", "it is for CUDA 10.2, and at least 11.0"),
                           ("small", "the GPU `Fake 1000` has compute capability 7.5, and at least 8.0 is needed"),
                           ("broken", "does not start: unknown error"),
                           ("rejects", "does not accept the program: unknown error; ptxas fatal: invented"),
                           ("crashes", "failed while starting a kernel: an illegal memory access")):
            with self.subTest(mode):
                done, _ = self.gpu(EACH, *self.x(), mode=mode)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("E0813", done.stderr)
                self.assertIn(said, done.stderr)

    def test_too_little_memory(self):
        done, _ = self.gpu("let y[i in 0..5000] = exp(0.001 * (i as f32));", "--show", "y", mode="full")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("E0807", done.stderr)

    def test_calls_and_their_order(self):
        done, log = self.gpu(EACH, *self.x())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(log[:2], ["init", "load"])
        self.assertEqual(log[2], "to device 20")  # the input, and nothing else
        launches = [line.split() for line in log if line.startswith("launch")]
        self.assertTrue(launches)
        for _, _, blocks, threads in launches:
            self.assertGreaterEqual(int(blocks), 1)
            self.assertIn(int(threads), (32, 256))
        self.assertEqual(log[-1], "from device 4")  # the sum that is printed
        self.assertEqual(sum(line.startswith("to device") for line in log), 1)

    def test_steps_are_launched_one_after_the_other(self):
        done, log = self.gpu(PROGRAMS["steps"] + "print(h[19, 2]);", *self.x())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(sum(line.startswith("launch") for line in log), 19)
        self.assertLessEqual(sum("device" in line for line in log), 8)  # what steps leave stays on the device

    def test_a_failure_has_the_message_of_the_processor(self):
        inputs = [*self.x(), "--in", f"at={self.folder / 'at.csv'}", "--convert"]
        code = GATHER + "print(y[0]);"
        here = run("run", "-c", code, *inputs, "--error-format", "short")
        self.assertIn("has no cell at [9]: its extents are [5]", here.stderr)
        text = run("run", "-c", code, "--emit", "ptx").stdout
        last = max(map(int, re.findall(r"\.param \.\S+ k0_\w*_param_(\d+)", text)))  # the one before is the record
        done, _ = self.gpu(code, *inputs, mode=f"fails:{last - 1}:0:9,5")
        self.assertEqual((done.returncode, done.stderr), (here.returncode, here.stderr))


if __name__ == "__main__":
    unittest.main()
