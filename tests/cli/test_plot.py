"""Pictures and other texts that programs write: well-formed, and with every point. Usage: test_plot.py EIN"""

import os
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from tensor_files import Files  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


class Plots(Files):
    def drawn(self, code, *args):
        out = pathlib.Path(self.path("o.svg"))
        out.unlink(missing_ok=True)
        self.check(["-c", code.replace("OUT", self.quoted(out)), *args], 0, "")
        return xml.fromstring(out.read_text())

    def group(self, svg, name):
        return next(g for g in svg.iter(SVG + "g") if g.get("class") == name)

    def texts(self, svg):
        return [t.text for t in svg.iter(SVG + "text")]


class Line(Plots):
    def points(self, code, more="", *args):
        """How many points each path has, and how many parts it is drawn in."""
        svg = self.drawn(f'use std::plot::line; {more} line(OUT, {code}, "a < b & c", "x", "y");', *args)
        self.assertIn("a < b & c", self.texts(svg))
        out = []
        for path in self.group(svg, "series"):
            d = path.get("d")
            self.assertRegex(d, r"^(M[\d.]+ [\d.]+h0(L[\d.]+ [\d.]+)*)*$")
            for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", d):
                self.assertTrue(70 <= float(x) <= 620 and 40 <= float(y) <= 340, d)
            out.append((len(re.findall("[ML]", d)), d.count("M")))
        return out

    def test_series(self):
        for backend in ("ref", "native"):
            self.assertEqual(self.points("[3.0, 1.0, 2.0]", "", "--backend", backend), [(3, 1)])
            self.assertEqual(self.points("y", "let y[k in 0..3, t in 0..40] = sin(0.1 * ((k + 1) * t) as f32);",
                                         "--backend", backend), [(40, 1)] * 3)

    def test_numbers_that_cannot_be_drawn(self):
        self.assertEqual(self.points("[1.0, nan, 2.0, 3.0, 1.0 / 0.0]", "let nan = 0.0 / 0.0;"), [(3, 2)])
        self.assertEqual(self.points("[0.0 / 0.0, 0.0 / 0.0]"), [(0, 0)])
        self.assertEqual(self.points("y", "let y[t in 0..0] = 1.0;"), [(0, 0)])
        self.assertEqual(self.points("y", "let y[k in 0..0, t in 0..3] = 1.0;"), [])
        for value in ("0.0", "5.0", "-1e30", "1e-30"):
            self.assertEqual(self.points("y", f"let y[t in 0..4] = {value};"), [(4, 1)])
        self.assertEqual(self.points("[7.0]"), [(1, 1)])
        self.assertEqual(self.points("[-3e38, 3e38]"), [(2, 1)])
        self.assertEqual(self.points("y", "let y: [f64; n] = [-1.5e308, 1.5e308, 0.0];"), [(3, 1)])

    def test_ticks_are_round(self):
        svg = self.drawn('use std::plot::line_over; let x = [0.0, 1.0]; line_over(OUT, x, [-0.2, 0.7], "", "", "");')
        texts = self.texts(svg)
        for label in ("0", "0.2", "0.4", "0.6", "0.8", "1", "-0.2"):
            self.assertIn(label, texts)
        self.assertNotIn("-0", texts)


class Heatmap(Plots):
    def cells(self, code, more=""):
        svg = self.drawn(f'use std::plot::heatmap; {more} heatmap(OUT, {code}, "z");')
        self.assertEqual(len(self.group(svg, "scale")), 60)
        fills = [c.get("fill") for c in self.group(svg, "cells")]
        for fill in fills:
            self.assertTrue(all(0 <= int(v) <= 255 for v in re.fullmatch(r"rgb\((\d+),(\d+),(\d+)\)", fill).groups()))
        return fills

    def test_cells(self):
        fills = self.cells("[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]")
        self.assertEqual(len(set(fills)), 6)
        self.assertEqual(fills[0], "rgb(71,1,85)")
        fills = self.cells("[[0.0, nan], [1.0, 1.0 / 0.0]]", "let nan = 0.0 / 0.0;")
        self.assertEqual([f == "rgb(204,204,204)" for f in fills], [False, True, False, True])
        self.assertEqual(len(self.cells("z", "let z[r in 0..3, c in 0..2] = 4.0;")), 6)
        self.assertEqual(self.cells("z", "let z[r in 0..0, c in 0..2] = 4.0;"), [])
        self.assertEqual(len(self.cells("z", "let z[r in 0..1, c in 0..2] = 0.0 / 0.0;")), 2)


class Image(Plots):
    def fills(self, code):
        svg = self.drawn(f"use std::plot::image; let a = {code}; image(OUT, a);")
        return [c.get("fill") for c in self.group(svg, "cells")], svg

    def test_grey_and_colours(self):
        fills, svg = self.fills("[[0.0, 0.5, 2.0], [1.0, -1.0, 0.25]]")
        self.assertEqual(fills, [f"hsl(0,0%,{v}%)" for v in ("0.0", "50.0", "100.0", "100.0", "0.0", "25.0")])
        self.assertEqual((svg.get("width"), svg.get("height")), ("24", "16"))
        fills, svg = self.fills("[[[1.0, 0.5, 0.0], [0.0, 0.0, 0.0 / 0.0]]]")
        self.assertEqual(fills, ["rgb( 100.0% 50.0% 0.0%)", "rgb( 0.0% 0.0% 0.0%)"])


class Texts(Files):
    def test_saved_as_they_are(self):
        out = pathlib.Path(self.path("o.txt"))
        code = f'let x = [1, 2]; save({self.quoted(out)}, "a\\n{{join[i]("{{x[i]}},")}}");'
        for args in ((), ("--backend", "ref"), ("-O0",)):
            out.unlink(missing_ok=True)
            self.check(["-c", code, *args], 0, "")
            self.assertEqual(out.read_text(), "a\n1,2,")
        self.check(["-c", f'save({self.quoted(self.path("no/x.txt"))}, "a");'], 3, "", "no such folder")

    def test_in_a_built_program(self):
        out, exe = pathlib.Path(self.path("o.txt")), self.path("a.out")
        program = self.write("a.ein", f'let x: [f32; n];\nprint(join[i]("{{x[i]:.1f}} "));\n'
                             f'save({self.quoted(out)}, join[i]("{{x[i]}},"\n    where x[i] > 1.0));\n')
        self.check(["build", program, "--emit", "exe", "-o", exe], 0)
        x = self.write("x.csv", "0.5\n1.5\n2.5\n")
        done = test_cli.subprocess.run([exe, f"x={x}"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "0.5 1.5 2.5 \n"), done.stderr)
        self.assertEqual(out.read_text(), "1.5,2.5,")

    def test_printed_source_means_the_same(self):
        code = ('let x[i, j] = [[1.0, -2.0], [3.0, 4.0]];\nlet low = x[0, 1];\n'
                'print("{join[i]("{i}: {join[j]("{{{x[i, j]:.1f}}} " where x[i, j] > 0.0)}\\n")}{if low < 0.0 { "a" } else { "b" }}");\n')
        printed = self.check(["grad", self.write("a.ein", code)], 0).stdout
        again = self.check(["grad", self.write("b.ein", printed)], 0).stdout
        self.assertEqual(again, printed)
        want = self.check([self.path("a.ein")], 0).stdout
        self.assertEqual(want, "0: {1.0} \n1: {3.0} {4.0} \na\n")
        self.check([self.path("b.ein")], 0, want)

    def test_the_library(self):
        out = pathlib.Path(self.path("o.csv"))
        self.check(["-c", f'use std::io::save_table; let t[r, c] = [[1.5, 2.0], [3.0, -4.0]];'
                    f'save_table({self.quoted(out)}, "a,b", t);'], 0, "")
        self.assertEqual(out.read_text(), "a,b\n1.5,2.0\n3.0,-4.0\n")
        image = pathlib.Path(self.path("o.pgm"))
        self.check(["-c", f"use std::io::{{save_image}}; let a[r, c] = [[0.0, 0.5, 1.5]]; save_image({self.quoted(image)}, a);"],
                   0, "")
        self.assertEqual(image.read_bytes(), b"P5\n3 1\n255\n\x00\x80\xff")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
