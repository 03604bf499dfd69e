"""The runner of file tests can fail: small files with wrong expectations. Usage: run_test.py EIN"""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import run

EIN = None

GOOD = {
    "out": "print(1 + 1);\n//= out: 2\n",
    "block": "print([1, 2]);\nprint(3);\n//= out:\n//= [2] [1, 2]\n//= 3\n",
    "error": "let x = y;  //~ E0201 unknown name\n",
    "below": "let x = y;\n//~^ E0201 unknown name\n",
    "warning": "let x = [1.0, 2.0]; print(sum[k](x[k+1]));  //~ W0302 never read\n//= out: 2.0\n",
    "input": "//! in x = [[1.5], [2.5]] : f64\n"
             "let x: [f64; a, b];\nprint(sum[a, b](x));\n//= out: 4.0\n",
    "empty": "//! in x = [] : i32[0, 3]\nlet x: [i32; a, b];\n"
             "print(x);\n//= out:\n//= [a: 0, b: 3]\n//= []\n",
    "near": "print(1.0 / 3.0);\n//= out: 0.33333\n//! tolerance: 1e-4\n",
    "fails": "let i: i32; print([1, 2][i]);\n//! args: --set i=5\n//! fails: E0803 5\n",
    "grad": "//! in x = [1.0, 2.0] : f64\nlet x: [f64; n]; let l = sum[i](x[i] ** 3);\n"
            "let g = @l / @x;\n//! grad: g = l / x\n",
}
BAD = {
    "nothing": "print(1);\n",
    "wrong_out": "print(1 + 1);\n//= out: 3\n",
    "missing_line": "print(1);\n//= out:\n//= 1\n//= 2\n",
    "unexpected_error": "let x = y;\n//= out: 1\n",
    "wrong_code": "let x = y;  //~ E0202 unknown name\n",
    "wrong_text": "let x = y;  //~ E0201 unknown function\n",
    "wrong_line": "\n\nlet x = y;\n//~^^ E0201 unknown name\n",
    "second_error": "let x = y;  //~ E0201 unknown name\nlet z = w;\n",
    "missing_warning": "print(1);  //~ W0302 never read\n//= out: 1\n",
    "unexpected_warning": "let x = [1.0, 2.0]; print(sum[k](x[k+1]));\n//= out: 2.0\n",
    "no_fragment": "let x = y;  //~ E0201\n",
    "far": "print(1.0 / 3.0);\n//= out: 0.33333\n//! tolerance: 1e-9\n",
    "status": "print(1);\n//= out: 1\n//! exit: 3\n",
    "no_failure": "print(1);\n//= out: 1\n//! fails: E0803 bounds\n",
    "other_failure": "let i: i32; print([1, 2][i]);\n//! args: --set i=5\n//! fails: E0803 missing\n",
    "directive": "print(1);\n//= out: 1\n//! output: 1\n",
    "route": "print(1);\n//= out: 1\n//! routes: fast\n",
    "no_fallback": "print(1);\n//= out: 1\n//! falls back: f16\n",
    "grad": "//! in x = [1.0, 2.0] : f64\nlet x: [f64; n]; let l = sum[i](x[i] ** 3);\n"
            "let g = @l / @x + 0.01;\n//! grad: g = l / x\n",
}


class Runner(unittest.TestCase):
    def problems(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.ein"
            path.write_text(text)
            return run.run_test(EIN, path)[0]

    def main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()):
            return run.main([EIN, *arguments])

    def test_good_files_pass(self):
        for name, text in GOOD.items():
            with self.subTest(name):
                self.assertEqual(self.problems(text), [])

    def test_bad_files_fail(self):
        for name, text in BAD.items():
            with self.subTest(name):
                self.assertNotEqual(self.problems(text), [])

    def test_update_rewrites_output_only(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.ein"
            path.write_text("print(1);\n//= out: 7\n// a comment\n")
            self.assertEqual(self.main(str(path), "--update"), 0)
            self.assertEqual(path.read_text(), "print(1);\n//= out: 1\n// a comment\n")
            wrong = "let x = y;  //~ E0202 twice\n"
            path.write_text(wrong)
            self.assertEqual(self.main(str(path), "--update"), 1)
            self.assertEqual(path.read_text(), wrong)

    def test_no_files_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.main(folder), 1)


if __name__ == "__main__":
    EIN = sys.argv.pop(1)
    unittest.main()
