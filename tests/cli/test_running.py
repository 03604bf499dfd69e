"""Long runs and failures: Ctrl-C, progress, --watch, run-time errors, absurd sizes. Usage: test_running.py EIN"""

import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import time
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

BACKENDS = ("native", "ref")
# Far more steps than a test waits for, on either back end, and nothing that can be left out.
LONG = """let a[i in 0..3] = i as f32;
let h[0] = 1.0;
let h[t in 1..40000000] = sum[k in 0..200](sin(h[t - 1] + k as f32));
let down[t in 0..40000000] = if t == 39999999 { 1.0 } else { down[t + 1] * 0.5 };
"""


class Interrupt(Cli):
    def interrupted(self, *args, wait=2.0, times=1):
        """The process after Ctrl-C, and how long that took."""
        done = subprocess.Popen([test_cli.EIN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        time.sleep(wait)
        self.assertIsNone(done.poll(), "it did not run long enough")
        begin = time.monotonic()
        for _ in range(times):
            done.send_signal(signal.SIGINT)
            time.sleep(0.05)
        out, err = done.communicate(timeout=30)
        return done.returncode, out, err, time.monotonic() - begin

    def test_stops_between_steps(self):
        program = self.write("a.ein", LONG + "print(a); print(h[9]);\n")
        for backend in BACKENDS:
            with self.subTest(backend):
                a, h = self.path("a.npy"), self.path("h.npy")
                status, out, err, took = self.interrupted(
                    program, "--backend", backend, "--out", f"a={a}", "--out", f"h={h}")
                self.assertEqual((status, out), (130, ""), err)
                self.assertRegex(err, r"^interrupted: `h` stopped at t = (\d+), after \1 of 40000000 steps\n")
                self.assertIn("not written: `h` is not finished\n", err)
                self.assertEqual(numpy.load(a).tolist(), [0.0, 1.0, 2.0])
                self.assertFalse(os.path.exists(h))
                self.assertLess(took, 3)  # one second, on a machine with other things to do

    def test_without_steps(self):
        code = "let s = sum[i in 0..2000000, j in 0..2000000](sin((i + j) as f32)); print(s);"
        for backend in BACKENDS:
            with self.subTest(backend):
                status, out, err, took = self.interrupted("-c", code, "--backend", backend)
                self.assertEqual((status, out), (130, ""), err)
                self.assertIn("interrupted in the middle of a step", err)
                self.assertLess(took, 3)

    def test_stops_between_rows(self):
        costly = "sin(" * 120 + "s[i, k - 1] + k as f32" + ")" * 120
        program = self.write("a.ein", "let a[i in 0..3] = i as f32;\nlet s[i in 0..20000, 0] = i as f32;\n"
                             f"let s[i in 0..20000, k in 1..2000] = {costly};\nprint(a); print(sum[i, k](s[i, k]));\n")
        self.assertIn("sequence by rows(4) s.k", self.ein(program, "--emit", "plan").stdout)
        a, s = self.path("a.npy"), self.path("s.npy")
        status, out, err, took = self.interrupted(program, "--threads", "1", "--out", f"a={a}", "--out", f"s={s}")
        self.assertEqual((status, out), (130, ""), err)
        self.assertRegex(err, r"^interrupted: `s` stopped after \d+ % of its rows\n")
        self.assertIn("not written: `s` is not finished\n", err)
        self.assertEqual(numpy.load(a).tolist(), [0.0, 1.0, 2.0])
        self.assertLess(took, 3)
        # A user who watches it sees its steps.
        self.assertIn("sequence s.k", self.ein(program, "--watch", "s", "--emit", "plan").stdout)

    def test_quiet_when_nobody_looks(self):
        program = self.write("a.ein", LONG + "print(h[9]);\n")
        _, _, err, _ = self.interrupted(program, "--watch", "h")
        self.assertEqual(len(err.splitlines()), 1, err)


class Memory(Cli):
    def limited(self, megabytes, *args):
        size = megabytes << 20
        return subprocess.run([test_cli.EIN, *args], capture_output=True, text=True, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))

    def test_a_limited_address_space(self):
        # A value that is shown, one in between, and one of which all steps are kept.
        programs = {"x": "let x[i in 0..200000000] = i as f64;\nprint(x);\n",
                    "y": "let y[i in 0..200000000] = sin(i as f64);\nlet s = sum[i in 0..200000000](y[i] * y[199999999 - i]);\n"
                         "print(s);\n",
                    "h": "let h[0] = 1.0;\nlet h[t in 1..400000000] = h[t - 1] * 0.5;\nprint(h);\n"}
        for name, code in programs.items():
            for backend in BACKENDS:
                with self.subTest(name, backend=backend):
                    done = self.limited(1024, "-c", code, "--backend", backend)
                    self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
                    self.assertIn(f"error[E0807]: out of memory: `{name}` has the extents [", done.stderr)

    def test_enough(self):
        for backend in BACKENDS:
            done = self.limited(1024, "-c", "let x[i in 0..1000] = i; print(sum[i in 0..1000](x[i]));",
                                "--backend", backend)
            self.assertEqual((done.returncode, done.stdout), (0, "499500\n"), done.stderr)

    def test_too_little_to_compile(self):
        for megabytes in (64, 100, 200):
            done = self.limited(megabytes, "-c", "print(1);")
            self.assertIn(done.returncode, (0, 3, 127), done.stderr)  # 127: the loader found no room
            if done.returncode == 3:
                self.assertIn("error[E0807]: out of memory", done.stderr)


class Progress(Cli):
    STEPS = "let h[0] = 1.5;\nlet h[t in 1..{n}] = sum[k in 0..200](sin(h[t - 1] + k as f32)) * 0.0 + 1.5;\n" \
            "print(h[1]);\n"

    def test_always(self):
        for backend, n in (("native", 2_000_000), ("ref", 100_000)):
            program = self.write("a.ein", self.STEPS.format(n=n))
            done = self.check([program, "--progress", "always", "--watch", "h", "--backend", backend], 0,
                              "1.5\n", "h: step ")
            self.assertRegex(done.stderr, rf"h: step \d+ of {n}, [\d.]+ steps/s, .* left, h = 1\.5\n")
            self.assertNotIn("\x1b", done.stderr)
            done = self.ein(program, "--backend", backend)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_on_a_terminal(self):
        program = self.write("a.ein", self.STEPS.format(n=2_000_000))
        for options, shown in (([], True), (["--progress", "never"], False)):
            done, err = self.terminal(program, *options)
            self.assertEqual((done.returncode, done.stdout), (0, b"1.5\n"))
            self.assertEqual("steps/s" in err, shown, err)
            if shown:
                self.assertTrue(err.endswith("\r\x1b[K"), err)  # the line is taken away

    def test_what_can_be_watched(self):
        self.check(["-c", "let a = 1;", "--watch", "b"], 2, "", "no value `b`")
        self.check(["-c", "let a = 1;", "--watch", "a"], 2, "", "`a` cannot be watched: this run has no recurrence")
        training = ("let loss[s in 0..4] = (W[s] - 1.0) ** 2; let W[0] = 0.5;"
                    "let W[s in 1..4] = W[s - 1] - 0.1 * @loss[s - 1] / @W[s - 1]; print(loss[3]);")
        self.check(["-c", training, "--watch", "loss"], 0)  # computed from the steps
        self.check(["-c", training + "let a[k in 0..3] = k;", "--watch", "a"], 2, "",
                   "`a` cannot be watched: it does not depend on the steps of a recurrence")
        self.check(["-c", "let a = 1;", "--progress", "maybe"], 2, "")


class Failures(Cli):
    def test_place(self):
        i = self.npy("i.npy", "i32", [1], [7])
        for body, line, col, message in (
                ("let y[k] = x[i[k]];", 3, 12, "`x` has no cell at [7]: its extents are [2]"),
                ("let z[k] = 1 / (i[k] - 7);\nlet y[k] = z[k];", 3, 12, "integer division by zero"),
                ("fn at(k) { x[k] }\nlet y[k] = at(i[k]);", 4, 1, "`x` has no cell at [7]")):
            program = self.write("a.ein", f"let i: [i32; n];\nlet x = [1, 2];\n{body}\nprint(y);\n")
            for backend in BACKENDS:
                with self.subTest(body=body, backend=backend):
                    done = self.check([program, "--in", f"i={i}", "--backend", backend], 3, "",
                                      message)
                    self.assertIn(f" --> {program}:{line}:{col}\n", done.stderr)

    def test_place_of_inputs_and_asserts(self):
        program = self.write("a.ein", "\nlet x: [f32; n];\nprint(x);\n")
        done = self.check([program], 3, "")
        self.assertIn(f"error[E0801]: input `x` was not given a value\n --> {program}:2:5\n", done.stderr)
        program = self.write("a.ein", "let a = 1;\n  assert(a == 2);\n")
        done = self.check([program], 3, "")
        self.assertIn(f"error[E0804]: assertion failed\n --> {program}:2:3\n", done.stderr)

    def test_an_equal_expression_elsewhere(self):
        # Equal expressions are one node, which knows the first of its places.
        i = self.npy("i.npy", "i32", [1], [7])
        program = self.write("a.ein", "let i: [i32; n];\nlet x = [1, 2];\nlet unused[k] = x[i[k]];\n"
                             "let y[k] = x[i[k]];\nprint(y);\n")
        for backend in BACKENDS:
            done = self.check([program, "--in", f"i={i}", "--backend", backend], 3, "")
            self.assertIn(f" --> {program}:4:", done.stderr)


class Faults(Cli):
    def test_a_fault_is_reported(self):
        program = self.write("a.ein", LONG + "print(h[9]);\n")
        for number, text in ((signal.SIGSEGV, "invalid memory access"), (signal.SIGABRT, "the process aborted")):
            running = subprocess.Popen([test_cli.EIN, "run", program], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(0.5)
            running.send_signal(number)
            out, err = running.communicate(timeout=20)
            self.assertEqual((running.returncode, out), (70, ""), err)
            self.assertIn("ein: a bug in the compiler: " + text, err)
            self.assertIn("please report it", err)


class Sizes(Cli):
    def test_a_product_past_64_bits(self):
        code = "let x[i in 0..4000000000, j in 0..4000000000, k in 0..4000000000] = 1.0; " \
               "print(x);"
        for backend in BACKENDS:
            self.check(["-c", code, "--backend", backend], 3, "",
                       "out of memory: `x` has the extents [4000000000, 4000000000, 4000000000]")
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000, 4000000000), }\n"
        pathlib.Path(self.path("x.npy")).write_bytes(
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        self.check(["-c", "let x: [f32; a, b, c]; print(x[0, 0, 0]);", "--in", f"x={self.path('x.npy')}"], 3, "",
                   "its extents do not fit in 64 bits")

    def test_every_scalar_type(self):
        good = {"bool": "true", "i8": "-128", "i16": "-32768", "i32": "2147483647", "i64": "-9223372036854775808",
                "u8": "255", "f16": "1.5", "bf16": "1.5", "f32": "1e-3", "f64": "-inf"}
        bad = {"bool": ["1", "True", ""], "i8": ["128", "-129", "1.0"], "i16": ["32768", "x"],
               "i32": ["2147483648", "1e3"], "i64": ["9223372036854775808", "--1"], "u8": ["256", "-1"],
               "f16": ["one", "1.5x"], "bf16": ["", "1,5"], "f32": ["0x", "1.5 "], "f64": ["nil", "."]}
        for dtype, value in good.items():
            self.check(["-c", f"let x: {dtype}; print(x);", "--set", f"x={value}", "--backend", "ref"], 0)
            for wrong in bad[dtype]:
                with self.subTest(dtype=dtype, value=wrong):
                    self.check(["-c", f"let x: {dtype}; print(x);", "--set", f"x={wrong}"], 2, "",
                               f"`{wrong}` is not a value of type {dtype}")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
