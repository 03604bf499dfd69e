"""Runs that are stopped and go on: --save-state and --resume, to the same bits. Usage: test_state.py EIN"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

SLOW = "sum[k in 0..300](sin(h[t - 1] + k as f32))"
# Each takes some seconds; N is the number of steps.
PROGRAMS = {
    "few steps kept": "let h[0] = 1.0;\nlet h[t in 1..N] = " + SLOW + ";\nprint(h[N - 1]);\n"
                      'save("out.npy", h[N - 1]);\n',
    "all steps kept": "let h[0] = 1.0;\nlet h[t in 1..N] = " + SLOW + ";\nlet m = mean[t](h[t]);\n"
                      'print(m, h[N / 2]);\nsave("out.npy", h);\n',
    "a record": """let x[i in 0..300] = i as f32 / 300.0;
let s[0] = { w: 0.0, b: 0.0, n: 0 };
let s[t in 1..N] = {
    let p = { w: s[t - 1].w, b: s[t - 1].b };
    let loss = mean[i]((p.w * sin(x[i]) + p.b - x[i]) ** 2.0);
    let g = @loss / @p;
    { w: p.w - 0.01 * g.w, b: p.b - 0.01 * g.b, n: s[t - 1].n + 1 }
};
print(s[N - 1].n, s[N - 1].w);
save("out.npz", s);
""",
    "until": """let x[0]: f64 = 3.0;
let x[t in 1..N] = x[t - 1] * 0.9999999 + 0.0 * sum[k in 0..300](sin(x[t - 1] + k as f64)) until x[t] < 2.0;
let trace[t in 0..N] = x[t] * 2.0;
print(ran(x), last(x));
save("out.npy", trace);
""",
    "random": "let h[0] = 0.0;\nlet h[t in 1..N] = 0.9 * h[t - 1] + "
              "0.1 * mean[k in 0..300](uniform(7, t, k));\nprint(h[N - 1]);\nsave(\"out.npy\", h);\n",
    "downward": "let h[t in 0..N] = if t == N - 1 { 1.0 } else { sum[k in 0..300](sin(h[t + 1] + k as f32)) };\n"
                'print(h[0]);\nsave("out.npy", h);\n',
}
STEPS = 150000


def sized(text, n=STEPS):
    return text.replace("N / 2", str(n // 2)).replace("N - 1", str(n - 1)).replace("N", str(n))


class State(Cli):
    def stopped(self, program, folder, *args, every=5000, by=signal.SIGINT):
        """Runs it and stops it as soon as it has kept a state by itself; what it said."""
        before = self.kept(folder)
        running = subprocess.Popen([test_cli.EIN, program, "--save-state", folder, "--every", str(every), *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder.name)
        while running.poll() is None and self.kept(folder) == before:
            time.sleep(0.001)
        running.send_signal(by)
        out, err = running.communicate(timeout=60)
        return running.returncode, out, err

    def kept(self, folder):
        """Which files a folder of states has, and when they were written."""
        if not os.path.isdir(folder):
            return []
        return sorted((f.name, f.stat().st_mtime_ns) for f in os.scandir(folder) if not f.name.startswith("."))

    def saved(self):
        return [pathlib.Path(self.path(n)).read_bytes() for n in ("out.npy", "out.npz") if os.path.exists(self.path(n))]

    def test_the_same_bits(self):
        for name, text in PROGRAMS.items():
            with self.subTest(name):
                program, folder = self.write("a.ein", sized(text)), self.path("kept_" + name.replace(" ", "_"))
                whole = self.check([program, "--progress", "never"], 0).stdout
                bits = self.saved()
                self.assertTrue(bits)
                for n in ("out.npy", "out.npz"):
                    pathlib.Path(self.path(n)).unlink(missing_ok=True)
                options = []
                for _ in range(2):
                    status, out, err = self.stopped(program, folder, *options)
                    self.assertEqual((status, out), (130, ""), err)
                    self.assertIn(f"its state is in `{folder}`; continue with --resume {folder}", err)
                    options = ["--resume", folder]
                self.assertEqual(self.check([program, "--resume", folder], 0).stdout, whole)
                self.assertEqual(self.saved(), bits)
                for n in ("out.npy", "out.npz"):
                    pathlib.Path(self.path(n)).unlink(missing_ok=True)

    def test_several_recurrences(self):
        # Stopped in the second one: the first does not run again, and what lies between is kept.
        text = ("let a[0] = 1.0;\nlet a[t in 1..1000] = a[t - 1] * 0.5 + 1.0;\nlet between = sum[t](a[t]) + a[999];\n"
                + PROGRAMS["few steps kept"].replace("h[0] = 1.0", "h[0] = between / 1000.0")
                .replace("print(h[N - 1]);", "print(h[N - 1], between, a[7]);"))
        program, folder = self.write("a.ein", sized(text)), self.path("kept")
        whole = self.check([program], 0).stdout
        bits = self.saved()
        status, _, err = self.stopped(program, folder)
        self.assertEqual(status, 130, err)
        self.assertIn("`h` stopped at t = ", err)
        self.assertEqual(self.check([program, "--resume", folder], 0).stdout, whole)
        self.assertEqual(self.saved(), bits)

    def test_every_so_many_steps(self):
        program, folder = self.write("a.ein", sized(PROGRAMS["all steps kept"], 1000)), self.path("kept")
        whole = self.check([program, "--save-state", folder, "--every", "300"], 0).stdout
        bits = self.saved()
        # It was kept after 900 steps; going on from there gives the rest.
        self.assertTrue(os.listdir(folder))
        again = self.check([program, "--resume", folder, "--watch", "h", "--log", self.path("a.csv")], 0)
        self.assertEqual(again.stdout, whole)
        self.assertEqual(self.saved(), bits)
        lines = pathlib.Path(self.path("a.csv")).read_text().splitlines()
        self.assertEqual([line.split(",")[1] for line in lines[1:]], [str(t) for t in range(900, 1000)])

    def test_by_time_and_by_sigterm(self):
        program, folder = self.write("a.ein", sized(PROGRAMS["few steps kept"], 40000000)), self.path("kept")
        status, _, err = self.stopped(program, folder, every="1s", by=signal.SIGKILL)
        self.assertEqual((status, err), (-9, ""))
        self.assertEqual(os.listdir(folder), ["state.ein-state"])  # whole, and nothing beside it
        status, _, err = self.stopped(program, folder, "--resume", folder, by=signal.SIGTERM)
        self.assertEqual(status, 130, err)
        self.assertIn("continue with --resume", err)

    def test_a_log_goes_on(self):
        program = self.write("a.ein", sized(PROGRAMS["few steps kept"]))
        folder, log = self.path("kept"), self.path("a.csv")
        self.stopped(program, folder, "--watch", "h", "--log", log)
        before = len(pathlib.Path(log).read_text().splitlines())
        self.check([program, "--resume", folder, "--watch", "h", "--log", log], 0)
        lines = pathlib.Path(log).read_text().splitlines()
        self.assertLess(before, len(lines))
        self.assertEqual([int(line.split(",")[1]) for line in lines[1:]], list(range(STEPS)))

    def test_another_program(self):
        text = PROGRAMS["all steps kept"] + "let c: f32;\nlet scaled = c * h[0];\nprint(scaled);\n"
        folder = self.path("kept")
        program = self.write("a.ein", sized(text, 100))
        self.check([program, "--save-state", folder, "--every", "30", "--set", "c=2.0"], 0)
        refused = "cannot continue from the saved state: "
        for changed, why in (
                (text.replace("300", "301"), "`h` is not defined as it was"),
                (text.replace("h[0] = 1.0", "h[0] = 2.0"), "`h` is not defined as it was"),
                (text.replace("1..N", "1..101"), "`h` is not defined as it was"),
                (text.replace("h[", "g[").replace(", h)", ", g)"), "the program has no `h` any more")):
            with self.subTest(why, changed=changed):
                program = self.write("b.ein", sized(changed, 100))
                self.check([program, "--resume", folder, "--set", "c=2.0"], 2, "", refused + why)
        # What is computed from the steps may change, and inputs that they do not read.
        program = self.write("c.ein", sized(text.replace("print(m, ", "print(2.0 * m, "), 100))
        self.check([program, "--resume", folder, "--set", "c=2.0"], 0)
        program = self.write("a.ein", sized(text, 100))
        self.check([program, "--resume", folder, "--set", "c=2.0", "--precision", "bf16-mixed"], 2, "",
                   "it was saved with --precision")

    def test_another_input(self):
        text = "let k: f32;\nlet h[0] = k;\nlet h[t in 1..100] = h[t - 1] * 0.5 + k;\nprint(h[99]);\n"
        program, folder = self.write("a.ein", text), self.path("kept")
        self.check([program, "--save-state", folder, "--every", "30", "--set", "k=2.0"], 0)
        self.check([program, "--resume", folder, "--set", "k=3.0"], 2, "", "the input `k` has another value")
        self.check([program, "--resume", folder, "--set", "k=2.0"], 0, "4.0\n")

    def test_damaged_states(self):
        program, folder = self.write("a.ein", sized(PROGRAMS["few steps kept"], 100)), self.path("kept")
        self.check([program, "--save-state", folder, "--every", "30"], 0)
        file = pathlib.Path(folder) / "state.ein-state"
        good = file.read_bytes()
        for at in (0, 9, 10, 12, 40, len(good) // 2, len(good) - 40, len(good) - 1):
            file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            done = self.check([program, "--resume", folder], 2, "", "cannot continue")
            self.assertRegex(done.stderr, "damaged|not a state|another version")
        for size in (0, 5, 11, 60, len(good) - 1):
            file.write_bytes(good[:size])
            self.check([program, "--resume", folder], 2, "", "cannot continue")
        file.write_bytes(good)
        self.check([program, "--resume", folder], 0)

    def test_mistakes(self):
        program = self.write("a.ein", sized(PROGRAMS["few steps kept"], 100))
        self.check([program, "--resume", self.path("nowhere")], 2, "", "there is no state of a run")
        self.check([program, "--every", "10"], 2, "", "--save-state DIR")
        for wrong in ("10x", "m", "0", "-1", "1.5s"):
            self.check([program, "--save-state", self.path("k"), f"--every={wrong}"], 2, "", "30s, 10m or 1h")
        self.check(["-c", "print(1.0);", "--save-state", self.path("k")], 2, "",
                   "this run has no recurrence whose state could be saved")
        self.write("file", "")
        self.check([program, "--save-state", self.path("file")], 2, "", "cannot create this folder")
        self.check([program, "--save-state", self.path("k"), "--backend", "ref"], 2, "",
                   "the reference evaluator cannot save the state of a run")

    def test_rows_and_tables(self):
        # Recurrences that run row by row, or by diagonals, stop between those.
        costly = "sin(" * 40 + "s[i, k - 1] + k as f32" + ")" * 40
        texts = ["let s[i in 0..10000, 0] = i as f32;\nlet s[i in 0..10000, k in 1..300] = " + costly + ";\n"
                 'print(sum[i, k](s[i, k]));\nsave("out.npy", s);\n',
                 "let s[i in 0..2000, j in 0..2000] = if i == 0 || j == 0 { (i + j) as f32 } else "
                 "{ " + "sin(" * 40 + "s[i - 1, j] + s[i, j - 1]" + ")" * 40 + " };\n"
                 'print(s[1999, 1999]);\nsave("out.npy", s);\n']
        for text in texts:
            program, folder = self.write("a.ein", text), self.path("kept")
            whole = self.check([program, "--threads", "1"], 0).stdout
            bits = self.saved()
            status, _, err = self.stopped(program, folder, "--threads", "1", every=1)
            self.assertEqual(status, 130, err)
            self.assertEqual(self.check([program, "--resume", folder], 0).stdout, whole)
            self.assertEqual(self.saved(), bits)


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
