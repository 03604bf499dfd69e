"""The pages of `ein explain --html` and `ein audit --html`: every name on them is defined on them, every link leads somewhere,
the source stands beside, they have a light and a dark form, and nothing is wider than a window. (`make pages-check` measures
that in Chromium.) Usage: test_pages.py EIN"""

import html.parser
import os
import pathlib
import re
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "meta")]
import autodiff_pages  # noqa: E402
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NORMALISED = """let x: [f32; b, f];
let scale: [f32; f];
let mu[f] = mean[b](x[b, f]);
let var[f] = mean[b]((x[b, f] - mu[f]) ** 2.0);
let y[b, f] = scale[f] * (x[b, f] - mu[f]) / sqrt(var[f] + 1e-5);
let loss = sum[b, f](exp(y[b, f]) * y[b, f]);
let dx = @loss / @x;
let dscale = @loss / @scale;
"""
EXAMPLES = ["mlp", "lstm", "kalman", "transformer", "logistic_regression"]
# What is read at an address in the steps and is no value: functions and reductions of the language.
BUILTIN = {"sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "count", "mean"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open = [], [], []
        self.unlinked = []  # texts of code that are no links
        self.source = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        had = dict(attributes)
        if "id" in had:
            self.ids.append(had["id"])
        if tag == "a":
            self.links.append(had["href"])
        if tag not in ("meta", "rect", "path"):
            self.open.append((tag, had.get("class", ""), had.get("id", "")))

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        classes = [c for _, c, _ in self.open]
        if "code" in classes and self.open[-1][0] != "a":
            self.unlinked.append(data)
        if self.open and self.open[-1][:2] == ("span", "") and any(i.startswith("line-") for _, _, i in self.open):
            self.source.append(data)


class Pages(Cli):
    def page(self, verb, program, *args, folder=None):
        made = self.path("page.html")
        done = self.ein(verb, str(program), *args, "--html", made, cwd=folder)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return pathlib.Path(made).read_text()

    def good(self, text, program):
        page = Page(text)
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual([link for link in page.links if link[1:] not in set(page.ids)], [])
        self.assertEqual("".join(page.source).rstrip("\n"), pathlib.Path(program).read_text().rstrip("\n"))
        for code in page.unlinked:
            for name in re.findall(r"\b([A-Za-z_]\w*)\[", code) + re.findall(r"\bd_\w+_d_\w+", code):
                self.assertIn(name, BUILTIN, f"{name} is not defined on the page: {code}")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("width=device-width", text)
        self.assertNotRegex(text, r"overflow-x|<script|https?://(?!www.w3.org)")
        for width in re.findall(r'<svg width="(\d+)"', text):
            self.assertLessEqual(int(width), 560)
        return page

    def test_explanations(self):
        program = self.write("normalised.ein", NORMALISED)
        text = self.page("explain", program)
        self.good(text, program)
        self.assertIn("@loss / @x", text)
        self.assertIn("@loss / @scale", text)
        self.assertIn("a part of an expression", text)
        self.assertRegex(text, r'the derivative of .*: the sum of steps <a href="#d1-step-\d+">')
        # A step and the line that it comes from are highlighted together.
        self.assertRegex(text, r"body:has\(#d1-step-1:hover\) #line-6, body:has\(#line-6:hover\) #d1-step-1")

    def test_no_path(self):
        program = self.write("a.ein", "let x: f32;\nlet w: f32;\nlet y = x * 2.0;\n")
        self.assertIn("the derivative is zero", self.page("explain", program, "--of", "y", "--wrt", "w"))

    def test_examples(self):
        folder = ROOT / "examples"
        for name in EXAMPLES:
            with self.subTest(name):
                self.good(self.page("explain", folder / f"{name}.ein", folder=folder), folder / f"{name}.ein")
                self.good(self.page("audit", folder / f"{name}.ein", folder=folder), folder / f"{name}.ein")

    def test_cases_of_the_documentation(self):
        cases = [entry for _, entries in autodiff_pages.PAGES.values() for entry in entries]
        self.assertGreater(len(cases), 20)
        for _, _, name, of, wrt, _ in cases:
            [program] = (ROOT / "tests" / "grad").glob(f"{name}.ein")
            with self.subTest(name):
                self.good(self.page("explain", program, "--of", of, "--wrt", wrt), program)
                self.good(self.page("audit", program), program)

    def test_audit(self):
        program = self.write("a.ein", "let x: [f32; b, f];\nlet bias: [f32; f];\nlet y[b, f] = x[b, f] + bias[f];\n")
        text = self.page("audit", program)
        self.good(text, program)
        self.assertIn("is repeated along <code>b</code>", text)
        self.assertRegex(text, r'<a href="#line-3">line 3</a>')
        square = self.write("s.ein", "let A: [f32; 4, 4];\nlet v[i in 0..4] = sum[k](A[i, k]);\nlet w[i, j] = A[i, j] * v[j];\n")
        text = self.page("audit", square)
        self.assertIn("Looks unintended", text)
        self.check(["audit", square, "--deny", "--html", self.path("p.html")], 1)
        self.check(["audit", program, "--html", self.path("no/such/p.html")], 2, err="cannot write")
        none = self.write("n.ein", "let x: [f32; b];\nlet y[b] = x[b] + x[b];\n")
        self.assertIn("There are none", self.page("audit", none))

    def test_texts_are_escaped(self):
        program = self.write("e.ein", '// <script>alert("x")</script> & more\nlet x: f32;\nlet y = x * x;\nlet dy = @y / @x;\n')
        self.assertNotIn("<script>", self.page("explain", program))
        self.assertIn("&lt;script&gt;", self.page("audit", program))


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
