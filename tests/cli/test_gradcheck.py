"""`ein gradcheck`: derivatives and rules against differences. Usage: test_gradcheck.py EIN"""

import concurrent.futures
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

EIN = None
ROOT = pathlib.Path(__file__).resolve().parents[2]

MATMUL = """let A: [f32; i, k];
let B: [f32; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
let loss = sum[i, j](C[i, j] ** 2.0);
let dA = @loss / @A;
"""

# The mistakes that a hand-written derivative usually has, each as a rule.
PITFALLS = {
    "the sum over a broadcast coordinate is missing": """
fn total[b](x: [f64; b], bias: f64) -> f64 {
    sum[b]((x[b] + bias) * (b + 1))
}
@fn total[b](x: [f64; b], bias: f64) {
    sum[b]((b + 1) * @x[b]) + @bias
}
""",
    "a transpose is missing": """
fn apply_to(A: [f64; n, n], v: [f64; n]) -> [f64; n] {
    let out[i] = sum[k](A[i, k] * v[k]);
    out
}
@fn apply_to(A: [f64; n, n], v: [f64; n]) {
    let out[i] = sum[k](@A[i, k] * v[k]) + sum[k](A[k, i] * @v[k]);
    out
}
""",
    "the factor 1/N of a mean is missing": """
fn average[c](x: [f64; c]) -> f64 {
    mean[c](x[c])
}
@fn average[c](x: [f64; c]) {
    sum[c](@x[c])
}
""",
    "a clamped logarithm has an unclamped slope": """
fn safe_log(x: f64) -> f64 {
    log(max(x, 0.001))
}
@fn safe_log(x: f64) {
    @x / x
}
""",
    "a clamped square root has an unclamped slope": """
fn safe_sqrt(x: f64) -> f64 {
    sqrt(max(x, 0.001))
}
@fn safe_sqrt(x: f64) {
    @x / (2.0 * sqrt(x))
}
""",
    "a clamped quotient has an unclamped slope": """
fn safe_divide(a: f64, b: f64) -> f64 {
    a / max(b, 0.001)
}
@fn safe_divide(a: f64, b: f64) {
    @a / b - a * @b / (b * b)
}
""",
}


class Gradcheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ein(self, *args, stdin=""):
        return subprocess.run([EIN, "gradcheck", *map(str, args)], input=stdin, capture_output=True,
                              text=True, timeout=120, cwd=self.folder,
                              env={**os.environ, "NO_COLOR": "1"})

    def expect(self, result, status, out="", err=""):
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(out, result.stdout)
        self.assertIn(err, result.stderr)
        return result

    def check(self, program, status, out="", err=""):
        return self.expect(self.ein("-", stdin=program), status, out, err)

    def test_a_right_program(self):
        result = self.check(MATMUL, 0, "dA: @loss / @A — agrees (12 cells, 2 directions)\n")
        self.assertIn("inputs with made-up values: A, B\n", result.stdout)
        self.assertIn("forward and reverse mode agree, from the printed source and on the reference evaluator", result.stdout)

    def test_a_derivative_that_the_source_does_not_ask_for(self):
        result = self.ein("-", "--of", "loss", "--wrt", "B,C", stdin=MATMUL)
        self.expect(result, 0, "d_loss_d_B: @loss / @B — agrees (8 cells")
        self.assertIn("@loss / @C — agrees", result.stdout)
        self.assertNotIn("dA", result.stdout)

    def test_a_claimed_value(self):
        claim = MATMUL + "let wrong[i, k] = dA[i, k] * 1.01;\n"
        self.expect(self.ein("-", "--of", "loss", "--wrt", "A", "--value", "dA", stdin=claim), 0)
        result = self.ein("-", "--of", "loss", "--wrt", "A", "--value", "wrong", stdin=claim)
        self.expect(result, 1, "error: the derivative `@loss / @A` is wrong\n  at <standard input>:6:5\n")
        self.assertRegex(result.stdout, r"  wrong\[i=\d, k=\d\] is \S+, but finite differences give \S+\n")
        result = self.ein("-", "--of", "loss", "--wrt", "A", "--value", "loss", stdin=claim)
        self.expect(result, 2, err="`loss` has 0 coordinates; the derivative of `loss` by `A` has 2")

    def test_the_pitfalls_are_rejected(self):
        for what, program in PITFALLS.items():
            with self.subTest(what):
                self.check(program, 1, "is not the derivative of its function\n  at <standard input>:")

    def test_a_rule_that_nothing_calls(self):
        right = "fn cube(x) {\n    x * x * x\n}\n@fn cube(x) {\n    3.0 * x * x * @x\n}\n"
        self.check(right, 0, "rule of `cube`: @cube / @x — agrees (16 cells")
        result = self.check(right.replace("3.0", "2.0"), 1, "error: the rule of `cube`")
        self.assertIn("mark it `#[surrogate]`", result.stdout)
        self.assertRegex(result.stdout, r"  @cube / @x\[point=\d+, \d+\] is \S+, but finite differences give ")

    def test_a_rule_over_packs_and_an_integer_result(self):
        soft = """
fn soft[j](x: [f64; ..l, j]) -> [f64; ..l, j] {
    let e[..l, j] = exp(x[..l, j]);
    e[..l, j] / sum[j](e[..l, j])
}
@fn soft[j](x: [f64; ..l, j]) {
    let y[..l, j] = soft[j](x[..l, j]);
    y[..l, j] * (@x[..l, j] - sum[j](y[..l, j] * @x[..l, j]))
}
"""
        self.check(soft, 0, "rule of `soft`: @soft / @x — agrees")
        step = "fn bin(x: f64) -> i32 {\n    floor(x) as i32\n}\n{}@fn bin(x: f64) {\n    @x\n}\n"
        self.check(step.replace("{}", ""), 1, "the rule of `bin` is not the derivative")
        self.check(step.replace("{}", "#[surrogate]\n"), 0, "rule of `bin` — not compared: a surrogate rule\n")

    def test_a_request_through_a_surrogate(self):
        program = """
fn sharp(x: f64) -> f64 {
    if x > 0.0 { 1.0 } else { 0.0 }
}
#[surrogate]
@fn sharp(x: f64) {
    @x
}
let x: [f64; i];
let y = sum[i](sharp(x[i]));
let z = sum[i](x[i] * x[i]);
let dy = @y / @x;
let dz = @z / @x;
"""
        result = self.check(program, 0, "dy: @y / @x — not compared: depends on a surrogate rule\n")
        self.assertIn("dz: @z / @x — agrees", result.stdout)

    def test_kinks_are_said(self):
        program = "let x = [-1.0, 0.0, 2.0];\nlet y = sum[i](max(x[i], 0.0));\nlet dy = @y / @x;\n"
        self.check(program, 0, "agrees (3 cells, 2 directions; 1 kink skipped, the first at dy[1])\n")
        self.check("let x = 0.0;\nlet y = abs(x);\nlet dy = @y / @x;\n", 0,
                   "dy: @y / @x — not compared: every value is at a kink\n")

    def test_outside_a_domain(self):
        program = "let x = [-1.0, 2.0];\nlet y[i] = log(x[i]);\nlet dy[i] = @y[i] / @x[i];\n"
        self.check(program, 0, "1 outside the domain)\n")

    def test_what_is_stopped_is_held(self):
        self.check("let x = 3.0;\nlet y = x * stop(x * x);\nlet dy = @y / @x;\n", 0, "dy: @y / @x — agrees")

    def test_inside_a_recurrence_and_twice(self):
        self.check("""
let x: [f64; b, f];
let y: [f64; b];
let W[0, j in 0..extent(x, 1)] = 0.0;
let W[s in 1..5, j] = {
    let w[k] = W[s - 1, k];
    let loss = mean[b]((sum[k](x[b, k] * w[k]) - y[b]) ** 2.0);
    w[j] - 0.1 * @loss / @w[j]
};
let err = sum[j](W[4, j] ** 2.0);
let dy = @err / @y;
""", 0, "@W_loss / @W_w — agrees")

    def test_an_imprecise_formula(self):
        program = """let x = [4000.0];
let y = sum[i](sqrt(x[i] * x[i] + 1.0) - x[i]);
let dy = @y / @x;
"""
        result = self.check(program, 1, "error: `@y / @x` loses precision")
        self.assertIn("the same program in f64 gives", result.stdout)
        self.check(program.replace("[4000.0]", "[4000.0 as f64]"), 0)

    def test_seed_tolerances(self):
        program = "let x: [f64; n];\nlet y = sum[i](x[i] * x[i]);\nlet dy = @y / @x;\n"
        self.expect(self.ein("-", "--seed-tolerances", stdin=program), 0, "agrees (3 cells)")

    def test_given_inputs(self):
        data = struct.pack("<2f", 1.0, 2.0)
        header = str({"descr": "<f4", "fortran_order": False, "shape": (2,)})
        header += " " * (-(len(header) + 11) % 64) + "\n"
        (self.folder / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
                                            + header.encode() + data)
        program = "let x: [f32; n];\nlet s: f32;\nlet y = sum[i](s * x[i] ** 3.0);\nlet dy = @y / @x;\n"
        result = self.ein("-", "--in", "x=x.npy", "--set", "s=2.0", stdin=program)
        self.expect(result, 0, "dy: @y / @x — agrees (2 cells")
        self.assertNotIn("made-up", result.stdout)
        self.expect(self.ein("-", "--in", "x=none.npy", stdin=program), 3, err="none.npy")
        self.expect(self.ein("-", "--set", "x=1", stdin=program), 2, err="`x` is a tensor")

    def test_json(self):
        result = self.ein("-", "--format", "json", stdin=MATMUL + PITFALLS["the factor 1/N of a mean is missing"])
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 1)
        self.assertFalse(report["ok"])
        self.assertTrue(report["printed"] and report["native"])
        self.assertEqual(report["requests"][0]["verdict"], "agrees")
        self.assertEqual(report["rules"][0]["verdict"], "wrong")
        self.assertEqual(set(report["rules"][0]["worst"]), {"at", "derived", "differences"})

    def test_quick(self):
        result = self.ein("-", "--quick", stdin=MATMUL)
        self.expect(result, 0, "dA: @loss / @A — agrees (12 cells, 2 directions)\nforward and reverse mode agree\n")
        report = json.loads(self.ein("-", "--quick", "--format", "json", stdin=MATMUL).stdout)
        errors = report["requests"][0]["errors"]
        self.assertEqual(set(errors), {"differences", "own_type", "forward"})
        self.assertTrue(all(0 <= e < 1 for e in errors.values()), errors)

    def test_bad_input(self):
        self.check("let x = 1.0;\n", 2, err="the program contains no derivative: name one, as in --of loss --wrt W")
        self.check("let x = y;\n", 1, err="E0201")
        self.expect(self.ein("-", "--of", "loss", stdin=MATMUL), 2, err="--of and --wrt must be given together")
        self.expect(self.ein("-", "--of", "los", "--wrt", "A", stdin=MATMUL), 1, err="did you mean `loss`?")
        self.expect(self.ein("-", "--of", "los", "--wrt", "A", "--value", "dA", stdin=MATMUL), 2,
                    err="did you mean `loss`?")
        self.expect(self.ein("-", "--of", "n", "--wrt", "n", stdin="let n = 1;\n"), 1, err="E0602")
        self.expect(self.ein("none.ein"), 2, err="cannot read `none.ein`")
        self.expect(self.ein("--help"), 0, "--seed-tolerances")
        result = self.ein("-", "--of", "A", "--wrt", "B", stdin=MATMUL)
        self.expect(result, 0, "agrees", "W0601")

    def test_a_program_that_does_not_run(self):
        program = "let x: [f64; n];\nlet k: [i64; n];\nlet y = sum[i](x[k[i] + 50]);\nlet dy = @y / @x;\n"
        self.check(program, 3, err="supply them with --in NAME=FILE")

    def test_every_gradient_program(self):
        def run(path):
            return path, subprocess.run([EIN, "gradcheck", path], capture_output=True, text=True, timeout=120)
        files = [p for p in sorted((ROOT / "tests/grad").rglob("*.ein"))
                 if "//~ E" not in p.read_text() and "..batch, i];" not in p.read_text()]
        self.assertGreater(len(files), 80)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for path, done in pool.map(run, files):
                if "contains no derivative" not in done.stderr:
                    with self.subTest(path.name):
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    EIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
