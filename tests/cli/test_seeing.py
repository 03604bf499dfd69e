"""What a program shows while it is written: `dbg`, `eprint`, `--trap nan`. Usage: test_seeing.py EIN"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402

ROUTES = (("--backend", "ref"), ("-O0",), ("-O3", "--threads", "3"))


class Dbg(test_cli.Cli):
    def reports(self, code, *args, status=0):
        """What each route reports, which is the same; without the name of the file."""
        path, found = self.write("a.ein", code), []
        for route in ROUTES:
            done = self.check(["run", path, *route, *args], status, err="")
            found.append(self.rounded(done.stderr.replace(path, "a")))
        self.assertEqual(found[1:], found[:-1])
        return found[0].splitlines()

    def rounded(self, text):
        """Back ends may take sums in different orders."""
        return re.sub(r"(?<=: )-?\d+\.\d+$", lambda m: f"{float(m[0]):.5g}" if len(m[0]) > 7 else m[0], text, flags=re.M)

    def test_arrays(self):
        head = "let x[i, j] = [[1.0, -2.0, 3.5], [0.5, 0.25, 4.0]];\n"
        self.assertEqual(self.reports(head + "print(dbg(x));"), ["a:2: dbg(x): 6 cells [i, j], -2..4, mean 1.20833"])
        self.assertEqual(self.reports(head + "let y[i, j] = dbg(2.0 * x[i, j]);\nprint(y);"),
                         ["a:2: dbg(2.0 * x[i, j]): 6 cells [i, j], -4..8, mean 2.41667"])
        self.assertEqual(self.reports(head + "print(sum[j](x[0, j] * dbg(x[1, j])));"),
                         ["a:2: dbg(x[1, j]): 3 cells [j], 0.25..4, mean 1.58333"])
        self.assertEqual(self.reports(head + "dbg(x\n    * 2.0);"), ["a:2: dbg(x * 2.0): 6 cells [i, j], -4..8, mean 2.41667"])

    def test_scalars_and_types(self):
        self.assertEqual(self.reports("let a = 2.5;\nprint(dbg(a) + 1.0);"), ["a:2: dbg(a): 2.5"])
        for type, shown in (("f16", "-1..2, mean 0.5"), ("bf16", "-1..2, mean 0.5"), ("f64", "-1..2, mean 0.5"),
                            ("i8", "-1..2, mean 0.5"), ("i64", "-1..2, mean 0.5")):
            self.assertEqual(self.reports(f"let x: [{type}; n] = [-1, 2] as {type};\nprint(dbg(x));".replace(
                "[-1, 2] as " + type, "[-1.0, 2.0]" if "f" in type else "[-1, 2]")),
                ["a:2: dbg(x): 2 cells [n], " + shown])
        self.assertEqual(self.reports("let x[i] = [1, 2, 3];\nlet y[i] = dbg(x[i] > 1);\nprint(y);"),
                         ["a:2: dbg(x[i] > 1): 3 cells [i], 2 true"])
        self.assertEqual(self.reports("let n: [i32; k] = [3, 4];\nprint(dbg(n[1] == 4));"), ["a:2: dbg(n[1] == 4): true"])

    def test_records(self):
        self.assertEqual(self.reports("let w[i] = [1.0, 3.0];\nlet p = { w, b: 0.5 };\nlet q = dbg(p);\nprint(q.w, q.b);"),
                         ["a:3: dbg(p.w): 2 cells [i], 1..3, mean 2", "a:3: dbg(p.b): 0.5"])

    def test_cells_that_are_not_finite(self):
        code = "let x: [f32; i, j];\nlet y[i, j] = dbg(log(x[i, j]));\nprint(y[0, 0]);"
        for cells, line in (([1, 2, 3, 4, 0, -1], "6 cells [i, j], 0..1.38629, mean 0.794513, 2 not finite: "
                             "the first, at i = 1, j = 1, is -inf"),
                            ([1, -1, 3, 0, 0, -1], "6 cells [i, j], 0..1.09861, mean 0.549306, 4 not finite: "
                             "the first, at i = 0, j = 1, is nan"),
                            ([-1] * 6, "6 cells [i, j], none finite, 6 not finite: the first, at i = 0, j = 0, is nan")):
            x = self.npy("x.npy", "f32", [2, 3], cells)
            self.assertEqual(self.reports(code, "--in", f"x={x}"), ["a:2: dbg(log(x[i, j])): " + line])
        x = self.npy("x.npy", "f32", [0, 3], [])
        self.assertEqual(self.reports(code.replace("print(y[0, 0])", "print(y)"), "--in", f"x={x}"),
                         ["a:2: dbg(log(x[i, j])): 0 cells [i, j], none finite"])

    def test_steps(self):
        code = "let w[0] = 8.0;\nlet w[t in 1..6] = dbg(0.5 * w[t - 1]);\nprint(w[5]);"
        self.assertEqual(self.reports(code),
                         [f"a:2: dbg(0.5 * w[t - 1]) at t = {t}: {8 / 2 ** t}" for t in range(1, 6)])
        self.assertEqual(self.reports(code.replace("])", "], every = 2)", 1).replace("t - 1], every = 2);", "t - 1], every = 2);")),
                         [f"a:2: dbg(0.5 * w[t - 1]) at t = {t}: {8 / 2 ** t}" for t in (2, 4)])
        code = ("let x[0, i in 0..3] = i as f32;\nlet x[t in 1..3, i] = 0.5 * x[t - 1, i] + dbg(x[t - 1, i] * x[t - 1, i]);\n"
                "print(x[2, 1]);")
        self.assertEqual(self.reports(code), ["a:2: dbg(x[t - 1, i] * x[t - 1, i]) at t = 1: 3 cells [i], 0..4, mean 1.66667",
                                              "a:2: dbg(x[t - 1, i] * x[t - 1, i]) at t = 2: 3 cells [i], 0..25, mean 9.08333"])

    TRAINING = """use std::optim::sgd;
fn model(w, x) {
    let h[i] = dbg(w * x[i]);
    h
}
let x[i] = [1.0, 2.0, 3.0];
let w[0] = 0.5;
let w[s in 1..4] = {
    let v = w[s - 1];
    let loss = dbg(mean[i]((model(v, x)[i] - 3.0 * x[i]) ** 2.0));
    dbg(v > 1.0);
    v - 0.1 * dbg(@loss / @v)
};
print(w);
"""

    def test_in_a_training_step(self):
        lines = self.reports(self.TRAINING)
        self.assertEqual([line.split(":")[1] for line in lines], ["3"] * 3 + ["10"] * 3 + ["11"] * 3 + ["12"] * 3)
        self.assertEqual(lines[0], "a:3: dbg(w * x[i]) at s = 1: 3 cells [i], 0.5..1.5, mean 1")
        self.assertEqual(lines[3], "a:10: dbg(mean[i]((model(v, x)[i] - 3.0 * x[i]) ** 2.0)) at s = 1: 29.167")
        self.assertEqual(lines[6], "a:11: dbg(v > 1.0) at s = 1: false")
        self.assertTrue(lines[9].startswith("a:12: dbg(@loss / @v) at s = 1: -23.333"), lines[9])

    def test_the_values_are_those_without_it(self):
        plain = re.sub(r"dbg\((mean.*)\);", r"\1;", self.TRAINING.replace("    dbg(v > 1.0);\n", ""))
        plain = plain.replace("dbg(w * x[i])", "w * x[i]").replace("dbg(@loss / @v)", "(@loss / @v)")
        self.assertNotIn("dbg", plain)
        for route in ROUTES:
            want = self.check(["run", self.write("b.ein", plain), *route, "--out", f"w={self.path('w.npy')}"], 0).stdout
            done = self.check(["run", self.write("a.ein", self.TRAINING), *route, "--out", f"w={self.path('v.npy')}"], 0, want, "")
            self.assertIn("dbg", done.stderr)
            self.assertEqual(pathlib.Path(self.path("w.npy")).read_bytes(), pathlib.Path(self.path("v.npy")).read_bytes())

    def test_sums_are_taken_as_without_it(self):
        code = ("let x[i in 0..40] = 0.1 * (i as f32);\nlet w[0] = 1.0;\n"
                "let w[t in 1..30] = w[t - 1] - 0.01 * sum[i](x[i] * (w[t - 1] * x[i] - 2.0));\nprint(w, sum[i](x[i] * x[i]));")
        for marked in (code.replace("x[i] * (w", "dbg(x[i]) * (w"), code.replace("(w[t - 1] * x[i] - 2.0)", "dbg(w[t - 1] * x[i] - 2.0)"),
                       code.replace("0.01 * sum[i](x[i] * (w[t - 1] * x[i] - 2.0))", "dbg(0.01 * sum[i](x[i] * (w[t - 1] * x[i] - 2.0)))"),
                       code.replace("print(w, ", "print(dbg(w), "), code.replace("0.1 * (i as f32)", "dbg(0.1 * (i as f32))"),
                       code + "\ndbg(x);\ndbg(x * x);"):
            self.assertNotEqual(marked, code)
            for route in ROUTES:
                want = self.check(["run", "-c", code, *route], 0).stdout
                self.check(["run", "-c", marked, *route], 0, want, "dbg(")

    def test_conditions_around_it(self):
        code = ("let x[i in 0..6] = (i - 3) as f32;\nlet y[i] = if x[i] > 0.0 { dbg(log(x[i])) } else { 0.0 };\n"
                "let z[i in 0..6] = if i > 0 { dbg(x[i - 1]) } else { 0.0 };\nlet u = sum[i](dbg(sqrt(x[i])) where x[i] >= 0.0);\n"
                "print(y[5], z[0], u);")
        self.assertEqual(self.reports(code), ["a:2: dbg(log(x[i])): 2 cells [i], 0..0.693147, mean 0.346574",
                                              "a:3: dbg(x[i - 1]): 5 cells [i], -3..1, mean -1",
                                              "a:4: dbg(sqrt(x[i])): 3 cells [i], 0..1.41421, mean 0.804738"])
        self.assertEqual(self.reports("let a = 1.0;\nlet b = if a > 2.0 { dbg(a) } else { a };\nprint(b);"), [])

    def test_anywhere(self):
        self.assertEqual(self.reports("let g[i in 0..3, j in 0..3] = if i == 0 || j == 0 { 1.0 } else { dbg(g[i - 1, j] + g[i, j - 1]) };\nprint(g[2, 2]);")[-1],
                         "a:1: dbg(g[i - 1, j] + g[i, j - 1]) at i = 2, j = 2: 6.0")
        self.assertEqual(self.reports('let a = 3;\nprint(match dbg(a) { 1 => "one", _ => "many" }, if dbg(a > 2) { 1 } else { 0 });'),
                         ["a:2: dbg(a): 3", "a:2: dbg(a > 2): true"])
        self.assertEqual(self.reports("let x[i in 0..4] = i as f32;\nlet c[i] = sum[j in 0..i + 1](dbg(x[j] * x[i]));\nprint(c);"),
                         ["a:2: dbg(x[j] * x[i]): 10 cells [i, j], 0..9, mean 2.5"])
        self.assertEqual(self.reports("let x[i] = [1.0, 2.0, 3.0];\nlet y[i in 0..3] = x[dbg((i + 1) % 3)];\nprint(y);"),
                         ["a:2: dbg((i + 1) % 3): 3 cells [i], 0..2, mean 1"])
        self.assertEqual(self.reports("let x[0]: f64 = 1.0;\nlet x[t in 1..99] = 0.5 * (x[t - 1] + 2.0 / x[t - 1]) "
                                      "until dbg(abs(x[t] - x[t - 1]) < 1e-3);\nprint(ran(x));"),
                         [f"a:2: dbg(abs(x[t] - x[t - 1]) < 1e-3) at t = {t}: {'true' if t == 4 else 'false'}" for t in range(1, 5)])

    def test_in_scalar_functions(self):
        code = ("fn soft(x) {\n    log(1.0 + dbg(exp(x)))\n}\nlet x[i] = [0.0, 1.0];\nlet y = sum[i](soft(x[i]));\n"
                "let dx = @y / @x;\nprint(y, dx);")
        self.assertEqual(self.reports(code), ["a:2: dbg(exp(x)): 2 cells [i], 1..2.71828, mean 1.85914"])
        self.check(["-c", "fn f(n: i32) -> i32 {\n    if n < 2 { 1 } else { dbg(n) * f(n - 1) }\n}\nprint(f(4));"], 1, "",
                   "`dbg` is not allowed in a recursive function")

    def test_each_call_of_a_function_reports(self):
        code = "fn f(x: [f32; n]) {\n    let y[n] = dbg(2.0 * x[n]);\n    y\n}\nlet a = [1.0];\nlet b = [5.0];\nprint(f(a), f(b));"
        self.assertEqual(self.reports(code), ["a:2: dbg(2.0 * x[n]): 1 cells [n], 2..2, mean 2",
                                              "a:2: dbg(2.0 * x[n]): 1 cells [n], 10..10, mean 10"])

    def test_only_what_is_needed_is_reported(self):
        code = "let a = 2.0;\nlet y = dbg(a);\nlet z = a + 1.0;\nprint(z);"
        self.assertEqual(self.reports(code), [])
        self.assertEqual(self.reports(code, "--show", "y"), ["a:2: dbg(a): 2.0"])
        self.assertEqual(self.reports("let a = 2.0;\ndbg(a);"), ["a:2: dbg(a): 2.0"])
        test = self.write("t.ein", 'let a = 2.0;\nlet b = dbg(a);\ntest "one" {\n    assert(a == 2.0);\n}\n')
        self.assertNotIn("dbg", self.check(["test", test], 0, err="").stderr)

    def test_printed_source(self):
        printed = self.check(["grad", self.write("a.ein", self.TRAINING), "--all"], 0).stdout
        again = self.check(["run", self.write("b.ein", printed), "--backend", "ref"], 0, err="")
        first = self.check(["run", self.path("a.ein"), "--backend", "ref"], 0, err="")
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual(again.stderr, first.stderr)
        self.assertNotIn("dbg", self.check(["grad", self.path("a.ein")], 0).stdout)

    def test_a_built_program_reports_nothing(self):
        exe = self.path("a.out")
        self.check(["build", self.write("a.ein", self.TRAINING), "--emit", "exe", "-o", exe], 0)
        done = subprocess.run([exe], capture_output=True, text=True)
        want = self.check(["run", self.path("a.ein")], 0, err="")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, want.stdout, ""))

    def test_a_program_that_fails_reports_what_it_can(self):
        code = ("let x[i] = [1.0, 2.0];\nlet k: i32;\nlet y[i] = dbg(2.0 * x[i]);\nlet z = y[0] + dbg(x[k]);\n"
                'assert(y[1] < 3.0, "too large");\nprint(z);')
        path = self.write("a.ein", code)
        for route in ROUTES:
            done = self.check(["run", path, "--set", "k=5", *route], 3, "", "error[E0803]")
            self.assertTrue(done.stderr.startswith(f"{path}:3: dbg(2.0 * x[i]): 2 cells [i], 2..4, mean 3\nerror"), done.stderr)
            done = self.check(["run", path, "--set", "k=1", *route], 3, "", "error[E0804]")
            self.assertIn(":4: dbg(x[k]): 2.0\n", done.stderr)

    def test_what_it_does_not_take(self):
        for code, message in (("print(dbg());", "takes one value, not 0"), ("print(dbg(1.0, 2.0));", "takes one value, not 2"),
                              ("print(dbg(1.0, often = 2));", "no argument `often`"),
                              ("print(dbg(1.0, every = 0));", "at least 1"), ("let n = 1.5; print(dbg(n, every = n));", "at least 1"),
                              ('print(dbg("a"));', "reports numbers and arrays"), ("print(dbg(sqrt));", "reports numbers and arrays"),
                              ("print(1, begin = 2);", "no argument `begin`"), ("print(1, end = 2);", "must be a string")):
            self.check(["-c", code], 1, "", message)

    def test_eprint(self):
        for route in ROUTES:
            self.check(["run", "-c", 'let x = 1.5;\neprint("x is {x}");\nprint("a", end = "");\nprint("b");', *route], 0, "ab\n", "x is 1.5\n")


class Memory(test_cli.Cli):
    def test_steps_are_not_kept_for_dbg(self):
        code = ("let x[0, i in 0..100000] = 1.0;\nlet x[t in 1..2000, i] = 0.999 * x[t - 1, i];\n"
                "print(x[1999, 0]);")
        marked = code.replace("0.999 * x[t - 1, i]", "dbg(0.999 * x[t - 1, i], every = 1000)")
        path = self.write("a.ein", marked)
        done = subprocess.run(["bash", "-c", f"ulimit -v 1500000; {test_cli.EIN} run {path} --threads 1"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)  # all steps would take 800 MB
        self.assertIn("at t = 1000: 100000 cells [i], 0.36", done.stderr)


class Trap(test_cli.Cli):
    def stops(self, code, *args):
        """The message of each route, which is the same."""
        path, found = self.write("a.ein", code), []
        for route in ROUTES:
            done = self.check(["run", path, "--trap", "nan", *route, *args], 3, err="error[E0812]")
            found.append(re.match(r"error\[E0812\]: (.*)\n *--> .*:(\d+):", done.stderr).groups())
        self.assertEqual(found[1:], found[:-1])
        return found[0]

    def test_first_cell(self):
        code = "let x: [f32; i, j];\nlet y[i, j] = log(x[i, j]) * 2.0;\nlet s = sum[i, j](y[i, j]);\nprint(s);"
        x = self.npy("x.npy", "f32", [2, 3], [1, 2, 3, 4, 0, -1])
        self.assertEqual(self.stops(code, "--in", f"x={x}"),
                         ("`y` is minus infinite at i = 1, j = 1; `x[1, 1]` is 0", "2"))
        x = self.npy("x.npy", "f32", [2, 3], [1, 2, -3, 4, 0, -1])
        self.assertEqual(self.stops(code, "--in", f"x={x}"), ("`y` is NaN at i = 0, j = 2; `x[0, 2]` is -3", "2"))

    def test_operands_and_their_values(self):
        self.assertEqual(self.stops("let a = 0.0;\nlet b = a;\nlet q = a / b;\nprint(q);"), ("`q` is NaN; `a` is 0, `b` is 0", "3"))
        self.assertEqual(self.stops("let a: [f64; n] = [1e200, 2.0];\nlet y[n] = if n == 0 { a[n] * a[n] } else { a[n] };\nprint(y);"),
                         ("`y` is infinite at n = 0; `a[0]` is 1e+200", "2"))
        self.assertEqual(self.stops("let x[k] = [3e38, 3e38];\nlet s = sum[k](x[k]);\nprint(s);"),
                         ("`s` is infinite; its `sum` is infinite", "2"))
        self.assertEqual(self.stops("let x[i] = [1.0, -1.0, 4.0];\nlet s = sum[k](2.0 * sqrt(x[k]));\nprint(s);"),
                         ("`s` is NaN; `x[1]` is -1, in its `sum` at k = 1", "2"))

    def test_names_the_step(self):
        self.assertEqual(self.stops("let w[0] = 2.0;\nlet w[t in 1..200] = w[t - 1] * w[t - 1];\nprint(last(w));"),
                         ("`w` is infinite at t = 7; `w[6]` is 1.8446744e+19", "2"))
        code = ("let x: [f32; i];\nlet h[0, i] = x[i];\nlet h[t in 1..50, i] = exp(h[t - 1, i]);\n"
                "let total = sum[i](h[49, i]);\nprint(total);")
        x = self.npy("x.npy", "f32", [3], [-800, 1, -800])
        message, line = self.stops(code, "--in", f"x={x}")
        self.assertRegex(message, r"^`h` is infinite at t = \d, i = \d; `h\[\d, \d\]` is \d")
        self.assertEqual(line, "3")

    def test_in_derivatives(self):
        code = "let x = 0.0;\nlet y = sqrt(x);\nlet dx = @y / @x;\nprint(dx);"
        message, _ = self.stops(code)
        self.assertRegex(message, "^`dx` is infinite; ")

    def test_inputs_are_said_to_be_inputs(self):
        nan = float("nan")
        x = self.npy("x.npy", "f32", [3], [1, nan, 2])
        self.assertEqual(self.stops("let x: [f32; i];\nlet y[i] = x[i] + 1.0;\nprint(y);", "--in", f"x={x}"),
                         ("input `x` is NaN at i = 1", "1"))

    def test_what_is_finite_runs_as_ever(self):
        code = ("let x[i in 0..40] = 0.1 * (i as f32);\nlet w[0] = 1.0;\nlet w[t in 1..30] = w[t - 1] - 0.01 * sum[i](x[i] * (w[t - 1] * x[i] - 2.0));\n"
                "let inf[i] = if x[i] > 100.0 { 1.0 / 0.0 } else { x[i] };\nprint(w, sum[i](inf[i]));")
        numbers = re.compile(r"-?\d+\.\d+")
        for route in ROUTES:
            want = self.check(["run", "-c", code, *route], 0).stdout
            found = self.check(["run", "-c", code, "--trap", "nan", *route], 0).stdout
            for a, b in zip(numbers.findall(want), numbers.findall(found), strict=True):
                self.assertAlmostEqual(float(a), float(b), 4)

    def test_what_is_not_computed_does_not_stop(self):
        self.check(["run", "-c", "let a = 0.0;\nlet q = a / a;\nprint(a);", "--trap", "nan"], 0, "0.0\n")
        self.check(["run", "-c", "print(1);", "--trap", "inf"], 2, "", "--trap")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
