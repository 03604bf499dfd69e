"""`ein doc`: the reference of modules from doc comments. Usage: test_doc.py EIN"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

EIN = None

MODULE = """// Shapes in the plane.

/// The ratio of a circle's circumference to its diameter.
pub const RATIO = 3.14159;

fn half(x) {
    x / 2.0
}

/// The area of a circle. Half of a diameter is squared.
///
/// ```ein
/// print(area(2.0));
/// assert(area(0.0) == 0.0);
/// ```
///
/// Also of a smaller one:
///
/// ```ein
/// assert(area(1.0) < 1.0);
/// ```
pub fn area(
    diameter: f32
) -> f32 {
    RATIO * half(diameter) ** 2.0
}
@fn area(diameter: f32) {
    RATIO * half(diameter) * @diameter
}

test "that is no example" {
    print("not shown");
}
"""

PAGE = """# plane

`use plane::*;`

Shapes in the plane.

## RATIO

```ein
pub const RATIO = 3.14159;
```

The ratio of a circle's circumference to its diameter.

## area

```ein
pub fn area(
    diameter: f32
) -> f32
```

The area of a circle. Half of a diameter is squared.

```ein
print(area(2.0));
assert(area(0.0) == 0.0);
```

```output
3.14159
```

Also of a smaller one:

```ein
assert(area(1.0) < 1.0);
```

Its derivative is a rule:

```ein
@fn area(diameter: f32) {
    RATIO * half(diameter) * @diameter
}
```
"""


class Doc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "plane.ein").write_text(MODULE)

    def doc(self, *args, stdin=""):
        return subprocess.run([EIN, "doc", *map(str, args)], input=stdin, capture_output=True, text=True, timeout=120,
                              cwd=self.folder, env={**os.environ, "NO_COLOR": "1"})

    def expect(self, result, status, out=None, err=""):
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        if out is not None:
            self.assertEqual(result.stdout, out)
        self.assertIn(err, result.stderr)
        return result

    def test_a_page(self):
        result = self.expect(self.doc("plane.ein"), 0, PAGE)
        self.assertEqual(result.stderr, "")

    def test_standard_input(self):
        self.expect(self.doc("-", stdin=MODULE), 0, PAGE.replace("plane", "program").replace("in the program", "in the plane"))

    def test_a_folder(self):
        (self.folder / "more.ein").write_text("/// One|two.\n///\n/// ```ein\n/// assert(one() == 1);\n/// ```\n"
                                              "pub fn one() {\n    1\n}\n")
        self.expect(self.doc("plane.ein", "more.ein", "--out", "pages"), 0,
                     "wrote 3 pages to pages; start with pages/index.md\n")
        self.assertEqual((self.folder / "pages/plane.md").read_text(), PAGE)
        index = (self.folder / "pages/index.md").read_text()
        self.assertIn("## [plane](plane.md)\n\nShapes in the plane.\n", index)
        self.assertIn("| [area](plane.md#area) | The area of a circle. |\n", index)
        self.assertIn("| [RATIO](plane.md#ratio) |", index)
        self.assertIn("| [one](more.md#one) | One\\|two. |\n", index)

    def test_json(self):
        result = self.expect(self.doc("plane.ein", "--format", "json"), 0)
        ratio, area = json.loads(result.stdout)[0]["items"]
        self.assertEqual((ratio["kind"], area["kind"]), ("const", "fn"))
        self.assertEqual(area["params"], [{"name": "diameter", "type": "f32"}])
        self.assertEqual((area["coords"], area["result"]), ([], "f32"))
        self.assertIn("@fn area", area["rule"])

    def test_defaults_and_re_exports(self):
        text = ("// Several.\n\npub use std::nn::{relu, gelu as g};\n\n/// Twice.\n///\n/// ```ein\n/// assert(twice(1) == 2);\n"
                "/// ```\npub fn twice(x, by: i32 = 2) {\n    x * by\n}\n")
        self.assertIn("Several.\n\nIt re-exports:\n\n```ein\npub use std::nn::{relu, gelu as g};\n```\n\n## twice\n\n"
                      "```ein\npub fn twice(x, by: i32 = 2)\n```\n", self.expect(self.doc("-", stdin=text), 0).stdout)
        module = json.loads(self.expect(self.doc("-", "--format", "json", stdin=text), 0).stdout)[0]
        self.assertEqual(module["items"][0]["params"],
                         [{"name": "x", "type": ""}, {"name": "by", "type": "i32", "default": "2"}])
        self.assertEqual(module["reexports"], ["pub use std::nn::{relu, gelu as g};"])
        self.expect(self.doc("-", stdin="pub use std::nn::relu;\n"), 0)

    def test_what_is_undocumented_is_named(self):
        text = "pub fn bare(x) {\n    x\n}\n\n/// Said, not shown.\npub fn said(x) {\n    x\n}\n"
        result = self.expect(self.doc("-", stdin=text), 0)
        self.assertEqual(result.stderr, "warning: `bare` is public and has no doc comment\n  at <standard input>:1\n"
                                        "warning: `said` is public and has no example\n  at <standard input>:6\n")
        self.assertIn("## bare\n\n```ein\npub fn bare(x)\n```\n\n## said\n", result.stdout)

    def test_an_example_that_fails(self):
        wrong = MODULE.replace("area(1.0) < 1.0", "area(1.0) > 1.0")
        result = self.expect(self.doc("-", stdin=wrong), 1, "", "error: an example fails: ")
        self.assertIn("at <standard input>:20:", result.stderr)
        unknown = MODULE.replace("area(1.0) < 1.0", "aria(1.0) < 1.0")
        self.expect(self.doc("-", stdin=unknown), 1, "", "E02")

    def test_bad_input(self):
        self.expect(self.doc("none.ein"), 2, "", "cannot read `none.ein`")
        self.expect(self.doc(), 2, "", "no module given: name files, or use --library")
        self.expect(self.doc("--library", "plane.ein"), 2, "", "cannot be combined")
        self.expect(self.doc("plane.ein", "--format", "json", "--out", "a"), 2, "", "--out writes pages")
        self.expect(self.doc("-", stdin="let x = 1;\n"), 2, "",
                    "nothing in `<standard input>` is public: the reference consists of its `pub fn` and `pub const`")
        self.expect(self.doc("-", stdin="pub fn f(x {\n"), 1, "", "E01")
        self.expect(self.doc("-", stdin=MODULE + "let a = missing;\n"), 1, "", "E0201")
        (self.folder / "sub").mkdir()
        (self.folder / "sub/plane.ein").write_text(MODULE)
        self.expect(self.doc("plane.ein", "sub/plane.ein", "--out", "pages"), 2, "",
                    "two pages would be called `plane.md`")
        (self.folder / "file").write_text("")
        self.expect(self.doc("plane.ein", "--out", "file/pages"), 2, "", "cannot write `file/pages/plane.md`")


if __name__ == "__main__":
    EIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
