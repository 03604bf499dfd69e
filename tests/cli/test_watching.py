"""What a long run shows and keeps: --watch, --log, --plot, --save-state and --resume. Usage: test_watching.py EIN"""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

BACKENDS = ("native", "ref")
DATA = "let x[i in 0..4] = i as f32;\nlet y[i in 0..4] = 3.0 * x[i] + 1.0;\n"
# A loss of which only the derivative is used, in a step over a record.
RECORD = DATA + """let state[0] = { w: 0.0, b: 0.0 };
let state[s in 1..STEPS] = {
    let p = state[s - 1];
    let loss = mean[i]((p.w * x[i] + p.b - y[i]) ** 2.0);
    let size = (@loss / @p).w;
    p - 0.01 * (@loss / @p)
};
print(state[LAST].w);
"""
# A loss after the steps, which the program needs at its end only.
AFTER = DATA + """let w[0, j in 0..3] = 0.1 * (j as f32);
let w[s in 1..STEPS, j in 0..3] = w[s - 1, j] - 0.01 * sum[i]((w[s - 1, j] * x[i] - y[i]) * x[i]);
let off[s in 0..STEPS, i, j] = w[s, j] * x[i] - y[i];
let loss[s in 0..STEPS] = mean[i, j](off[s, i, j] ** 2.0);
let down[s in 1..STEPS] = loss[s] - loss[s - 1];
let down[0] = 0.0;
print(loss[LAST]);
"""


def steps(program, n):
    return program.replace("STEPS", str(n)).replace("LAST", str(n - 1))


def record_by_hand(n):
    """Loss, slope by w and state before each step, in doubles."""
    x = numpy.arange(4.0)
    y, w, b, out = 3 * x + 1, 0.0, 0.0, []
    for _ in range(1, n):
        e = w * x + b - y
        out.append((numpy.mean(e ** 2), numpy.mean(2 * e * x)))
        w, b = w - 0.01 * numpy.mean(2 * e * x), b - 0.01 * numpy.mean(2 * e)
    return out


class Watching(Cli):
    def rows(self, path):
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def log(self, program, *args, name="run.csv"):
        path = self.path(name)
        done = self.ein(program, "--log", path, *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.rows(path), done.stdout


class Log(Watching):
    def test_locals_of_a_step(self):
        program = self.write("a.ein", steps(RECORD, 50))
        for backend in BACKENDS:
            with self.subTest(backend):
                rows, out = self.log(program, "--watch", "loss,size,state.b", "--backend", backend)
                self.assertEqual(out, self.ein(program, "--backend", backend).stdout)
                # `state` has a first step, which is no step of the block.
                self.assertEqual([int(r["step"]) for r in rows], list(range(50)))
                self.assertEqual((rows[0]["loss"], rows[0]["size"], rows[0]["state.b"]), ("", "", "0"))
                want = numpy.array(record_by_hand(50))
                got = numpy.array([[float(r["loss"]), float(r["size"])] for r in rows[1:]])
                numpy.testing.assert_allclose(got, want, rtol=2e-5)

    def test_values_after_the_steps(self):
        saved = steps(AFTER, 60) + 'save("loss.npy", loss);\nsave("down.npy", down);\n'
        for backend in BACKENDS:
            with self.subTest(backend):
                rows, _ = self.log(self.write("a.ein", saved), "--watch", "loss,down", "--backend", backend)
                for name in ("loss", "down"):
                    want = numpy.load(self.path(name + ".npy"))
                    got = numpy.array([float(r[name]) for r in rows], numpy.float32)
                    if name == "loss":  # computed by the run: the same bits
                        self.assertEqual(got.tobytes(), want.tobytes())
                    numpy.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    def test_what_the_program_does_not_need(self):
        program = self.write("a.ein", steps(AFTER, 60).replace("print(loss[59]);", "print(w[59, 0]);"))
        rows, _ = self.log(program)
        self.assertEqual((len(rows), list(rows[0])), (60, ["recurrence", "step", "loss"]))
        self.assertLess(float(rows[-1]["loss"]), float(rows[0]["loss"]))

    def test_the_same_bits_with_and_without(self):
        for text in (RECORD, AFTER):
            program = self.write("a.ein", steps(text, 300))
            name = "state.w" if text is RECORD else "w"
            plain, watched = self.path("plain.npy"), self.path("watched.npy")
            self.check([program, "--out", f"{name}={plain}"], 0)
            self.check([program, "--out", f"{name}={watched}", "--log", self.path("a.jsonl")], 0)
            self.assertEqual(pathlib.Path(plain).read_bytes(), pathlib.Path(watched).read_bytes())

    def test_jsonl(self):
        program = self.write("a.ein", "let h[0] = 1.0;\nlet h[t in 1..5] = h[t - 1] * 1e20;\nprint(h);\n")
        path = self.path("run.jsonl")
        self.check([program, "--watch", "h", "--log", path], 0)
        rows = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
        self.assertEqual([r["step"] for r in rows], [0, 1, 2, 3, 4])
        self.assertEqual([r["h"] for r in rows], [1, 1e20, "inf", "inf", "inf"])
        self.assertEqual(rows[0]["recurrence"], "h")

    def test_every_type_and_direction(self):
        program = self.write("a.ein", "let k[0] = 0;\nlet k[t in 1..6] = k[t - 1] + t;\n"
                             "let d[t in 0..6] = if t == 5 { 1.0 } else { d[t + 1] * 0.1 };\n"
                             "let e[0] = true;\nlet e[t in 1..6] = !e[t - 1];\n"
                             "let big[0]: f64 = 0.1;\nlet big[t in 1..6] = big[t - 1] / 3.0;\n"
                             "print(k, d, e, big);\n")
        rows, _ = self.log(program, "--watch", "k,d,e,big")

        def column(name):  # recurrences along the same steps run in one loop
            return [(int(r["step"]), r[name]) for r in rows if r[name]]

        self.assertEqual(column("k"), [(t, str(t * (t + 1) // 2)) for t in range(6)])
        self.assertEqual(column("e"), [(t, "false" if t % 2 else "true") for t in range(6)])
        self.assertEqual([t for t, _ in column("d")], [5, 4, 3, 2, 1, 0])
        want = 0.1
        for t, value in column("big"):
            self.assertEqual(float(value), want)
            want /= 3.0

    def test_numbers_that_stay_in_variables(self):
        # `half` is read in its own step only, `y` and `z` also in the next one; all are summed while the steps run.
        program = self.write("a.ein", "let y[0]: f64 = 1.0;\nlet z[0]: f64 = 0.5;\n"
                             "let half[t in 0..40]: f64 = 0.3 * y[t] + (t as f64);\n"
                             "let y[t in 1..40] = 0.5 * z[t - 1] + 0.25 * half[t - 1];\n"
                             "let z[t in 1..40] = 0.75 * y[t] - 0.1 * z[t - 1];\n"
                             "print(sum[t](half[t] * y[t] + z[t]));\n")
        rows, out = self.log(program, "--watch", "y,z,half")
        y, z, total = 1.0, 0.5, 0.0
        for t, row in enumerate(rows):
            half = 0.3 * y + t
            numpy.testing.assert_allclose([float(row[n]) for n in ("y", "z", "half")], [y, z, half], rtol=1e-14)
            total += half * y + z
            y, last = 0.5 * z + 0.25 * half, z
            z = 0.75 * y - 0.1 * last
        self.assertEqual(len(rows), 40)
        self.assertAlmostEqual(float(out), total, delta=1e-9)

    def test_until(self):
        program = self.write("a.ein", "let x[0]: f64 = 2.0;\n"
                             "let x[t in 1..1000] = 0.5 * (x[t - 1] + 2.0 / x[t - 1])\n"
                             "    until abs(x[t] - x[t - 1]) < 1e-9;\n"
                             "let gap[t in 1..1000] = abs(x[t] - x[t - 1]);\nlet gap[0] = 1.0;\n"
                             "print(ran(x), last(x));\n")
        rows, out = self.log(program, "--watch", "x,gap")
        ran = int(out.split()[0])
        self.assertEqual([int(r["step"]) for r in rows], list(range(ran + 1)))
        self.assertLess(float(rows[-1]["gap"]), 1e-9)

    def test_it_can_be_followed(self):
        program = self.write("a.ein", "let h[0] = 1.0;\nlet h[t in 1..40000000] = "
                             "sum[k in 0..200](sin(h[t - 1] + k as f32));\nprint(h[9]);\n")
        path = self.path("run.csv")
        running = subprocess.Popen([test_cli.EIN, program, "--watch", "h", "--log", path],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            sizes = []
            for _ in range(40):
                time.sleep(0.25)
                sizes.append(os.path.getsize(path) if os.path.exists(path) else 0)
                if len(set(sizes)) > 3:
                    break
            self.assertGreater(len(set(sizes)), 3, sizes)
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(timeout=30)
        rows = self.rows(path)
        self.assertEqual([int(r["step"]) for r in rows], list(range(len(rows))))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk(self):
        program = self.write("a.ein", steps(RECORD, 50000))
        link = self.path("full.csv")
        os.symlink("/dev/full", link)
        self.check([program, "--log", link], 3, "", "error[E0808]: cannot write")

    def test_mistakes(self):
        program = self.write("a.ein", steps(AFTER, 5))
        self.check([program, "--log", "run.txt"], 2, "", "ends in .csv or .jsonl")
        self.check([program, "--log", "no/such/run.csv"], 3, "", "error[E0808]: cannot write `no/such/run.csv`")
        self.check([program, "--log", "a.csv", "--watch", "w"], 2, "",
                   "`w` cannot be watched: it is an array at each step")
        pathlib.Path(self.path("old.csv")).write_text("kept\n")
        self.check([program, "--log", self.path("old.csv"), "--watch", "w"], 2)
        self.assertEqual(pathlib.Path(self.path("old.csv")).read_text(), "kept\n")  # refused: nothing happened
        self.check([program, "--watch", "off"], 2, "", "`off` cannot be watched: it is an array at each step")
        self.check([program, "--watch", "lss"], 2, "", "no value `lss`; did you mean `loss`?")
        self.check([program, "--watch", "x"], 2, "", "`x` cannot be watched")
        self.check(["-c", "let loss = 1.0; print(loss);", "--log", "a.csv"], 2, "", "this run has no recurrence")
        self.check(["-c", "let a[0] = 1.0; let a[t in 1..5] = a[t - 1] / 2.0; print(a);", "--log", "a.csv"], 2, "",
                   "--log: name what to write with --watch")

    def test_names_that_exist_twice(self):
        # The value of the program comes before the local; `w.loss` is the local.
        program = self.write("a.ein", """let w[0] = 1.0;
let w[s in 1..20] = {
    let loss = w[s - 1] ** 2.0;
    0.8 * w[s - 1] + 0.0 * loss
};
let loss[s in 0..20] = 100.0 + w[s];
print(w[19]);
""")
        rows, _ = self.log(program, "--watch", "loss,w.loss")
        self.assertEqual(len(rows), 20)
        for r in rows[1:]:
            self.assertGreater(float(r["loss"]), 100)
            self.assertLess(float(r["w.loss"]), 1.5)

    def test_locals_of_two_recurrences(self):
        one = """let A[0] = 1.0;
let A[s in 1..9] = {
    let loss = A[s - 1] * 2.0;
    A[s - 1] * 0.5 + 0.0 * loss
};
"""
        program = self.write("a.ein", one.replace("A", "u") + one.replace("A", "v").replace("2.0", "3.0 + u[8]")
                             + "print(v[8]);\n")
        rows, _ = self.log(program)
        self.assertEqual({r["recurrence"] for r in rows}, {"u", "v"})
        self.assertEqual(len([r for r in rows if r["loss"]]), 16)


class Progress(Watching):
    LONG = """let w[0] = 0.5;
let w[s in 1..400000] = {
    let loss = sum[k in 0..200](sin(w[s - 1] + k as f32)) ** 2.0;
    w[s - 1] - 0.001 * loss
};
print(w[399999]);
"""

    def test_the_loss_is_shown_unasked(self):
        program = self.write("a.ein", self.LONG)
        done, err = self.terminal(program)
        out = done.stdout.decode()
        self.assertRegex(err, r"w: step \d+ of 400000, \d+ steps/s, .* left, loss = [\d.]+")
        self.assertEqual(out, self.ein(program).stdout)
        self.assertTrue(err.endswith("\r\x1b[K"), err)

    def test_what_is_asked_for(self):
        program = self.write("a.ein", self.LONG)
        _, err = self.terminal(program, "--watch", "w")
        self.assertRegex(err, r"left, w = ")
        self.assertNotIn("loss", err)


class Memory(Watching):
    STEPS = 1000000
    PROGRAM = """let w[0, j in 0..64] = 0.001 * (j as f32);
let w[s in 1..STEPS, j in 0..64] = 0.5 * w[s - 1, j] + 0.25 * w[s - 1, (j + 1) % 64] + 0.01;
let off[s in 0..STEPS, j] = w[s, j] - 0.5;
let loss[s in 0..STEPS] = mean[j](off[s, j] ** 2.0);
"""

    # Two readers, so that it is not inlined.
    DRAWN = """let w[0, j in 0..64] = 0.0;
let w[s in 1..STEPS, j in 0..64] = {
    let x[i in 0..64] = uniform(3, s, i);
    let error = sum[i](x[i] * (w[s - 1, i] - 0.5));
    w[s - 1, j] - 0.01 * error * x[j]
};
let loss[s in 0..STEPS] = mean[j]((w[s, j] - 0.5) ** 2.0);
"""

    def peak(self, text, before=PROGRAM):
        """Kilobytes, and what it prints."""
        program = self.write("a.ein", steps(before + text, self.STEPS))
        code = ("import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True, text=True);"
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); print(done.stdout + done.stderr)")
        done = subprocess.run([sys.executable, "-c", code, test_cli.EIN, program], capture_output=True, text=True,
                              cwd=self.folder.name, timeout=300)
        first, rest = done.stdout.split("\n", 1)
        return int(first), rest.strip()

    def test_reading_the_loss_keeps_no_steps(self):
        plain, _ = self.peak("print(w[LAST, 3]);\n")
        last, printed = self.peak("print(loss[LAST]);\n")
        self.assertAlmostEqual(float(printed), 0.2116, places=3)
        self.assertLess(last, 1.1 * plain)
        saved, _ = self.peak('print(loss[LAST]);\nsave("loss.npy", loss);\n')
        series = 4 * self.STEPS // 1024
        self.assertLess(saved, 1.1 * plain + series)
        loss = numpy.load(self.path("loss.npy"))
        self.assertEqual(loss.shape, (self.STEPS,))
        w = 0.001 * numpy.arange(64, dtype=numpy.float64)
        for s in range(50):
            self.assertAlmostEqual(float(loss[s]), float(numpy.mean((w - 0.5) ** 2)), places=5)
            w = 0.5 * w + 0.25 * numpy.roll(w, -1) + 0.01

    def test_data_of_a_step_is_drawn_in_the_step(self):
        plain, _ = self.peak("print(w[LAST, 3]);\n")
        drawn, printed = self.peak("print(w[LAST, 3]);\n", self.DRAWN)
        self.assertAlmostEqual(float(printed), 0.5, places=3)
        self.assertLess(drawn, 1.1 * plain)  # all draws are 256 MB
        both, printed = self.peak("print(loss[LAST]);\n", self.DRAWN)
        self.assertLess(float(printed), 1e-6)
        self.assertLess(both, 1.1 * plain)


class Plot(Watching):
    def test_a_plot(self):
        program = self.write("a.ein", steps(RECORD, 3000))
        path = self.path("run.svg")
        self.check([program, "--plot", path], 0)
        text = pathlib.Path(path).read_text()
        root = xml.etree.ElementTree.fromstring(text)
        self.assertTrue(root.tag.endswith("svg"))
        self.assertIn("loss", text)
        points = max(re.findall(r"<path d='([^']*)'", text), key=len).count("L")
        self.assertGreater(points, 400)
        self.assertLess(points, 1001)

    def test_it_is_drawn_while_the_run_goes_on(self):
        program = self.write("a.ein", Progress.LONG.replace("400000", "40000000").replace("399999", "39999999"))
        path = self.path("run.svg")
        running = subprocess.Popen([test_cli.EIN, program, "--plot", path], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            seen = set()
            for _ in range(100):
                time.sleep(0.25)
                if os.path.exists(path):
                    text = pathlib.Path(path).read_text()
                    xml.etree.ElementTree.fromstring(text)  # whole, at any time
                    seen.add(hash(text))
                if len(seen) > 2:
                    break
            self.assertGreater(len(seen), 2)
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(timeout=30)

    def test_mistakes(self):
        program = self.write("a.ein", steps(AFTER, 5))
        self.check([program, "--plot", "run.png"], 2, "", "ends in .svg")
        self.check([program, "--plot", "no/such/run.svg"], 3, "", "cannot write `no/such/run.svg`")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
