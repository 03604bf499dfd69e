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

    def test_many_cells(self):
        # 50,001 cells are 1924 groups of 26, the last one of 3; a group of which no number can be drawn is a gap.
        code = "let y[k in 0..2, t in 0..50001] = if t == 12345 { 5.0 } else { if k == 1 && t / 26 == 7 { 0.0 / 0.0 } else { 0.0 } };"
        self.assertEqual(self.points("y", code), [(3848, 1), (3846, 2)])
        svg = self.drawn(f'use std::plot::line; {code} line(OUT, y, "", "", "");')
        high = [(float(x), float(y)) for path in self.group(svg, "series")
                for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d")) if float(y) < 100]
        self.assertEqual(len(high), 2)  # the one cell that differs, in both series
        for x, y in high:
            self.assertAlmostEqual((x - 70) / 550, 12345 / 50000, delta=0.001)

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


class Chart(Plots):
    HEAD = "use std::plot::{plot, plot_over};\n"

    def chart(self, code, *args):
        return self.drawn(self.HEAD + code, *args)

    def series(self, svg):
        found = [g for g in svg.iter(SVG + "g") if (g.get("class") or "").startswith("series")]
        self.assertEqual(len(found), 1)
        return found[0]

    def ticks(self, svg):
        """The numbers at both axes, as written."""
        texts = [(t.get("class"), t.text) for t in svg.iter(SVG + "text")]
        number = re.compile(r"-?\d")
        return ([t for c, t in texts if c == "x" and number.match(t or "")], [t for c, t in texts if c == "left"])

    def legend(self, svg):
        return [t.text for t in self.group(svg, "legend").iter(SVG + "text")]

    def test_several_series_and_their_names(self):
        code = ("let train[step in 0..50] = exp(-0.1 * (step as f32));\nlet test[step in 0..30] = 0.5 + 0.01 * (step as f32);\n"
                'plot(OUT, { train, test }, title = "a < b", y_label = "loss");')
        for backend in ("ref", "native"):
            svg = self.chart(code, "--backend", backend)
            self.assertEqual(self.legend(svg), ["train", "test"])
            groups = list(self.series(svg))
            self.assertEqual([g.get("class") for g in groups], ["c0", "c1"])
            self.assertEqual([len(re.findall("[ML]", g[0].get("d"))) for g in groups], [50, 30])
            texts = self.texts(svg)
            for word in ("a < b", "step", "loss"):
                self.assertIn(word, texts)
            self.assertNotIn("note", [t.get("class") for t in svg.iter(SVG + "text")])

    def test_one_array_has_no_legend(self):
        svg = self.chart("let y[k in 0..3, week in 0..5] = (k * week) as f32;\nplot(OUT, y);")
        self.assertEqual(self.legend(svg), [])
        self.assertEqual(len(self.series(svg)[0]), 3)
        self.assertIn("week", self.texts(svg))

    def test_scatter(self):
        svg = self.chart('let x[i] = [1.0, 2.0, 4.0];\nlet y[i] = [1.0, 0.0 / 0.0, 3.0];\nplot_over(OUT, x, { y, z: x }, kind = "scatter", x_label = "x");')
        self.assertEqual(self.series(svg).get("class"), "series scatter")
        self.assertEqual([[(c.get("cx"), c.get("cy")) for c in g] for g in self.series(svg)],
                         [[("70.00", "340.00"), ("510.00", "140.00")],
                          [("70.00", "340.00"), ("216.67", "240.00"), ("510.00", "40.00")]])
        self.assertIn("1 not shown", self.texts(svg))

    def test_bars_stand_on_zero_side_by_side(self):
        svg = self.chart('let a[k] = [1.0, -1.0];\nlet b[k] = [2.0, 0.5];\nplot(OUT, { a, b }, kind = "bars");')
        boxes = [[[float(r.get(n)) for n in ("x", "y", "width", "height")] for r in g] for g in self.series(svg)]
        zero = 240.0  # from -1 at 340 to 2 at 40
        self.assertEqual([[(y, y + h) for _, y, _, h in g] for g in boxes],
                         [[(140.0, zero), (zero, 340.0)], [(40.0, zero), (190.0, zero)]])
        (a0, a1), (b0, b1) = boxes
        self.assertAlmostEqual(a0[0] + a0[2], b0[0], 1)  # they touch
        self.assertGreater(a1[0], b0[0] + b0[2])  # and leave room for the next place
        self.assertTrue(70 <= a0[0] and b1[0] + b1[2] <= 510)

    def test_round_ticks(self):
        for low, high, want in ((0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]), (-3.0, 12.0, ["0", "5", "10"]),
                                (1e6, 3e6, ["1e+06", "1.5e+06", "2e+06", "2.5e+06", "3e+06"]), (0.0013, 0.0019, None)):
            svg = self.chart(f"let y[i] = [{low}, {high}];\nplot(OUT, y);")
            found = self.ticks(svg)[1]
            if want:
                self.assertEqual(found, want)
            self.assertTrue(2 <= len(found) <= 8, found)
            for text in found:
                digits = f"{abs(float(text)):.5e}".split("e")[0].rstrip("0")
                self.assertLessEqual(len(digits.replace(".", "")), 3, found)

    def test_logarithmic_axes(self):
        svg = self.chart("let x[i] = [1.0, 100.0, 10000.0];\nlet y[i] = [0.001, 1.0, 1000.0];\nplot_over(OUT, x, y, log_x = true, log_y = true);")
        self.assertEqual(self.ticks(svg), (["1", "10", "100", "1000", "10000"],
                                           ["0.001", "0.01", "0.1", "1", "10", "100", "1000"]))
        points = re.findall(r"[ML]([\d.]+) ([\d.]+)", self.series(svg)[0][0].get("d"))
        self.assertEqual(points, [("70.00", "340.00"), ("345.00", "190.00"), ("620.00", "40.00")])
        svg = self.chart("let y[i] = [2.0, 50.0];\nplot(OUT, y, log_y = true);")
        self.assertEqual(self.ticks(svg)[1], ["2", "5", "10", "20", "50"])
        svg = self.chart("let y[i] = [3.0, 4.0];\nplot(OUT, y, log_y = true);")
        self.assertEqual(self.ticks(svg)[1], ["1", "2", "5", "10"])
        svg = self.chart("let y: [f64; i] = [1e-30, 1e30];\nplot(OUT, y, log_y = true);")
        self.assertTrue(3 <= len(self.ticks(svg)[1]) <= 8)

    def test_what_a_logarithmic_axis_cannot_show_is_a_gap(self):
        svg = self.chart("let y[i] = [1.0, 10.0, -1.0, 100.0, 0.0, 5.0];\nplot(OUT, y, log_y = true);")
        d = self.series(svg)[0][0].get("d")
        self.assertEqual((len(re.findall("[ML]", d)), d.count("M")), (4, 3))
        self.assertIn("2 not shown", self.texts(svg))
        svg = self.chart("let y[i] = [-1.0, -2.0];\nplot(OUT, y, log_y = true);")
        self.assertEqual(self.series(svg)[0][0].get("d"), "")

    def test_nothing_to_draw(self):
        for kind, marks in (("line", 1), ("scatter", 0), ("bars", 0)):
            svg = self.chart(f'let y[t in 0..0] = 1.0;\nplot(OUT, y, kind = "{kind}");')
            self.assertEqual(len(self.series(svg)[0]), marks)
            svg = self.chart(f'let y[t in 0..2] = 0.0 / 0.0;\nplot(OUT, {{ y, z: y }}, kind = "{kind}");')
            self.assertEqual(len(self.series(svg)), 2)
            svg = self.chart(f'let y[t in 0..1] = 5.0;\nplot(OUT, y, kind = "{kind}");')
            self.assertEqual(len(self.series(svg)[0]), 1)

    def test_wrong_arguments(self):
        many = ", ".join(f"s{k}: y" for k in range(21))
        for call, message in (('plot("o.svg", y, kind = "pie");', 'is \"line\", \"scatter\" or \"bars\"'.replace("\\", "")),
                              (f'plot("o.svg", {{ {many} }});', "at most 20 series"),
                              ('plot_over("o.svg", [1.0, 2.0], y);', "extent"), ('plot("o.svg", y, log = true);', "log")):
            done = self.ein("-c", self.HEAD + "let y[i] = [1.0, 2.0, 3.0];\n" + call)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


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


    def test_squares_and_axes(self):
        code = "use std::plot::heatmap; let z[row in 0..4, col in 0..12] = (row * col) as f32; heatmap(OUT, z{});"
        svg = self.drawn(code.format(", equal = true"))
        self.assertEqual({(c.get("width"), c.get("height")) for c in self.group(svg, "cells")}, {("40.00", "40.00")})
        texts = [(t.get("class"), t.text) for t in svg.iter(SVG + "text")]
        for text in (("x", "0"), ("x", "5"), ("x", "10"), ("left", "0"), ("left", "3"), ("x", "col"), ("y", "row")):
            self.assertIn(text, texts)
        svg = self.drawn(code.format(""))
        self.assertEqual({(c.get("width"), c.get("height")) for c in self.group(svg, "cells")}, {("40.00", "75.00")})


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
