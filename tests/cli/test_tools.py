"""The verbs around a program: fmt, fix, explain, test, new, check --facts, run --emit. Usage: test_tools.py EIN"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

EIN = None
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ein(self, *args, stdin=""):
        return subprocess.run([EIN, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=120,
                              cwd=self.folder, env={**os.environ, "NO_COLOR": "1"})

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def expect(self, result, status, out=None, err=""):
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        if out is not None:
            self.assertEqual(result.stdout, out)
        self.assertIn(err, result.stderr)


class Fmt(Tools):
    def test_in_place_and_idempotent(self):
        path = self.write("a.ein", "let a=[1.0,2.0]\nlet b[i]=a[i]*2.0")
        self.expect(self.ein("fmt", "--check", "a.ein"), 1, "a.ein\n")
        self.expect(self.ein("fmt", "a.ein"), 0, "")
        self.assertEqual(path.read_text(), "let a = [1.0, 2.0];\nlet b[i] = a[i] * 2.0;\n")
        self.expect(self.ein("fmt", "--check", "a.ein"), 0, "")

    def test_standard_input(self):
        self.expect(self.ein("fmt", "-", stdin="let a=1"), 0, "let a = 1;\n")
        self.expect(self.ein("fmt", "--check", "-", stdin="let a=1"), 1, "<standard input>\n")

    def test_a_file_with_errors_is_left_alone_and_the_others_are_not(self):
        bad = self.write("bad.ein", "let a=(1;\n")
        good = self.write("good.ein", "let a=1;\n")
        self.expect(self.ein("fmt", "bad.ein", "good.ein"), 1, "", "E0103")
        self.assertEqual(bad.read_text(), "let a=(1;\n")
        self.assertEqual(good.read_text(), "let a = 1;\n")

    def test_missing_file(self):
        self.expect(self.ein("fmt", "none.ein"), 2, "", "cannot read `none.ein`")

    def test_the_repository_is_formatted(self):
        # Programs in tests/errors are wrong on purpose, those in tests/run/syntax spell things in other ways.
        files = [p for folder in ("examples", "tests") for p in sorted((ROOT / folder).rglob("*.ein"))
                 if not {"errors", "syntax"} & set(p.relative_to(ROOT).parts)
                 and "//! layout: as written" not in p.read_text()]
        self.assertGreater(len(files), 5)
        self.expect(self.ein("fmt", "--check", *files), 0, "")


class Fix(Tools):
    PROGRAM = "let A = [[1.0, 2.0], [3.0, 4.0]];\nlet x = [1.0, 2.0];\nlet y[i] = A[i, k] * x[k];\nprint(y);\n"

    def test_a_free_index_is_summed(self):
        path = self.write("a.ein", self.PROGRAM)
        self.expect(self.ein("fix", "a.ein"), 0, "a.ein:3:12: sum over `k` (E0303)\n")
        self.assertIn("let y[i] = sum[k](A[i, k] * x[k]);\n", path.read_text())
        self.expect(self.ein("check", "a.ein"), 0)
        self.expect(self.ein("fix", "a.ein"), 0, "a.ein: nothing to fix\n")

    def test_dry_run_changes_nothing(self):
        path = self.write("a.ein", self.PROGRAM)
        self.expect(self.ein("fix", "--dry-run", "a.ein"), 0, "a.ein:3:12: would sum over `k` (E0303)\n")
        self.assertEqual(path.read_text(), self.PROGRAM)

    def test_a_second_sum_around_the_first_is_offered_not_applied(self):
        self.write("a.ein", "let A = [[1.0, 2.0], [3.0, 4.0]];\nlet x = [1.0];\n"
                            "let s[j] = A[i, k] * A[i, k] * x[j];\n")
        result = self.ein("fix", "a.ein")
        self.assertEqual(result.stdout.count("E0303"), 1)
        self.assertIn("sum over `k` (check it)", result.stderr)
        self.assertIn("let s[j] = sum[i](A[i, k] * A[i, k] * x[j]);", (self.folder / "a.ein").read_text())

    def test_a_syntax_error_then_a_meaning(self):
        path = self.write("a.ein", self.PROGRAM.replace("x = [1.0", "x == [1.0"))
        self.expect(self.ein("fix", "a.ein"), 0)
        self.assertIn("let x = [1.0, 2.0];", path.read_text())
        self.assertIn("sum[k]", path.read_text())

    def test_a_sum_that_may_not_be_meant_is_offered_only(self):
        for text in ("let x = [1.0, 2.0];\nlet y = x[i] * 2.0;\n",
                     "let x = [1.0, 2.0];\nprint(x[i]);\n",
                     "let A = [[1.0, 2.0]];\nlet y[i] = A[i, k] * 2.0;\n"):
            self.write("a.ein", text)
            self.expect(self.ein("fix", "a.ein"), 1, "a.ein: nothing to fix\n", "E0303")

    def test_what_cannot_be_fixed_is_reported(self):
        path = self.write("a.ein", "let a = missing;\n")
        self.expect(self.ein("fix", "a.ein"), 1, "a.ein: nothing to fix\n", "E0201")
        self.assertEqual(path.read_text(), "let a = missing;\n")

    def test_standard_input(self):
        result = self.ein("fix", "-", stdin=self.PROGRAM)
        self.expect(result, 0, err="sum over `k`")
        self.assertIn("sum[k](A[i, k] * x[k])", result.stdout)


class Explain(Tools):
    def test_a_page(self):
        page = (ROOT / "docs/errors/E0301.md").read_text()
        self.expect(self.ein("explain", "E0301"), 0, page)
        self.expect(self.ein("explain", "e0301"), 0, page)

    def test_unknown_code(self):
        self.expect(self.ein("explain", "E03011"), 2, "", "did you mean `E0301`?")
        self.expect(self.ein("explain", "nonsense"), 2, "", "`ein explain` lists all of them")

    def test_all_codes(self):
        result = self.ein("explain")
        self.expect(result, 0)
        self.assertIn("E0303  index is neither on the left nor reduced\n", result.stdout)
        self.assertGreater(len(result.stdout.splitlines()), 50)


class Test(Tools):
    GOOD = 'let a = 2;\ntest "twice" {\n    let b = a * 2;\n    assert(b == 4);\n}\n'

    def test_blocks_see_the_file(self):
        self.write("a.ein", self.GOOD)
        for backend in ("native", "ref"):
            self.expect(self.ein("test", "--backend", backend, "a.ein"), 0, "a.ein: twice … ok\n1 passed, 0 failed\n")

    def test_failure_names_the_place(self):
        self.write("a.ein", self.GOOD + 'test "wrong" {\n    assert(a == 3, "a is {a}")\n}\n')
        result = self.ein("test", "a.ein")
        self.expect(result, 1)
        self.assertIn("a.ein: wrong … failed\n  a.ein:7:5: assertion failed: a is 2\n", result.stdout)
        self.assertTrue(result.stdout.endswith("1 passed, 1 failed\n"))

    DOC = ("/// Twice a number.\n///\n/// ```ein\n/// let b = double(a);\n/// assert(b == {});\n/// ```\n/// More.\n"
           "fn double(x) {{ x * 2 }}\nlet a = 2;\n")

    def test_doc_examples(self):
        self.write("a.ein", self.DOC.format(4))
        for backend in ("native", "ref"):
            self.expect(self.ein("test", "--backend", backend, "a.ein"), 0,
                        "a.ein: double, example in line 3 … ok\n1 passed, 0 failed\n")
        self.expect(self.ein("check", "a.ein"), 0)

    def test_doc_examples_that_fail(self):
        self.write("a.ein", self.DOC.format(5))
        result = self.ein("test", "a.ein")
        self.expect(result, 1)
        self.assertIn("example in line 3 … failed\n  a.ein:5:5: assertion failed\n", result.stdout)
        self.write("a.ein", self.DOC.format("c"))
        self.expect(self.ein("test", "a.ein"), 1, None, "a.ein:5:17")

    def test_other_blocks_in_docs_are_text(self):
        self.write("a.ein", "/// ```text\n/// nonsense (\n/// ```\n/// ```ein\n/// not closed (\nfn f(x) { x }\n")
        self.assertTrue(self.ein("test", "a.ein").stdout.endswith("0 passed, 0 failed\n"))

    def test_blocks_do_not_see_each_other(self):
        self.write("a.ein", self.GOOD + 'test "again" {\n    let b = 1;\n    assert(b == 1);\n}\n')
        self.assertTrue(self.ein("test", "a.ein").stdout.endswith("2 passed, 0 failed\n"))

    def test_requests_in_a_block(self):
        self.write("a.ein", 'let x = 3.0;\ntest "slope" {\n    let y = x * x;\n    let g = @y / @x;\n'
                            "    assert(g == 6.0);\n}\n")
        self.expect(self.ein("test", "a.ein"), 0)

    def test_effects_of_the_file_do_not_run(self):
        self.write("a.ein", 'print("not here");\n' + self.GOOD)
        self.assertNotIn("not here", self.ein("test", "a.ein").stdout)

    def test_mistakes_in_a_block(self):
        self.write("a.ein", self.GOOD + 'test "broken" {\n    assert(c == 1);\n}\n')
        for verb in ("check", "test"):
            result = self.ein(verb, "a.ein")
            self.expect(result, 1, err="unknown name `c`")
            self.assertEqual(result.stderr.count("error["), 1)
        self.expect(self.ein("run", "a.ein"), 0, "")

    def test_mistakes_in_a_function_that_a_block_calls(self):
        self.write("a.ein", 'fn f(a) { exp(a) }\ntest "integer" {\n    let k: i32 = 1;\n    assert(f(k) > 0.0);\n}\n')
        self.expect(self.ein("test", "a.ein"), 1, "0 passed, 0 failed\n", "E0502")

    def test_a_missing_input_fails_the_test(self):
        self.write("a.ein", 'let x: f32;\ntest "needs x" {\n    assert(x > 0.0);\n}\n')
        result = self.ein("test", "a.ein")
        self.expect(result, 1)
        self.assertIn("`x`", result.stdout)

    def test_a_block_does_not_redefine_a_name_of_the_file(self):
        self.write("a.ein", 'let a = 1;\ntest "t" {\n    let a = 2;\n    assert(a == 2);\n}\n')
        self.expect(self.ein("check", "a.ein"), 1, "", "E0202")

    def test_mistakes_in_the_file_are_told_once(self):
        self.write("a.ein", "let c = missing;\n" + self.GOOD)
        self.assertEqual(self.ein("check", "a.ein").stderr.count("error["), 1)

    def test_files_are_found(self):
        (self.folder / "inner").mkdir()
        self.write("inner/b.ein", self.GOOD)
        self.write("a.ein", self.GOOD)
        self.expect(self.ein("test"), 0, "a.ein: twice … ok\ninner/b.ein: twice … ok\n2 passed, 0 failed\n")


class New(Tools):
    def test_the_project_runs_tests_and_is_formatted(self):
        self.expect(self.ein("new", "first"), 0)
        self.assertEqual(sorted(p.name for p in (self.folder / "first").iterdir()), ["README.md", "main.ein"])
        self.expect(self.ein("run", "first/main.ein"), 0, "means [2] [2.0, 5.0]\n")
        self.assertTrue(self.ein("test", "first/main.ein").stdout.endswith("1 passed, 0 failed\n"))
        self.expect(self.ein("fmt", "--check", "first/main.ein"), 0, "")

    def test_an_existing_folder_is_refused(self):
        (self.folder / "here").mkdir()
        self.expect(self.ein("new", "here"), 2, "", "`here` already exists")
        self.assertEqual(list((self.folder / "here").iterdir()), [])


class Facts(Tools):
    def facts(self, program, *args):
        result = self.ein("check", "--facts", "--format", "json", *args, "-", stdin=program)
        self.expect(result, 0)
        report = json.loads(result.stdout)
        return {f["name"]: f for f in report["families"]}, report["constraints"]

    def test_coordinates_ranges_and_broadcasts(self):
        families, constraints = self.facts("let A: [f64; p, q];\nlet b: [f64; q];\n"
                                           "let C[i, j] = sum[k](A[i, k] * A[j, k]) + b[0];\n")
        c = families["C"]
        self.assertEqual(c["dtype"], "f64")
        self.assertEqual(c["coords"], [{"name": "i", "extent": "p"}, {"name": "j", "extent": "p"}])
        self.assertEqual(c["clauses"], [["0..p", "0..p"]])
        self.assertEqual(c["broadcasts"], [{"operand": "A", "omits": ["j"]}, {"operand": "A", "omits": ["i"]},
                                           {"operand": "b", "omits": ["i", "j"]}])
        self.assertIsNone(c["recurrence"])
        self.assertEqual(families["A"]["kind"], "input")

    def recurrence(self, program, name):
        r = self.facts(program)[0][name]["recurrence"]
        self.assertEqual(len(r["order"]), 1)
        return (*r["order"][0].values(), r["lookback"], r["tail"], r["kept"])

    FIB = "let f[0] = 1;\nlet f[1] = 1;\nlet f[t in 2..20] = f[t - 1] + f[t - 2];\n"

    def test_kept_steps(self):
        self.assertEqual(self.recurrence(self.FIB + "let x = f[19];\n", "f"), ("t", "up", 2, 1, 3))
        self.assertEqual(self.recurrence(self.FIB + "let x = f[19] + f[15];\n", "f"), ("t", "up", 2, 5, 5))
        self.assertEqual(self.recurrence(self.FIB + "print(f);\n", "f"), ("t", "up", 2, "all", "all"))

    def test_symbolic_steps(self):
        program = "let y: [f32; m];\nlet s[0] = 1.0;\nlet s[t in 1..m] = s[t - 1] * y[t];\n"
        self.assertEqual(self.recurrence(program + "let x = s[m - 1];\n", "s"), ("t", "up", 1, 1, 2))
        self.assertEqual(self.recurrence(program + "let x = s[0];\n", "s"), ("t", "up", 1, "all", "all"))

    def test_downward(self):
        program = "let g[9] = 1.0;\nlet g[t in 0..9] = g[t + 1] * 2.0;\nlet x = g[0];\n"
        self.assertEqual(self.recurrence(program, "g"), ("t", "down", 1, 1, 2))

    def test_two_sequential_coordinates(self):
        program = ("let A[i in 0..5, j in 0..6]: f32 = if i == 0 || j == 0 { 1.0 } else { A[i - 1, j] + A[i, j - 1] };\n"
                   "let x = A[4, 5];\n")
        result = self.ein("check", "--facts", "-", stdin=program)
        self.assertIn("recurrence over i upward, then j upward; lookback 1, tail 1, kept steps 2\n", result.stdout)

    def test_steps_of_a_group(self):
        program = ("let a[0] = 1.0;\nlet b[0] = 1.0;\nlet a[t in 1..9] = b[t - 1];\n"
                   "let b[t in 1..9] = a[t] + b[t - 1];\nlet x = b[8];\n")
        self.assertEqual(self.recurrence(program, "a"), ("t", "up", 0, 0, 1))
        self.assertEqual(self.recurrence(program, "b"), ("t", "up", 1, 1, 2))

    def test_text(self):
        result = self.ein("check", "--facts", "-", stdin=self.FIB + "let x = f[19];\n")
        self.expect(result, 0)
        self.assertIn("f: i32 [t: 20]\n  clause t in 0..1\n", result.stdout)
        self.assertIn("  recurrence over t upward; lookback 2, tail 1, kept steps 3\n", result.stdout)

    def test_constraints_and_strict(self):
        program = "let x: [f32; n];\nlet y: [f32; m];\nlet z[i] = x[i] + y[i];\n"
        self.assertEqual(len(self.facts(program)[1]), 1)
        self.expect(self.ein("check", "--strict", "-", stdin=program), 1, "", "error[E0406]")
        self.expect(self.ein("check", "--strict", "-", stdin=program.replace("m]", "n]")), 0)


class Emit(Tools):
    def test_every_stage(self):
        self.write("a.ein", "let x = [1.0, 2.0];\nlet y[i] = x[i] * 2.0;\nprint(y);\n")
        signs = {"plan": "y ", "loops": "parallel i", "llvm": "define", "asm": ".text"}
        for stage, sign in signs.items():
            result = self.ein("run", "--emit", stage, "a.ein")
            self.expect(result, 0)
            self.assertIn(sign, result.stdout, stage)
            self.assertNotIn("[2.0, 4.0]", result.stdout)


if __name__ == "__main__":
    EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
