"""The prompt: scripts, a terminal with somebody who types, and random sessions against `ein run`. Usage: test_repl.py EIN"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from terminal import Terminal  # noqa: E402
from test_cli import Cli  # noqa: E402

# A run of hours that checks between its steps whether it should go on.
ENDLESS = ("let v[t in 0..2000000000, i in 0..100] = if t == 0 { 1.0 } else { sin(v[t - 1, i]) + sum[k](v[t - 1, k]) * 0.001 }; "
           "print(v[1999999999, 0])")


class Repl(Cli):
    def script(self, *lines, args=(), status=0):
        done = subprocess.run([test_cli.EIN, "repl", *args], input="\n".join(lines), capture_output=True, text=True,
                              cwd=self.folder.name, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def says(self, lines, *expected):
        self.assertEqual(self.script(*lines).stdout.splitlines(), list(expected))


class Scripts(Repl):
    def test_what_an_entry_shows(self):
        numpy.save(self.path("w.npy"), numpy.zeros((10, 784), numpy.float32))
        self.says(['let W: [f32; out, in] = load("w.npy")', "let s = sum[out, in](W ** 2.0)", ":grad s W"],
                  "W: f32 [out: 10, in: 784]", "s: f32 = 0.0", "let d_s_d_W[out in 0..10, in in 0..784] = 2.0 * W[out, in];")

    def test_kinds_of_entries(self):
        self.says(["let x = [1.0, 2.0]", "fn f(a) {", "  a * 2.0", "}", "f(x[1]) + 1.0", "x", "let (p, q) = (1, 2.5)", '"{p} and {q}"',
                   "const n = 3", "use std::math::{erf}", "erf(0.0)", "print(n)", "// nothing", ""],
                  "x: f32 [2] = [1.0, 2.0]", "fn f(a)", "5.0", "[2] [1.0, 2.0]", "p: i32 = 1", "q: f32 = 2.5", "1 and 2.5", "n: i64", "0.0", "3")

    def test_replaced(self):
        self.says(["let x = [1.0, 2.0]", "let y[i] = x[i] * 2.0", "let z = sum[i](y[i])", "let w = 3.0", "let x = [5.0]"],
                  "x: f32 [2] = [1.0, 2.0]", "y: f32 [i: 2] = [2.0, 4.0]", "z: f32 = 6.0", "w: f32 = 3.0", "x: f32 [1] = [5.0]",
                  "y: f32 [i: 1] = [10.0]  (computed again)", "z: f32 = 10.0  (computed again)")

    def test_same_again(self):
        """A definition that means the same changes nothing, whatever its spaces are."""
        self.says(["let x = 1.0", "let y = x + 1.0", "let x  =  1.0"], "x: f32 = 1.0", "y: f32 = 2.0", "x: f32 = 1.0")

    def test_a_function_is_replaced(self):
        self.says(["fn f(a) { a + 1.0 }", "let y = f(1.0)", "fn f(a) { a + 2.0 }"], "fn f(a)", "y: f32 = 2.0", "fn f(a)",
                  "y: f32 = 3.0  (computed again)")

    def test_clauses(self):
        """Clauses may come one after the other; a definition of all cells replaces them."""
        self.says(["let h[0] = 1.0; let h[t in 1..4] = h[t - 1] * 2.0", "let g[0] = 1.0", "1", "let g[t in 1..3] = g[t - 1] * 3.0",
                   "2", "let g[t in 3..5] = 0.0", "3", "let g[i in 0..2] = 7.0", "let h[0] = 5.0"],
                  "h: f32 [t: 4] = [1.0, 2.0, 4.0, 8.0]", "g: f32 [1] = [1.0]", "1", "g: f32 [t: 3] = [1.0, 3.0, 9.0]", "2",
                  "g: f32 [t: 5] = [1.0, 3.0, 9.0, 0.0, 0.0]", "3", "g: f32 [i: 2] = [7.0, 7.0]", "h: f32 [1] = [5.0]")

    def test_a_derivative_follows(self):
        self.says(["let x = [1.0, 2.0]", "let s = sum[i](x[i] ** 2.0)", "let g = @s / @x", "let s = sum[i](x[i] ** 3.0)"],
                  "x: f32 [2] = [1.0, 2.0]", "s: f32 = 5.0", "g: f32 [2] = [2.0, 4.0]", "s: f32 = 9.0",
                  "g: f32 [2] = [3.0, 12.0]  (computed again)")

    def test_only_what_changed_is_computed(self):
        """The recurrence takes a second, the entries after it do not."""
        slow = "let h[0] = 1.0; let h[t in 1..30000000] = cos(h[t - 1]) + 0.5"
        begin = time.monotonic()
        self.script(slow)
        once = time.monotonic() - begin
        begin = time.monotonic()
        self.script(slow, *[f"let a{k} = h[{k}] + {k}.0" for k in range(10)])
        self.assertLess(time.monotonic() - begin, 3 * once + 1)

    def test_a_wrong_entry_changes_nothing(self):
        for wrong in ["let x = y", "let x = [1.0] + true", "let x = (", "let x = load(\"none.npy\")"]:
            done = self.script("let x = 1.0", wrong, status=1)
            self.assertIn("<standard input>:2:", done.stderr)
        done = self.script("let x = [1.0]", "let i = [7]", "let y = x[i[0]]", "x", status=3)
        self.assertIn("E0803", done.stderr)
        self.assertIn("3 | let y = x[i[0]]", done.stderr)
        self.assertNotIn("[1] [1.0]", done.stdout)  # the script has ended

    def test_what_does_not_fit_is_forgotten(self):
        done = self.script("let x = [1.0, 2.0]", "let y[i] = x[i] + 1.0", "let z = 1.0", "let x = 3.0", "z")
        self.assertIn("`y` does not fit any more and is forgotten", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-2:], ["x: f32 = 3.0", "1.0"])
        self.script("let x = [1.0, 2.0]", "let y[i] = x[i] + 1.0", "let x = 3.0", "y", status=1)

    def test_undo(self):
        self.says(["let x = 1.0", "let y = x + 1.0", "let x = 2.0", ":undo", "y", ":undo", ":undo", "let y = 0.5"],
                  "x: f32 = 1.0", "y: f32 = 2.0", "x: f32 = 2.0", "y: f32 = 3.0  (computed again)", "as before: x", "2.0", "gone: y", "gone: x",
                  "y: f32 = 0.5")
        self.assertIn("there is nothing to undo", self.script(":undo", status=2).stderr)

    def test_inputs_without_a_value(self):
        self.says(["let x: [f32; n]", "let s = sum[i](x[i])", ":grad s x", "let x = [1.0, 2.0]", "s"],
                  "x: f32 [n]  (an input without a value)", "s: f32  (not computed: `x` has no value)", "let d_s_d_x[n in 0..n] = 1.0;",
                  "x: f32 [2] = [1.0, 2.0]", "s: f32 = 3.0  (computed again)", "3.0")
        self.assertIn("an input gets its value when it is defined", self.script("let x: f32", "x", status=3).stderr)

    def test_pasted_programs(self):
        """An entry may go on in the next line, as long as that cannot be one of its own."""
        self.says(["let x = [1.0, 2.0]", "let y[i] = x[i]", "    + 1.0", "let z = sum[i](", "", "  y[i])", "let w = 1.0", "+ 2.0"],
                  "x: f32 [2] = [1.0, 2.0]", "y: f32 [i: 2] = [2.0, 3.0]", "z: f32 = 5.0", "w: f32 = 3.0")

    def test_attributes_and_documentation(self):
        self.says(["#[checkpoint]", "let h[0] = 1.0;", "let h[t in 1..3] = h[t - 1] * 2.0;", "", "/// Twice.", "fn twice(x) { 2.0 * x }", ":doc twice"],
                  "h: f32 [t: 3] = [1.0, 2.0, 4.0]", "fn twice(x)", "fn twice(x)", "", "Twice.", "", "*<standard input>*")

    def test_clauses_in_pasted_programs(self):
        """The clauses of one value that follow each other are one entry, so that no cell is missing on the way."""
        self.says(["let y[1, 0] = 3;", "let y[0, 0] = 1;", "let y[0, 1] = 2;", "let y[1, 1] = 4;", "let s = sum[i, j](y[i, j])"],
                  "y: i32 [2, 2]", "s: i32 = 10")
        done = self.script("let y[0] = 1;", "let y[2] = 2;", "let z = 1", status=1)
        self.assertIn("1 | let y[0] = 1;", done.stderr)

    def test_blocks(self):
        self.says([":{", "let a[0] = 1.0;", "", "let b[0] = 0.0;", "let a[t in 1..3] = a[t - 1] + b[t - 1];",
                   "let b[t in 1..3] = a[t - 1];", ":}", "a[2]"],
                  "a: f32 [t: 3] = [1.0, 1.0, 2.0]", "b: f32 [t: 3] = [0.0, 1.0, 1.0]", "2.0")
        self.assertIn("3 | let c = d", self.script(":{", "let a = 1.0;", "let c = d", ":}", status=1).stderr)
        with Terminal([test_cli.EIN, "repl"], cwd=self.folder.name, XDG_STATE_HOME=self.folder.name) as t:
            t.expect("> ")
            for line in (":{", "let u = w + 1.0", ";let w = 2.0"):
                t.type(line + "\n")
                t.expect("\n. ")
            self.assertIn("u: f32 = 3.0", t.enter(":}"))

    def test_commands(self):
        lines = ["let x = [1.0, 2.0]", "let y[i] = x[i] * x[i]", "let s = sum[i](y[i])"]
        answers = {":type y[0] + 1.0": "f32\n", ":type x": "f32 [2]\n", ":jac y x": "where i == i_1", ":explain s x": "is read by",
                   ":audit": "broadcasts", ":facts y": "y: f32", ":doc sum": "The sum over", ":doc s": "let s: f32", ":backend": "native\n",
                   ":backend ref": "ref\n", ":time s": " ms\n", ":help": ":grad LOSS W", ":he": ":grad LOSS W", ":reset": "empty"}
        for command, expected in answers.items():
            with self.subTest(command):
                self.assertIn(expected, self.script(*lines, command).stdout.partition("s: f32 = 5.0\n")[2])
        for command, expected in {":grap s x": "did you mean `:grad`?", ":grad s": ":grad loss W", ":grad s q": "defines no value `q`",
                                  ":load none.ein": "cannot read `none.ein`", ":undo 3": "takes no argument", ":backend gpu": "no back end `gpu`",
                                  ":type": "needs an expression", ":doc nothing": "nothing is known about `nothing`", ":re x": "takes no argument"}.items():
            with self.subTest(command):
                done = subprocess.run([test_cli.EIN, "repl"], input="\n".join([*lines, command]), capture_output=True, text=True,
                                      cwd=self.folder.name)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(expected, done.stderr)

    def test_load_and_save(self):
        pathlib.Path(self.path("data")).mkdir()
        numpy.save(self.path("data/x.npy"), numpy.arange(3, dtype=numpy.float32))
        pathlib.Path(self.path("data/m.ein")).write_text('// A module.\nlet x: [f32; i] = load("x.npy");\nprint("loaded");\nlet s = sum[i](x);\n')
        done = self.script(":load data/m.ein", "let t = s + 1.0", ":save all.ein")
        self.assertEqual(done.stdout.splitlines(), ["loaded", "x: f32 [i: 3] = [0.0, 1.0, 2.0]", "s: f32 = 3.0", "t: f32 = 4.0", "3 definitions saved in all.ein"])
        self.assertEqual(pathlib.Path(self.path("all.ein")).read_text(),
                         '// A module.\nlet x: [f32; i] = load("x.npy");\nlet s = sum[i](x);\nlet t = s + 1.0;\n')
        self.assertIn("s: f32 = 3.0", self.script("t", args=["data/m.ein"], status=1).stdout)

    def test_files_are_read_once(self):
        """A definition keeps its meaning until it is entered again, whatever becomes of its file."""
        path = self.path("x.npy")
        numpy.save(path, numpy.ones(3, numpy.float32))
        with Terminal([test_cli.EIN, "repl"], cwd=self.folder.name, XDG_STATE_HOME=self.folder.name) as t:
            t.expect("> ")
            t.enter('let x: [f32; i] = load("x.npy")')
            self.assertIn("s: f32 = 3.0", t.enter("let s = sum[i](x)"))
            numpy.save(path, numpy.ones(5, numpy.float32))
            self.assertIn("m: f32 = 1.0", t.enter("let m = max[i](x)"))
            self.assertIn("s: f32 = 5.0  (computed again)", t.enter('let x: [f32; i] = load("x.npy")'))

    def test_tests(self):
        done = self.script('test "a" { assert(1 == 2) }', "1 + 1")
        self.assertEqual((done.stdout, done.stderr), ("2\n", 'note: the test "a" is not run here; `ein test` runs those of a file\n'))

    def test_statuses(self):
        self.script(":quit", "let x = y")
        self.script("let x = y", "let z = 1.0", status=1)
        self.script(":nothing", status=2)
        self.script("assert(1 > 2)", status=3)
        self.script("let x = (1.0", status=1)


class Typed(Repl):
    def terminal(self, **options):
        return Terminal([test_cli.EIN, "repl"], cwd=self.folder.name, XDG_STATE_HOME=self.path("state"), **options)

    def test_typing(self):
        with self.terminal() as t:
            t.expect("> ")
            self.assertIn("x: f32 [2] = [1.0, 2.0]", t.enter("let x = [1.0, 2.0]"))
            t.type("let s = sum[i](\n")
            t.expect("\n. ")
            self.assertIn("s: f32 = 3.0", t.enter("x[i])"))
            wrong = t.enter("let s = nothing")
            self.assertIn("<3>:1:9", wrong)
            self.assertIn("1 | let s = nothing", wrong)
            self.assertIn("3.0", t.enter("s"))
            t.type("let q = \n")
            t.expect("\n. ")
            self.assertIn("expected an expression", t.enter(""))  # an empty line gives up
            t.type("\x04")
            self.assertEqual(t.status(), 0)

    def test_completion(self):
        with self.terminal() as t:
            t.expect("> ")
            t.enter("let temperature = 2.5")
            t.type("temp\t")
            self.assertIn("2.5", t.enter(""))
            t.type(":gra\t")
            t.type("temp\t temp\t")
            self.assertIn("d_temperature_d_temperature = 1.0", t.enter(""))
            t.type("te\t\t")  # several: they are listed
            self.assertIn("temperature", t.expect("> te"))

    def test_history(self):
        with self.terminal() as t:
            t.expect("> ")
            t.enter("let x = 4.25")
            t.type("\x04")
            self.assertEqual(t.status(), 0)
        self.assertEqual(pathlib.Path(self.path("state/einlang/history")).read_text(), "let x = 4.25\n")
        with self.terminal() as t:
            t.expect("> ")
            t.type("\x1b[A")
            self.assertIn("x: f32 = 4.25", t.enter(""))

    def test_wide_characters(self):
        with self.terminal() as t:
            t.expect("> ")
            self.assertIn("\n日本語 é 𝄞\n", t.enter('print("日本語 é 𝄞")'))
            t.type('print("日本x')
            t.type("\x7f\x7f語")  # the wide one before the cursor goes, too
            self.assertIn("\n日語!\n", t.enter('!")'))

    def test_resize(self):
        with self.terminal(columns=40) as t:
            t.expect("> ")
            t.type("let long = 1.0 + 2.0 + 3.0")
            t.resize(100)
            t.type(" + 4.0 + 5.0 + 6.0 + 7.0 + 8.0")
            t.resize(50)
            self.assertIn("long: f32 = 45.0", t.enter(" + 9.0"))

    def test_pasted(self):
        with self.terminal() as t:
            t.expect("> ")
            t.type("let x = [1.0, 2.0]\nlet y[i] = x[i]\n    * 2.0\nfn f(a) {\n  a + 1.0\n}\nlet z = f(\n  y[1])\n")
            self.assertIn("y: f32 [i: 2] = [2.0, 4.0]", t.expect("z: f32 = 5.0"))

    def test_ctrl_c(self):
        with self.terminal() as t:
            t.expect("> ")
            t.enter("let x = 1.5")
            t.type("let half = ")
            t.expect("half = ")
            t.type("\x03")
            t.expect("\n> ")
            self.assertIn("\n1.5", t.enter("x"))
            t.type(ENDLESS + "\n")
            t.expect("0.001 }")
            time.sleep(1.5)
            t.type("\x03")
            t.expect("stopped; nothing has changed")
            t.expect("> ")
            self.assertIn("unknown name `v`", t.enter("v[0, 0]"))
            self.assertIn("\n1.5", t.enter("x"))

    def test_without_editing(self):
        with self.terminal(TERM="dumb") as t:
            t.expect("> ")
            self.assertIn("x: f32 = 1.0", t.enter("let x = 1.0"))
            t.type("let y = (\n")
            t.expect("\n. ")
            self.assertIn("y: f32 = 2.0", t.enter("x + 1.0)"))


class Random(Repl):
    """Definitions in random order, many of them replaced: what a session holds in the end is what `ein run` computes from
    the text that it saves."""

    NAMES = [f"v{k}" for k in range(8)]

    def definition(self, rng, name, known):
        """Small integers, so that values are exact whatever the order of sums is."""
        others = [n for n in known if n != name]
        number = lambda: f"{rng.randint(-3, 3)}.0"  # noqa: E731
        choice = rng.random()
        if not others or choice < 0.2:
            return f"let {name}[i in 0..4] = {number()} + (i as f64)"
        a, b = rng.choice(others), rng.choice(others)
        return rng.choice([f"let {name}[i] = {a}[i] + {b}[i] + {number()}", f"let {name}[i in 0..4] = {a}[3 - i] * {number()}",
                           f"let {name}[i in 0..4] = max[j]({a}[j]) - {b}[i]",
                           f"let {name}[i in 0..4] = if i == 0 {{ {a}[0] }} else {{ {name}[i - 1] - {b}[i] }}",
                           f"let {name}[i] = f({a}[i], {b}[i])",
                           f"let {name}_sum = sum[i]({a}[i] * {a}[i])\nlet {name}[i] = clamp((@{name}_sum / @{a})[i], -9.0, 9.0)"])

    def test_random_sessions(self):
        for seed in range(int(os.environ.get("EIN_SESSIONS", "12"))):
            with self.subTest(seed=seed):
                self.one(random.Random(seed))

    def one(self, rng):
        known, lines = [], ["fn f(a, b) { a - b }"]
        for _ in range(30):
            if rng.random() < 0.1:
                lines.append(f"fn f(a, b) {{ a {rng.choice('+-')} b + {rng.randint(0, 3)}.0 }}")
                continue
            if rng.random() < 0.1 and known:
                lines.append(":undo")
                continue
            name = rng.choice(self.NAMES)
            lines += self.definition(rng, name, known).split("\n")
            known = sorted({*known, name})
        with tempfile.TemporaryDirectory(dir=self.folder.name) as folder:
            self.compare(lines, folder)

    def compare(self, lines, folder):
        """A cycle or a name that `:undo` took is a mistake, which changes nothing: each such line is left out."""
        path = os.path.join(folder, "final.ein")
        accepted = []
        with Terminal([test_cli.EIN, "repl"], cwd=folder, XDG_STATE_HOME=folder, NO_COLOR="1", columns=500) as t:
            t.expect("> ")
            for line in lines:
                accepted.append((line, t.enter(line)))
            saved = t.enter(":save final.ein")
            self.assertIn("saved in", saved)
            text = pathlib.Path(path).read_text()
            names = [n for n in self.NAMES if f"let {n}[" in text]
            here = {n: t.enter(f'print("={{{n}}}=")').split("=")[-2] for n in names}
        self.assertTrue(names)
        shown = subprocess.run([test_cli.EIN, "run", path, "--format", "json", *[w for n in names for w in ("--show", n)]],
                               capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        values = json.loads(shown.stdout)
        for n in names:
            listed = [float(x) for x in here[n].partition("] [")[2].strip("[]\n ").split(",")]
            self.assertEqual(listed, values[n]["data"], f"{n} after {accepted}")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
