"""`ein build`: libraries called through their C headers, programs that stand alone, and what goes wrong.
Usage: test_build.py EIN"""

import ctypes
import os
import pathlib
import resource
import subprocess
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

DENSE = """let x: [f64; n, k];
let W: [f64; k, m];
let scale: f64;
let y[n, m] = scale * sum[k](x[n, k] * W[k, m]);
let loss = sum[n, m](y[n, m] ** 2.0);
let dW = @loss / @W;
"""
CALLER = r"""
#include <stdio.h>
#include <string.h>
#include "dense.h"
int main(void) {
  for (int n = 1; n <= 3; ++n) {  /* one build serves every shape */
    double x[6], W[4] = {1, 2, 3, 4};
    for (int i = 0; i < 2 * n; ++i) x[i] = i;
    dense_inputs in = {.x = x, .x_shape = {n, 2}, .W = W, .W_shape = {2, 2}, .scale = 0.5};
    dense_outputs out;
    memset(&out, 0, sizeof out);
    dense_error error;
    if (dense_run(&in, &out, &error) != 0) { puts(error.message); return 1; }
    printf("%d: loss %g y [%d, %d] dW %g %g %g %g\n", n, out.loss, (int)out.y_shape[0], (int)out.y_shape[1],
           out.dW[0], out.dW[1], out.dW[2], out.dW[3]);
    dense_free(&out);
    if (out.y || out.dW) return 2;
  }
  return 0;
}
"""


class Build(Cli):
    def run_ok(self, *args, **more):
        done = subprocess.run(args, capture_output=True, text=True, timeout=120, cwd=self.folder.name, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def build(self, name, source, *more):
        """A library loaded through ctypes, and its header."""
        program = self.write(f"{name}.ein", source)
        self.check(["build", program, "-o", self.path(f"lib{name}.so"), *more], 0, "")
        return ctypes.CDLL(self.path(f"lib{name}.so")), pathlib.Path(self.path(f"{name}.h")).read_text()


class Library(Build):
    def test_from_c(self):
        _, header = self.build("dense", DENSE)
        for part in ("const double *x;  /* x[n: n, k: k]: f64 */", "int64_t x_shape[2];", "double scale;  /* scale: f64 */",
                     "double *dW;  /* dW[k: k, m: m]: f64 */", "double loss;"):
            self.assertIn(part, header)
        caller = self.write("main.c", CALLER)
        for compiler, more in (("cc", ["-std=c99"]), ("c++", ["-std=c++20", "-x", "c++", "-Wno-missing-field-initializers"])):
            self.run_ok(compiler, "-Wall", "-Wextra", "-Werror", *more, caller, "-x", "none", "-o", self.path("main"),
                        "-L", self.folder.name, "-ldense", "-Wl,-rpath," + self.folder.name)
            out = self.run_ok(self.path("main")).splitlines()
            for n in range(1, 4):
                x, W = numpy.arange(2 * n).reshape(n, 2) * 1.0, numpy.array([[1.0, 2], [3, 4]])
                y = 0.5 * x @ W
                dW = (x.T @ y).ravel()
                self.assertEqual(out[n - 1], f"{n}: loss {(y ** 2).sum():g} y [{n}, 2] dW "
                                             + " ".join(f"{v:g}" for v in dW))

    def test_records_are_structs(self):
        _, header = self.build("net", """type Net = { used: bool, scale: f64, enc: { bias: i8, w: [f64; k, m], deep: { on: bool } }, out: [f64; m] };
let net: Net;
let first: bool;
let x: [f64; n, k];
let h[n, m] = sum[k](x[n, k] * net.enc.w[k, m]);
let y[n] = if first && net.used && net.enc.deep.on { sum[m](h[n, m] * net.out[m]) + (net.enc.bias as f64) } else { 0.0 };
let loss = sum[n](y[n] ** 2.0) * net.scale;
let d = @loss / @net;
let sizes = { small: (net.enc.bias + 6 as i8), wide: { total: 2.0 * loss, last: y[0] > 100.0 || first } };
""", "--show", "loss,d,sizes")
        for part in ("  struct {\n    bool used;  /* net.used: bool */\n    double scale;  /* net.scale: f64 */\n    struct {\n      int8_t bias;", "  } net;\n",
                     "    } enc;\n", "const double *w;  /* net.enc.w[k: k, m: m]: f64 */", "int64_t w_shape[2];"):
            self.assertIn(part, header)
        caller = self.write("main.c", r"""
#include <stdio.h>
#include <string.h>
#include "net.h"
int main(void) {
  double x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 2, 3, 4}, last[] = {0.5, -1};
  net_inputs in;
  memset(&in, 0, sizeof in);
  in.net.used = true;
  in.net.scale = 0.25;
  in.net.enc.bias = -3;
  in.net.enc.w = w; in.net.enc.w_shape[0] = 2; in.net.enc.w_shape[1] = 2;
  in.net.enc.deep.on = true;
  in.net.out = last; in.net.out_shape[0] = 2;
  in.first = true;
  in.x = x; in.x_shape[0] = 3; in.x_shape[1] = 2;
  net_outputs out;
  memset(&out, 0, sizeof out);
  net_error error;
  if (net_run(&in, &out, &error) != 0) { puts(error.message); return 1; }
  printf("%g %g %g %d %g %d\n", out.loss, out.d.enc.w[3], out.d.out[0], out.sizes.small, out.sizes.wide.total,
         out.sizes.wide.last);
  net_free(&out);
  return out.d.enc.w || out.d.out ? 2 : 0;
}
""")
        x, w, last = numpy.arange(1.0, 7).reshape(3, 2), numpy.arange(1.0, 5).reshape(2, 2), numpy.array([0.5, -1])
        y = x @ w @ last - 3
        loss, dy = 0.25 * (y ** 2).sum(), 0.5 * y
        want = f"{loss:g} {numpy.outer(x.T @ dy, last)[1, 1]:g} {(dy @ (x @ w))[0]:g} 3 {2 * loss:g} 1\n"
        for compiler, more in (("cc", ["-std=c99"]), ("c++", ["-std=c++20", "-x", "c++"])):
            self.run_ok(compiler, "-Wall", "-Wextra", "-Werror", *more, caller, "-x", "none", "-o", self.path("main"),
                        "-L", self.folder.name, "-lnet", "-Wl,-rpath," + self.folder.name)
            self.assertEqual(self.run_ok(self.path("main")), want)

    def test_exports_nothing_else(self):
        self.build("dense", DENSE)
        names = self.run_ok("nm", "-D", "--defined-only", self.path("libdense.so"))
        self.assertEqual(sorted(line.split()[-1] for line in names.splitlines()), ["dense_free", "dense_run"])

    def test_names_of_generated_code(self):
        for name in ("ein", "k0", "f"):
            lib, _ = self.build(name, "let run[i in 0..3] = i;\nlet free = run[1];\n")
            self.assertTrue(getattr(lib, name + "_run") and getattr(lib, name + "_free"))

    def test_only_what_is_shown(self):
        _, header = self.build("dense", DENSE, "--show", "loss", "--name", "mine")
        self.assertIn("int mine_run(const mine_inputs *in, mine_outputs *out, mine_error *error);", header)
        self.assertIn("double loss;", header)
        self.assertNotIn("dW;", header)

    class Error(ctypes.Structure):
        _fields_ = [("code", ctypes.c_char * 8), ("message", ctypes.c_char * 1016)]

    def fails(self, lib, name, inputs, outputs, code, message):
        error = self.Error()
        self.assertEqual(getattr(lib, name + "_run")(ctypes.byref(inputs), ctypes.byref(outputs), ctypes.byref(error)), 1)
        self.assertEqual(error.code.decode(), code, error.message)
        self.assertIn(message, error.message.decode())
        self.assertEqual(getattr(lib, name + "_run")(ctypes.byref(inputs), ctypes.byref(outputs), None), 1)

    def test_failures(self):
        lib, _ = self.build("f", "let x: [i64; n];\nlet at: i64;\nlet picked = x[at];\nlet q[n] = 100 / x[n];\n"
                                 "assert(at < 5, \"at is {at}\");\n")

        class Inputs(ctypes.Structure):
            _fields_ = [("x", ctypes.POINTER(ctypes.c_int64)), ("n", ctypes.c_int64), ("at", ctypes.c_int64)]

        class Outputs(ctypes.Structure):
            _fields_ = [("picked", ctypes.c_int64), ("q", ctypes.POINTER(ctypes.c_int64)), ("q_n", ctypes.c_int64),
                        ("owned", ctypes.c_ubyte * 2)]
        cells = (ctypes.c_int64 * 8)(*range(1, 9))
        out = Outputs()
        self.assertEqual(lib.f_run(ctypes.byref(Inputs(cells, 8, 2)), ctypes.byref(out), None), 0)
        self.assertEqual((out.picked, out.q[2], out.q_n), (3, 33, 8))
        # Memory that is there is used, if it fits.
        self.assertEqual(lib.f_run(ctypes.byref(Inputs(cells, 8, 2)), ctypes.byref(out), None), 0)
        self.fails(lib, "f", Inputs(cells, 7, 2), out, "E0802", "the memory for `q` has the extents [8], but its value has [7]")
        lib.f_free(ctypes.byref(out))
        self.assertFalse(out.q)
        self.fails(lib, "f", Inputs(cells, 8, 9), out, "E0803", "f.ein:3:14: `x` has no cell at [9]: its extents are [8]")
        self.fails(lib, "f", Inputs(cells, 8, 6), out, "E0804", "f.ein:5:1: assertion failed: at is 6")
        self.fails(lib, "f", Inputs(None, 8, 2), out, "E0801", "input `x` was not given a value")
        self.fails(lib, "f", Inputs(cells, -1, 2), out, "E0802", "input `x` has a negative extent")
        self.fails(lib, "f", Inputs(cells, 2 ** 60, 2), out, "E0807", "out of memory: `q`")
        error = self.Error()
        self.assertEqual(lib.f_run(None, ctypes.byref(out), ctypes.byref(error)), 1)
        self.assertIn("is null", error.message.decode())
        cells[3] = 0
        self.fails(lib, "f", Inputs(cells, 8, 2), out, "E0806", "integer division by zero")
        self.assertFalse(out.q)

    def test_constraints(self):
        lib, header = self.build("c", "let a: [f32; i];\nlet b: [f32; j];\nlet s = sum[k](a[k] * b[k]);\n")
        self.assertIn("The call fails unless the extents satisfy", header)

        class Inputs(ctypes.Structure):
            _fields_ = [("a", ctypes.POINTER(ctypes.c_float)), ("i", ctypes.c_int64),
                        ("b", ctypes.POINTER(ctypes.c_float)), ("j", ctypes.c_int64)]

        class Outputs(ctypes.Structure):
            _fields_ = [("s", ctypes.c_float), ("owned", ctypes.c_ubyte)]
        cells = (ctypes.c_float * 4)(1, 2, 3, 4)
        out = Outputs()
        self.assertEqual(lib.c_run(ctypes.byref(Inputs(cells, 4, cells, 4)), ctypes.byref(out), None), 0)
        self.assertEqual(out.s, 30)
        self.fails(lib, "c", Inputs(cells, 4, cells, 3), out, "E0805", "3")

    def test_loaded_files_become_part_of_it(self):
        numpy.save(self.path("w.npy"), numpy.array([1.0, 2.0, 3.0], numpy.float32))
        lib, _ = self.build("w", 'let w = load("w.npy");\nlet s = sum[k](w[k]);\n')
        os.remove(self.path("w.npy"))

        class Outputs(ctypes.Structure):
            _fields_ = [("s", ctypes.c_float), ("owned", ctypes.c_ubyte)]
        out = Outputs()
        self.assertEqual(lib.w_run(None, ctypes.byref(out), None), 0)
        self.assertEqual(out.s, 6)

    def test_names_that_c_does_not_have(self):
        _, header = self.build("n", "let double: f32;\nlet int[i in 0..2] = double;\nlet ein_owned = 1;\n")
        self.assertIn("float double_;", header)
        self.assertIn("*int_;", header)
        self.run_ok("cc", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", self.path("n.h"))


class Executable(Build):
    def exe(self, source, *more):
        program = self.write("p.ein", source)
        self.check(["build", program, "--emit", "exe", "-o", self.path("p"), *more], 0, "")
        return lambda *args: subprocess.run([self.path("p"), *args], capture_output=True, text=True, timeout=60,
                                            cwd=self.folder.name)

    def test_prints_like_run(self):
        run = self.exe('let x: [f32; i];\nlet k: i32;\nlet s = sum[i](x[i]) * (k as f32);\nprint(x);\nprint("s is {s:.2f}");\n'
                       'let t = [1, 2, 3];\nprint(t);\nsave("s.npy", s);\n')
        numpy.save(self.path("x.npy"), numpy.array([1.5, 2.5], numpy.float32))
        done = run(f"x={self.path('x.npy')}", "k=2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check([self.path("p.ein"), "--in", f"x={self.path('x.npy')}", "--set", "k=2"], 0, done.stdout)
        self.assertEqual(numpy.load(self.path("s.npy")), 8)
        for args, status, message in ((["k=2"], 3, "error[E0801]: input `x` was not given a value"),
                                      (["x=none.npy", "k=2"], 3, "none.npy"),
                                      (["k=many"], 2, "`many` is not a value of type i32"),
                                      (["z=1"], 2, "`z=1` is not an input of the program"),
                                      (["z"], 2, "usage: ")):
            done = run(*args)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(message, done.stderr)
        self.assertIn("x: [f32; i]", run("--help").stdout)

    def test_inputs_that_nothing_needs(self):
        """Given or left out, as with `ein run`."""
        run = self.exe("let x: f32;\nlet y: [f32; n];\nlet z: i32;\nlet s = sum[n](y[n]);\nprint(x);\n")
        numpy.save(self.path("y.npy"), numpy.array([1.5], numpy.float32))
        program = self.path("p.ein")
        for exe, ein, status, err in (
                (["x=2"], ["--set", "x=2"], 0, ""), (["x=2", "y=y.npy"], ["--set", "x=2", "--in", "y=y.npy"], 0, ""),
                (["y=y.npy", "z=7", "x=2"], ["--set", "x=2", "--in", "y=y.npy", "--set", "z=7"], 0, ""),
                (["x=2", "z=no"], ["--set", "x=2", "--set", "z=no"], 2, "`no` is not a value of type i32"),
                (["x=2", "y=no.npy"], ["--set", "x=2", "--in", "y=no.npy"], 3, "there is no such file"),
                (["x=2", "w=1"], ["--set", "x=2", "--set", "w=1"], 2, "`w"),
                (["x=1e39"], ["--set", "x=1e39"], 2, "`1e39` is not a value of type f32")):
            with self.subTest(exe):
                made, ran = run(*exe), self.ein("run", program, *ein, cwd=self.folder.name)
                self.assertEqual((made.returncode, made.stdout), (status, "2.0\n" if status == 0 else ""), made.stderr)
                self.assertEqual((ran.returncode, ran.stdout), (made.returncode, made.stdout))
                self.assertIn(err, made.stderr)
                self.assertIn(err, ran.stderr)
        self.assertIn("y: [f32; n], not needed", run("--help").stdout)

    def test_output_that_gets_lost(self):
        run = self.exe("print(1);\n")
        self.assertEqual(run().stdout, "1\n")
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.path("p")], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("error[E0808]: cannot write to standard output: No space left on device", done.stderr)
        done = subprocess.run(["sh", "-c", 'exec "$0" >&-', self.path("p")], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)

    def test_failures(self):
        run = self.exe('let n: i64;\nlet x[i in 0..3] = i;\nprint("before");\nassert(n != 2, "two");\nlet y = x[n];\nprint(y);\n')
        self.assertEqual(run("n=1").stdout, "before\n1\n")
        done = run("n=2")
        self.assertEqual((done.returncode, done.stdout), (3, "before\n"))
        self.assertIn("error[E0804]: assertion failed: two\n  --> ", done.stderr)
        done = run("n=7")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("error[E0803]: `x` has no cell at [7]", done.stderr)
        self.assertIn("p.ein:5:9", done.stderr)

    def test_out_of_memory(self):
        run = self.exe("let n: i32;\nlet x[0] = 0.0 as f64;\nlet x[i in 1..n] = x[i - 1] + 1.0;\nlet s = sum[i in 0..n](x[i] * x[n - 1 - i]);\nprint(s);\n")
        self.assertEqual(run("n=3").stdout, "1.0\n")
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
        try:
            done = run("n=900000000")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("error[E0807]: out of memory: `x` has the extents [900000000]", done.stderr)

    def test_the_examples(self):
        folder = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
        for name in ("train", "kalman"):
            self.check(["build", str(folder / f"{name}.ein"), "--emit", "exe", "-o", self.path(name)], 0, "")
            self.check([str(folder / f"{name}.ein")], 0, self.run_ok(self.path(name)))


class Stages(Build):
    def test_text(self):
        program = self.write("p.ein", DENSE)
        for stage, part in (("core", "let y"), ("loops", "kernel"), ("llvm", "define"), ("asm", ".text")):
            done = self.check(["build", program, "--emit", stage, "--show", "dW"], 0)
            self.assertIn(part, done.stdout)
            self.check(["build", program, "--emit", stage, "--show", "dW", "-o", self.path("out")], 0, "")
            self.assertEqual(pathlib.Path(self.path("out")).read_text(), done.stdout)

    def test_object(self):
        self.check(["build", self.write("dense.ein", DENSE), "--emit", "obj", "-o", self.path("dense.o")], 0, "",
                   env={"PATH": "/nowhere"})
        names = self.run_ok("nm", "--defined-only", "--extern-only", self.path("dense.o"))
        self.assertEqual(sorted(line.split()[-1] for line in names.splitlines()), ["dense_free", "dense_run"])
        self.assertTrue(os.path.exists(self.path("dense.h")))

    def test_wrong_usage(self):
        program = self.write("p.ein", DENSE)
        so = self.path("libp.so")
        self.check(["build", program, "-o", so], 2, "", "cannot run `cc`", env={"PATH": "/nowhere", "CC": ""})
        self.check(["build", program, "-o", so], 2, "", "cannot run `nocc`", env={"CC": "nocc"})
        self.check(["build", program, "-o", so], 2, "", "`false` could not link", env={"CC": "false"})
        self.check(["build", program, "-o", so], 0, "", env={"CC": "env gcc"})
        os.remove(so)
        self.check(["build", program, "-o", "/nowhere/libp.so"], 2, "", "cannot write `/nowhere/libp.so`: there is no such folder")
        self.check(["build", program, "-o", so, "--show", "lose"], 2, "", "did you mean `loss`?")
        self.check(["build", program, "-o", so, "--name", "a b"], 2, "", "--name needs a C identifier")
        self.check(["build", "-c", "let x = y;", "-o", so], 1, "", "error[E0201]")
        self.assertFalse(os.path.exists(so))


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
