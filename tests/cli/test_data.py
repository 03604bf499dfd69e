"""Data as it comes: tables with quotes, gaps and words, texts, inputs of another type. Usage: test_data.py EIN"""

import json
import os
import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_files import Files  # noqa: E402


class Tables(Files):
    def load(self, text, status=0, message=None):
        self.write("x.csv", text)
        code = f"let x = load({self.quoted(self.path('x.csv'))});"
        if status:
            return self.check(["-c", code], status, "", message)
        x = self.shown(code)["x"]
        return x["dtype"], x["data"]

    def read(self, text, how="", cast="", name="x.csv"):
        """What `load` with these options gives, as it is shown."""
        self.write(name, text)
        option = f", {self.quoted(how)}" if how else ""
        x = self.shown(f"let x = load({self.quoted(name)}{option}){cast};")["x"]
        return x["dtype"], x["data"]

    def refused(self, text, message, how="", cast=""):
        self.write("x.csv", text)
        option = f", {self.quoted(how)}" if how else ""
        self.check(["-c", f'let x = load("x.csv"{option}){cast};'], 1, "", message)

    def test_quotes(self):
        self.assertEqual(self.load('"a","b, c"\n"1","2"\n3,"4" \n'), ("i32", [[1, 2], [3, 4]]))
        self.assertEqual(self.load('"two\nlines","say ""so"""\n1,2\n'), ("i32", [[1, 2]]))
        self.load('1,2\n"3,4\n', 1, "the quote in line 2 is not closed")
        self.load('1,2\n"3"x,4\n', 1, "line 2: `x` follows a quoted cell")
        self.load('"a\nb",c\n1,2\n3,x\n', 1, "line 4: `x` is not a number")

    def test_separators(self):
        self.assertEqual(self.load("a;b\n1;2\n3;4\n"), ("i32", [[1, 2], [3, 4]]))
        self.assertEqual(self.load("1\t2\n3\t4\n"), ("i32", [[1, 2], [3, 4]]))
        self.assertEqual(self.read("a\tb\n1\t2.5\n", name="x.tsv"), ("f32", [[1, 2.5]]))
        self.assertEqual(self.load('"a;b",c\n1,2\n'), ("i32", [[1, 2]]))
        self.assertEqual(self.read("a;b\n1,5;2\n-3,25;4\n", "decimal = comma"), ("f32", [[1.5, 2], [-3.25, 4]]))
        self.assertEqual(self.read("a;b,c\n1;2,3\n", "separator = comma; headings; labels"), ("i32", [[0, 3]]))
        self.load("a;b\n1,5;2\n", 1, "line 2: `1,5` is not a number")

    def test_columns(self):
        text = "year,n,rate\n2019,1,0.5\n2020,2,0.25\n"
        self.assertEqual(self.read(text, "columns = rate"), ("f32", [0.5, 0.25]))
        self.assertEqual(self.read(text, "columns = n, year"), ("i32", [[1, 2019], [2, 2020]]))
        self.assertEqual(self.read('"a, b",c\n1,2\n', 'columns = "a, b"'), ("i32", [1]))
        self.refused(text, "it has no column `rates`: its headings are `year`, `n`, `rate`", "columns = rates")
        self.refused("1,2\n", "its columns have no names", "columns = a")
        self.refused("a,a\n1,2\n", "it has two columns `a`", "columns = a")
        self.refused(text, "a csv file has no member `colums = n`", "colums = n")

    def test_missing_cells(self):
        text = "a,b\n1,\nNA,4\n"
        self.refused("a,b\n1,\n3,4\n", "line 2 has an empty cell; what it stands for is said with `missing = nan`")
        self.refused("a,b\n1,2\nNA,4\n", "line 3: `NA` is not a number; if it means that the cell is empty")
        self.assertEqual(self.read(text, "missing = nan"), ("f32", [[1, "nan"], ["nan", 4]]))
        self.assertEqual(self.read(text, "missing = -1"), ("i32", [[1, -1], [-1, 4]]))
        self.refused(text, "`missing = none` is not a number", "missing = none")
        self.refused(text, "`nan` is not a value of type i32", "missing = nan", " as i32")

    def test_labels(self):
        text = "length,species\n5.1,setosa\n6.3,virginica\n5.0,setosa\n"
        self.refused(text, "line 2: `setosa` is not a number; with `labels` the words of a column become numbers")
        self.assertEqual(self.read(text, "columns = species; labels"), ("i32", [0, 1, 0]))
        self.assertEqual(self.read(text, "labels"), ("f32", [[5.1, 0], [6.3, 1], [5, 0]]))
        self.assertEqual(self.read("5.1,b\n6.3,a\n", "labels"), ("f32", [[5.1, 1], [6.3, 0]]))
        self.refused("a\n1\nx\n", "line 3: `x` is not a number, but `1` in line 2 of the same column is one", "labels")
        self.write("x.csv", text)
        code = 'let x = load("x.csv", "labels");'
        self.check(["check", "-c", code, "--facts"], 0, "x: f32 [0: 3, 1: 2], loaded\n  labels of species: 0 setosa, 1 virginica\n")
        facts = json.loads(self.check(["check", "-c", code, "--facts", "--format", "json"], 0).stdout)
        self.assertEqual(facts["families"][0]["labels"], {"species": ["setosa", "virginica"]})

    def test_no_digits_are_lost(self):
        wide = "9007199254740993\n-9223372036854775808\n"
        self.assertEqual(self.read(wide, cast=" as [i64; n]"), ("i64", [9007199254740993, -9223372036854775808]))
        self.assertEqual(self.read("1\n2\n", cast=" as [u8; n]"), ("u8", [1, 2]))
        exact = "0.1\n1e300\n2.00000000000000004\n"
        self.write("x.csv", exact)
        for code in ("let x: [f64; n] = load(\"x.csv\");", "let x = load(\"x.csv\") as f64;",
                     "let x[n]: f64 = load(\"x.csv\");"):
            x = self.shown(code)["x"]
            self.assertEqual((x["dtype"], x["data"]), ("f64", [0.1, 1e300, 2.0]))
        self.refused("1\n2.5\n", "line 2: `2.5` is not a value of type i32", cast=" as i32")
        self.refused("1\n300\n", "line 2: `300` is not a value of type u8", cast=" as u8")
        self.write("x.csv", "16777217\n")
        source = self.check(["grad", "--all", "-c", 'let x = load("x.csv") as f64; print(x);'], 0).stdout
        self.check(["-c", source], 0, "[1] [16777217.0]\n")

    def test_utf16(self):
        pathlib.Path(self.path("x.csv")).write_bytes("1,2".encode("utf-16"))
        self.check(["-c", 'let x = load("x.csv");'], 1, "", "it is written in UTF-16; save it as UTF-8")

    def test_options_of_inputs(self):
        x = self.write("x.csv", "a;b\n1;\n2;5\n")
        self.check(["-c", "let x: [f32; n]; print(x);", "--in", f"x={x}", "--csv", "columns = b; missing = 0"], 0,
                   "[n: 2] [0.0, 5.0]\n")


class Text(Files):
    def test_bytes(self):
        pathlib.Path(self.path("book.txt")).write_bytes("Ümlaut\n".encode())
        x = self.shown('let x = load("book.txt");')["x"]
        self.assertEqual((x["dtype"], x["data"]), ("u8", list("Ümlaut\n".encode())))
        self.check(["-c", 'let x: [u8; n]; save("copy.txt", x); print(extent(n));', "--in", "x=book.txt"], 0, "8\n")
        self.assertEqual(pathlib.Path(self.path("copy.txt")).read_text(), "Ümlaut\n")
        self.write("empty.txt", "")
        self.check(["-c", 'print(len(load("empty.txt")));'], 0, "0\n")
        self.check(["-c", 'let x = [1.5]; save("o.txt", x);'], 1, "", "a text is bytes along one coordinate (u8), but the value is f32")
        self.check(["-c", 'let x = load("book.txt", "x");'], 1, "", "only .npz and .safetensors files have named tensors")


class Convert(Files):
    def test_only_when_asked(self):
        numpy.save(self.path("x.npy"), numpy.array([0.1, 1e300]))
        numpy.save(self.path("y.npy"), numpy.array([0.1, 2.0]))
        numpy.save(self.path("n.npy"), numpy.array([1, 300]))
        code = ["-c", "let x: [f32; n]; print(x);", "--in"]
        self.check([*code, "x=y.npy"], 3, "", "input `x` is declared as f32, but its value is f64; --convert rounds")
        self.check([*code, "x=y.npy", "--convert"], 0, "[n: 2] [0.1, 2.0]\n")
        self.check([*code, "x=x.npy", "--convert"], 3, "", "some of its numbers have no counterpart there")
        self.check([*code, "x=n.npy", "--convert"], 0, "[n: 2] [1.0, 300.0]\n")
        self.check(["-c", "let x: [u8; n]; print(x);", "--in", "x=n.npy", "--convert"], 3, "", "no counterpart")
        self.check(["-c", "let x: [i32; n]; print(x);", "--in", "x=n.npy", "--convert"], 0, "[n: 2] [1, 300]\n")
        self.check(["-c", "let x: [i32; n]; print(x);", "--in", "x=y.npy"], 3, "", "is declared as i32, but its value is f64")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
