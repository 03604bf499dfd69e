"""Files that are read while a program runs, step by step. Usage: test_streams.py EIN"""

import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import time
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from tensor_files import Files, safetensors  # noqa: E402

ALWAYS = ("--tune", "stream_bytes=0")

TRAIN = """
let x = load("x.npy");
let y = load("y.npy");
let w[0, f in 0..5] = 0.0;
let w[s in 1..21, f in 0..5] = {
    let p[f] = w[s - 1, f];
    let loss = mean[n in 0..8]((sum[f](x[s - 1, n, f] * p[f]) - y[s - 1, n]) ** 2.0);
    p[f] - 0.1 * @loss / @p[f]
};
let last[f] = w[20, f];
"""
EPOCHS = TRAIN.replace("1..21", "1..101").replace("w[20", "w[100").replace("x[s - 1", "x[(s - 1) % 20") \
    .replace("y[s - 1", "y[(s - 1) % 20")
# Rows of a table, some of them in each step.
BATCHES = """
let x = load("table.npy");
let w[0, f in 0..5] = 0.0;
let w[s in 1..21, f in 0..5] = {
    let p[f] = w[s - 1, f];
    let loss = mean[n in 0..8]((sum[f](x[8 * s + n - 8, f] * p[f]) - 1.0) ** 2.0);
    p[f] - 0.1 * @loss / @p[f]
};
let last[f] = w[20, f];
"""
# Three rows at a time, the last one first.
FILTER = """
let x = load("x.npy");
let a[n in 0..8, t in 0..20] = if t < 18 {
    0.5 * a[n, t + 1] + x[t, n, 0] + x[t + 1, n, 1] - x[t + 2, n, 2]
} else { 0.0 };
let last[n] = a[n, 0];
"""
# A derivative by the start of a recurrence runs back over its steps.
BACK = """
let x = load("x.npy");
let start[f in 0..5] = 0.25;
let h[0, f in 0..5] = start[f];
let h[s in 1..21, f in 0..5] = tanh(h[s - 1, f] + 0.1 * sum[n in 0..8](x[s - 1, n, f]));
let end = sum[f](h[20, f]);
let last[f] = @end / @start[f];
"""
# What is computed after the steps reads the rows again, each once.
AFTER = TRAIN.replace("let last[f] = w[20, f];", """
let loss[s in 0..20] = mean[n in 0..8]((sum[f](x[s, n, f] * w[s, f]) - y[s, n]) ** 2.0);
let last[s in 0..20] = loss[s];
""")
ENDS = TRAIN.replace("p[f] - 0.1 * @loss / @p[f]\n};",
                     "p[f] - 0.1 * @loss / @p[f]\n} until sum[f](abs(w[s, f])) > 8.0;")
# Matrix products.
WIDE = """
let x = load("wide.npy");
let w[0, o in 0..24, f in 0..40] = 0.01 * o;
let w[s in 1..13, o in 0..24, f in 0..40] = {
    let p[o, f] = w[s - 1, o, f];
    let out[n in 0..32, o] = sum[f](x[s - 1, n, f] * p[o, f]);
    let loss = mean[n, o](out[n, o] ** 2.0);
    p[o, f] - 0.1 * @loss / @p[o, f]
};
let last[o, f] = w[12, o, f];
"""


class Streams(Files):
    def setUp(self):
        super().setUp()
        rng = numpy.random.default_rng(7)
        x = rng.normal(size=(20, 8, 5)).astype("f4")
        numpy.save(self.path("x.npy"), x)
        numpy.save(self.path("y.npy"), (x @ numpy.arange(5)).astype("f4"))
        numpy.save(self.path("table.npy"), rng.normal(size=(160, 5)).astype("f4"))
        numpy.save(self.path("wide.npy"), rng.normal(size=(12, 32, 40)).astype("f4"))

    def loops(self, program, *args):
        return self.check([self.write("a.ein", program), "--show", "last", "--emit", "loops", *args], 0).stdout

    def last(self, program, *args):
        done = self.check([self.write("a.ein", program), "--show", "last", "--format", "json", *args], 0)
        return done.stdout


class Values(Streams):
    def same(self, program, streamed=("x",)):
        """Whether a file streams or is read at once, a program computes the same bits."""
        loops = self.loops(program, *ALWAYS)
        for name in streamed:
            self.assertIn(f"fetch {name} from", loops)
        self.assertNotIn("fetch", self.loops(program))
        whole = self.last(program)
        for more in ((), ("--threads", "1"), ("--threads", "3"), ("-O0",)):
            self.assertEqual(self.last(program, *ALWAYS, *more), self.last(program, *more), more)
        self.last(program, *ALWAYS, "--check-bounds")
        a = numpy.array(json.loads(whole)["last"]["data"])
        b = numpy.array(json.loads(self.last(program, *ALWAYS, "--backend", "ref"))["last"]["data"])
        numpy.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)
        return a

    def test_one_row_at_a_time(self):
        a = self.same(TRAIN, ("x", "y"))
        x, y = numpy.load(self.path("x.npy")).astype("f8"), numpy.load(self.path("y.npy")).astype("f8")
        w = numpy.zeros(5)
        for s in range(20):
            w -= 0.1 * 2 / 8 * x[s].T @ (x[s] @ w - y[s])
        numpy.testing.assert_allclose(a, w, rtol=1e-4)

    def test_epochs(self):
        self.same(EPOCHS, ("x", "y"))

    def test_batches_of_rows(self):
        self.same(BATCHES)

    def test_downward_and_several_rows(self):
        self.same(FILTER)

    def test_back_over_the_steps(self):
        self.same(BACK)

    def test_after_the_steps(self):
        self.same(AFTER, ("x", "y"))

    def test_until(self):
        self.same(ENDS, ("x", "y"))

    def test_products(self):
        self.same(WIDE)
        self.same(WIDE.replace("let last[o, f] = w[12, o, f];", """
let out[s in 0..12, n in 0..32, o in 0..24] = sum[f](x[s, n, f] * w[s, o, f]);
let last[s in 0..12, o in 0..24] = mean[n](out[s, n, o] ** 2.0);
"""))

    def test_inputs(self):
        program = TRAIN.replace('let x = load("x.npy")', "let x: [f32; step, n, f]").replace(
            'let y = load("y.npy")', "let y: [f32; step, n]")
        given = ("--in", f"x={self.path('x.npy')}", "--in", f"y={self.path('y.npy')}")
        self.assertIn("fetch x from", self.loops(program, *given, *ALWAYS))
        self.assertEqual(self.last(program, *given, *ALWAYS), self.last(TRAIN))
        self.assertEqual(self.last(program, *given), self.last(TRAIN))
        numpy.save(self.path("x.npy"), numpy.zeros((20, 8), "f4"))
        self.check([self.write("a.ein", program), "--show", "last", *given, *ALWAYS], 3, "",
                   "input `x` needs 3 coordinates, but its value has shape [20, 8]")

    def test_formats(self):
        code = "let s[0, j in 0..3] = 0.0; let s[t in 1..41, j in 0..3] = 0.5 * s[t - 1, j] + " \
               "(x[t - 1, j] as f32); let last[j] = s[40, j];"
        for dtype in ("?", "i1", "u1", "<i2", ">i2", ">i4", "<i8", "<f2", ">f4", "<f8"):
            a = (numpy.arange(120).reshape(40, 3) % 7 - (0 if dtype in ("?", "u1") else 3)).astype(dtype)
            expected = numpy.zeros(3, "f4")
            for row in a:
                expected = numpy.float32(0.5) * expected + row.astype("f4")
            plain = a.astype(a.dtype.newbyteorder("="))
            numpy.save(self.path("d.npy"), a)
            names = {"?": "BOOL", "i1": "I8", "u1": "U8", "i2": "I16", "i4": "I32", "i8": "I64", "f2": "F16",
                     "f4": "F32", "f8": "F64"}
            name = names[dtype.strip("<>")]
            pathlib.Path(self.path("d.safetensors")).write_bytes(
                safetensors({"other": ("U8", numpy.zeros(5, "u1")), "x": (name, plain)}))
            files = ['"d.npy"', '"d.safetensors", "x"']
            kinds = {"i1": 9, "u1": 8, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
            if dtype.strip("<>") in kinds:
                pathlib.Path(self.path("d.idx")).write_bytes(
                    struct.pack(">BBBBII", 0, 0, kinds[dtype.strip("<>")], 2, 40, 3) +
                    a.astype(a.dtype.newbyteorder(">")).tobytes())
                files.append('"d.idx"')
            for file in files:
                with self.subTest(dtype=dtype, file=file):
                    program = f"let x = load({file}); {code}"
                    self.assertIn("fetch x from", self.loops(program, *ALWAYS))
                    got = json.loads(self.last(program, *ALWAYS))["last"]["data"]
                    self.assertEqual(got, json.loads(self.last(program))["last"]["data"])
                    numpy.testing.assert_allclose(got, expected, rtol=1e-6)

    def test_bytes_of_bool_are_truth_values(self):
        header = numpy.lib.format.header_data_from_array_1_0(numpy.zeros((10, 2), "?"))
        with open(self.path("d.npy"), "wb") as f:
            numpy.lib.format.write_array_header_1_0(f, header)
            f.write(bytes(range(20)))
        program = 'let x = load("d.npy"); let n[0] = 0; let n[t in 1..11] = n[t - 1] + ' \
                  "sum[j](if x[t - 1, j] { 1 } else { 0 }); let last = n[10];"
        self.assertEqual(json.loads(self.last(program, *ALWAYS))["last"]["data"], 19)

    def test_empty_rows(self):
        numpy.save(self.path("d.npy"), numpy.zeros((10, 0), "f4"))
        program = 'let x = load("d.npy"); let n[0] = 1.0; let n[t in 1..11] = n[t - 1] + ' \
                  "sum[j](x[t - 1, j]); let last = n[10];"
        self.assertEqual(json.loads(self.last(program, *ALWAYS))["last"]["data"], 1)


class Whole(Streams):
    """Files that do not stream, and the reason that is given."""

    def facts(self, program, *args):
        return self.check(["check", "--facts", self.write("a.ein", program), *args], 0).stdout

    def large(self, name, shape, fill=0):
        """A file of zeros that takes no space on the disk, but for its first row."""
        header = numpy.lib.format.header_data_from_array_1_0(numpy.zeros((1,), "f4"))
        header["shape"] = shape
        with open(self.path(name), "wb") as f:
            numpy.lib.format.write_array_header_1_0(f, header)
            start = f.tell()
            f.write(numpy.full(shape[1:], fill, "f4").tobytes())
            f.truncate(start + 4 * int(numpy.prod(shape)))

    def test_reasons(self):
        self.large("big.npy", (64, 1024, 512))
        step = "let s[0] = 0.0; let s[t in 1..65] = s[t - 1] + {}; print(s[64]);"
        load = 'let x = load("big.npy"); '
        for body, reason in (
                ("x[t - 1, 0, 0] + x[3, 0, 0]", "`s` reads rows that the step `t` does not determine"),
                ("x[t - 1, 0, 0] + x[64 - t, 0, 0]", "`s` reads rows that move differently with the step `t`"),
                ("sum[i](x[i, 0, t])", "does not determine"),
                ("sum[i in 0..40](x[max(t - i, 0), 0, 0])", "does not determine")):
            text = self.facts(load + step.format(body))
            self.assertIn("x does not stream: ", text)
            self.assertIn(reason, text)
        text = self.facts(load + "print(sum[i, j, k](x[i, j, k]));")
        self.assertIn("reads it, but not row by row", text)
        text = self.facts(load + step.format("x[t - 1, 0, 0]") + "print(x);")
        self.assertIn("x does not stream: its value is wanted as a whole", text)
        text = self.facts(load + "let s[0] = 0.0; let s[t in 1..4] = s[t - 1] + "
                          "sum[i in 0..40](x[t + i, 0, 0]); print(s[3]);")
        self.assertIn("x does not stream: one step reads 40 of its 64 rows", text)

    def test_what_streams(self):
        self.large("big.npy", (64, 1024, 512))
        code = "let s[0] = 0.0; let s[t in 1..65] = s[t - 1] + sum[j, k](x[t - 1, j, k]); print(s[64]);"
        text = self.facts(f'let x = load("big.npy"); {code}')
        self.assertIn("files read while the program runs\n"
                      "  x streams: 1 row of 64 in memory at a time, 2 MiB of 128 MiB\n", text)
        program = self.write("a.ein", f"let x: [f32; a, b, c]; {code}")
        found = self.check(["check", "--facts", "--format", "json", program, "--in",
                            f"x={self.path('big.npy')}"], 0).stdout
        self.assertEqual([(f["input"], f["streams"], f["rows"]) for f in json.loads(found)["streams"]],
                         [("x", True, 1)])
        text = self.facts('let x = load("x.npy");' + code.replace("65", "21").replace("64", "20"))
        self.assertIn("  x does not stream: only .npy, .idx and .safetensors files of at least 64 MiB do "
                      "(with 1 row in memory at a time)\n", text)
        self.assertNotIn("files read", self.facts("let x: [f32; n]; print(sum[n](x[n]));"))

    def test_formats_without_rows(self):
        self.large("big.npy", (32, 1024, 512))
        x = numpy.load(self.path("big.npy"), mmap_mode="r")
        numpy.save(self.path("f.npy"), numpy.asfortranarray(x))
        code = "let s[0] = 0.0; let s[t in 1..33] = s[t - 1] + x[t - 1, 0, 0]; print(s[32]);"
        self.assertIn("x does not stream: its cells are in column-major order",
                      self.facts(f'let x = load("f.npy"); {code}'))
        numpy.savez(self.path("f.npz"), x=x)
        self.assertIn("x does not stream: .npz files are read as a whole", self.facts(f'let x = load("f.npz"); {code}'))

    def test_more_than_memory(self):
        """A program reads two gigabytes in the memory of a few rows."""
        self.large("big.npy", (1024, 1024, 512), fill=0.5)
        program = self.write("a.ein", """
let x = load("big.npy");
let w[0, k in 0..512] = 1.0;
let w[s in 1..1025, k in 0..512] = {
    let p[k] = w[s - 1, k];
    let loss = mean[j]((sum[k](x[s - 1, j, k] * p[k])) ** 2.0);
    p[k] - 0.001 * @loss / @p[k]
};
print("{w[1024, 0]}");
""")
        limit = 1500 << 20

        def limited(*args):
            return subprocess.run([test_cli.EIN, "run", str(program), "--threads", "1", *args], text=True,
                                  capture_output=True, cwd=self.folder.name,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        done = limited()
        # One step moves every weight by 0.001 · 2 · 256 · 0.5, the others by nothing.
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertAlmostEqual(float(done.stdout), 1 - 0.256, places=4)
        whole = limited("--tune", f"stream_bytes={1 << 30}", "--backend", "ref")
        self.assertEqual(whole.returncode, 3)
        self.assertIn("out of memory", whole.stderr)

    def test_a_file_that_changes(self):
        self.large("big.npy", (1 << 15, 512, 512))
        program = self.write("a.ein", """
let x = load("big.npy");
let s[0] = 0.0;
let s[t in 1..32769] = 0.5 * s[t - 1] + sum[j, k](x[t - 1, j, k]);
print("{s[32768]}");
""")
        run = subprocess.Popen([test_cli.EIN, "run", str(program)], text=True, cwd=self.folder.name,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(2)
        self.assertIsNone(run.poll())
        os.truncate(self.path("big.npy"), 1 << 20)
        out, said = run.communicate(timeout=60)
        self.assertEqual((run.returncode, out), (3, ""))
        self.assertRegex(said, r"error\[E0808\]: cannot read `.*big.npy`: it (is truncated|changed)")
        self.assertIn("let x = load", said)

    def test_damaged_files(self):
        raw = pathlib.Path(self.path("x.npy")).read_bytes()
        pathlib.Path(self.path("x.npy")).write_bytes(raw[:-4])
        self.check([self.write("a.ein", TRAIN), "--show", "last", *ALWAYS], 1, "", "it is truncated")
        program = TRAIN.replace('let x = load("x.npy")', "let x: [f32; step, n, f]")
        self.check([self.write("a.ein", program), "--show", "last", "--in", f"x={self.path('x.npy')}", *ALWAYS],
                   3, "", "it is truncated")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
