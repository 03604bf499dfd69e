"""Looking at derivatives: the comments of `ein grad`, `ein explain FILE`, `ein audit`. Usage: test_derivatives.py EIN"""

import html.parser
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_tools  # noqa: E402
from test_tools import ROOT, Tools  # noqa: E402

MATMUL = """let A: [f32; i, k];
let B: [f32; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
let loss = sum[i, j](C[i, j] * C[i, j]);
"""
CONV = """let x: [f32; n];
let w: [f32; k];
let y[o] = sum[k](x[o + k] * w[k]);
let loss = sum[o](y[o] * y[o]);
"""


class Verbs(Tools):
    def expect(self, result, status, out="", err=""):
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(out, result.stdout)
        self.assertIn(err, result.stderr)
        return result.stdout


class Grad(Verbs):
    def grad(self, program, of, wrt):
        return self.expect(self.ein("grad", "-", "--of", of, "--wrt", wrt, stdin=program), 0)

    def test_what_is_summed_and_why(self):
        out = self.grad(MATMUL, "loss", "A,B")
        self.assertIn("// sums j: C has it, A does not\nlet d_loss_d_A[", out)
        self.assertIn("// sums i: C has it, B does not\nlet d_loss_d_B[", out)
        out = self.grad("let x: [f32; b, t, f];\nlet g: [f32; f];\nlet y[b, t, f] = x[b, t, f] * g[f];\n"
                        "let loss = sum[b, t, f](y[b, t, f] ** 2.0);\n", "loss", "g")
        self.assertIn("// sums b, t: y has them, g does not\n", out)

    def test_what_a_reduction_runs_over(self):
        out = self.grad("let a: [f32; i];\nlet b: [f32; i, j];\nlet loss = sum[i, j](a[i] * b[i, j]);\n", "loss", "a")
        self.assertIn("// sums j: loss runs over it, a does not have it\n", out)

    def test_what_was_solved(self):
        out = self.grad(CONV, "loss", "x,w")
        self.assertIn("// o is n - k: y reads x at o + k\n", out)
        self.assertIn("// sums o: y has it, w does not\n", out)

    def test_gathers_and_steps(self):
        out = self.grad("let x: [f32; n];\nlet at: [i32; k];\nlet y[k] = x[at[k]];\nlet loss = sum[k](y[k] ** 2.0);\n",
                        "loss", "x")
        self.assertIn("// sums k where at[k] == n: cells that are read more than once get the sum\n", out)
        out = self.grad("let W = 0.5;\nlet h[0] = 1.0;\nlet h[t in 1..5] = h[t - 1] * W;\nlet loss = h[4];\n", "loss", "W")
        self.assertIn("// comes back from t + 1: h[t] reads h at t - 1\n", out)
        self.assertIn("// sums t: h[t] has it, W does not\n", out)

    def test_what_is_needed_and_no_more(self):
        program = ("let x: [f32; n];\nlet other: [f32; n];\nlet unused[i] = other[i] * 2.0;\nlet loss = sum[i](x[i] ** 3.0);\n"
                   "let dx = @loss / @x;\nprint(unused);\nprint(dx);\n")
        short = self.expect(self.ein("grad", "-", stdin=program), 0)
        self.assertNotIn("unused", short)
        self.assertNotIn("other", short)
        self.assertNotIn("loss =", short)
        self.assertIn("print(\"{dx}\");", short)
        whole = self.expect(self.ein("grad", "-", "--all", stdin=program), 0)
        for part in ("let unused", "let loss =", "{unused}", "let dx"):
            self.assertIn(part, whole)
        self.assertEqual(self.expect(self.ein("grad", "-", stdin="let a = 1.0;\n"), 0), "let a = 1.0;\n")

    def test_functions_stay_calls(self):
        out = self.grad("use std::nn::{gelu, relu, sigmoid};\nlet x: [f32; n];\n"
                        "let loss = sum[i](gelu(x[i]) * sigmoid(x[i]) + relu(x[i]));\n", "loss", "x")
        self.assertIn("fn gelu(x: f32) -> f32 {", out)
        self.assertIn("d_gelu_d_x(x[n])", out)
        self.assertIn("sigmoid(x[n]) * sigmoid(-x[n])", out)
        self.assertIn("(1.0 where x[n] > 0.0)", out)

    def test_lines_are_short(self):
        for path in sorted((ROOT / "bench/programs").glob("*.ein")):
            out = self.expect(self.ein("grad", path), 0)
            self.assertLessEqual(max(map(len, out.splitlines()), default=0), 100, path)
            self.assertEqual(self.expect(self.ein("fmt", "-", stdin=out), 0), out)

    def test_the_printed_program_is_a_program(self):
        for path in sorted((ROOT / "tests/grad").glob("seed_000_*.ein")):
            out = self.expect(self.ein("grad", path), 0)
            self.expect(self.ein("check", "-", "--error-format", "short", stdin=out), 0)
            once = self.expect(self.ein("fmt", "-", stdin=out), 0)
            self.assertEqual(self.expect(self.ein("fmt", "-", stdin=once), 0), once)
            comments = lambda text: [l for l in text.splitlines() if l.startswith("//")]
            self.assertEqual(comments(once), comments(out))

    def test_bad_input(self):
        self.expect(self.ein("grad", "-", "--of", "los", "--wrt", "A", stdin=MATMUL), 1, "", "did you mean `loss`?")
        self.expect(self.ein("grad", "-", "--of", "loss", stdin=MATMUL), 2, "", "--of and --wrt must be given together")


class Page(html.parser.HTMLParser):
    VOID = {"meta", "rect", "path"}

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.outside = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.outside += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Explain(Verbs):
    def test_the_five_steps(self):
        out = self.expect(self.ein("explain", "-", "--of", "loss", "--wrt", "A", stdin=MATMUL), 0)
        self.assertTrue(out.startswith("@loss / @A\n\nC, read by loss\n"), out)
        self.assertIn("""
A, read by C
  1 hold              A[i, k]
  2 it is read by     C[i, j], for every j
  3 incoming          d_loss_d_C[i, j]
  4 local derivative  B[k, j]
  5 sum               j: C has it, A does not
""", out)

    def test_the_requests_of_the_source(self):
        out = self.expect(self.ein("explain", "-", stdin=MATMUL + "let dA = @loss / @A;\nlet dB = @loss / @B;\n"), 0)
        self.assertIn("@loss / @A\n", out)
        self.assertIn("@loss / @B\n", out)

    def test_json(self):
        out = self.expect(self.ein("explain", "-", "--of", "loss", "--wrt", "x", "--format", "json", stdin=CONV), 0)
        report = json.loads(out)
        self.assertEqual(report["values"][0], {"name": "x", "coords": ["n"]})
        step = report["steps"][-1]
        self.assertEqual((step["value"], step["reader"], step["summed"]), ("x", "y", ["k"]))
        self.assertEqual(step["solved"], [{"coordinate": "o", "is": "n - k", "read_at": "o + k"}])

    def test_a_page(self):
        self.expect(self.ein("explain", "-", "--of", "loss", "--wrt", "A,B", "--html", "out.html", stdin=MATMUL), 0)
        text = (self.folder / "out.html").read_text()
        page = Page()
        page.feed(text)
        self.assertEqual(page.open, [])
        self.assertEqual(page.outside, [])
        self.assertLessEqual({"svg", "table", "style", "marker"}, page.seen)
        self.assertIn("Σ j", text)

    def test_bad_input(self):
        ask = lambda *args, program=MATMUL: self.ein("explain", *args, stdin=program)
        self.expect(ask("-", "--of", "loss"), 2, "", "--of and --wrt must be given together")
        self.expect(ask("-"), 2, "", "the program contains no derivative")
        self.expect(ask("-", "--of", "loss", "--wrt", "AA"), 1, "", "did you mean `A`?")
        self.expect(ask("-", "--of", "n", "--wrt", "n", program="let n = 1;\n"), 1, "", "E0602")
        self.expect(ask("none.ein", "--of", "loss", "--wrt", "A"), 2, "", "`none.ein` is neither a readable program")
        self.expect(ask("-", "--of", "loss", "--wrt", "A", "--html", "no/such/x.html"), 2, "", "cannot write")
        out = self.expect(ask("-", "--of", "A", "--wrt", "B"), 0, "", "W0601")
        self.assertIn("A does not depend on B: the derivative is zero\n", out)
        self.expect(ask("--help"), 0, "--html")


class Audit(Verbs):
    BIAS = "let x: [f32; b, f];\nlet bias: [f32; f];\nlet y[b, f] = x[b, f] + bias[f];\n"

    def test_what_is_repeated(self):
        self.expect(self.ein("audit", "-", "--deny", stdin=self.BIAS), 0,
                    "y\n  bias[f] is repeated along b: its gradient sums b\n")
        self.expect(self.ein("audit", "-", stdin="let a = [1.0];\nlet b[i] = a[i];\n"), 0, "there are no broadcasts")
        out = self.expect(self.ein("audit", "-", stdin=MATMUL), 0)
        self.assertIn("  A[i, k] is repeated along j: its gradient sums j\n", out)

    def test_what_looks_unintended(self):
        programs = {
            "let A: [f32; n, n];\nlet v: [f32; n];\nlet y[r, c] = A[r, c] + v[r];\n":
                "`r` and `c` have the same extent, so `v` along `c` would fit too",
            "let x: [f32; 3, 3];\nlet bias: [f32; 3] = [1.0, 2.0, 3.0] as [f32; f];\n"
            "let y[b, f] = x[b, f] + bias[b];\n":
                "`bias` has a coordinate `f`, but `b` is used for it and the value is repeated along `f`",
            "let x: [f32; b, f];\nlet o: [f32; b, f];\nlet s[f] = x[0, f];\nlet y[b, f] = x[b, f] * s[f] + o[b, f];\n":
                "every other operand has `b`, and `s` is computed from `x`, which has it",
        }
        for program, why in programs.items():
            with self.subTest(why):
                self.expect(self.ein("audit", "-", stdin=program), 0, why)
                self.expect(self.ein("audit", "-", "--deny", stdin=program), 1, "looks unintended at <standard input>:")

    def test_a_statistic_is_meant(self):
        program = self.BIAS + "let s[b] = mean[f](x[b, f]);\nlet c[b, f] = (x[b, f] - s[b]) * bias[f];\n"
        self.expect(self.ein("audit", "-", "--deny", stdin=program), 0)

    def test_json(self):
        out = self.expect(self.ein("audit", "-", "--format", "json", stdin=self.BIAS), 0)
        self.assertEqual(json.loads(out), [{"reader": "y", "operand": "bias", "read": "bias[f]", "along": ["b"],
                                            "suspicion": "", "at": "<standard input>:3:25"}])

    def test_bad_input(self):
        self.expect(self.ein("audit", "none.ein"), 2, "", "cannot read `none.ein`")
        self.expect(self.ein("audit", "-", stdin="let a = b;\n"), 1, "", "E0201")
        self.expect(self.ein("audit", "--help"), 0, "--deny")


if __name__ == "__main__":
    test_tools.EIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
