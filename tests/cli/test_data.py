"""Data as it comes: tables with quotes, gaps and words, PNG images, texts, inputs of another type. Usage: test_data.py EIN"""

import json
import os
import pathlib
import struct
import sys
import unittest
import zlib

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import png  # noqa: E402
import test_cli  # noqa: E402
from tensor_files import DTYPES, Files  # noqa: E402


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
        option = f", {how}" if how else ""
        code = f"let x = load({self.quoted(name)}{option}){cast};"
        x = self.shown(code)["x"]
        printed = self.check(["grad", "--all", "-c", code + " print(x);"], 0).stdout  # means the same
        self.assertEqual(self.shown(printed)["x"]["data"], x["data"])
        return x["dtype"], x["data"]

    def refused(self, text, message, how="", cast=""):
        self.write("x.csv", text)
        option = f", {how}" if how else ""
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
        self.assertEqual(self.read("a;b\n1,5;2\n-3,25;4\n", 'decimal = ","'), ("f32", [[1.5, 2], [-3.25, 4]]))
        self.assertEqual(self.read("a;b,c\n1;2,3\n", 'separator = ",", headings = true, labels = true'), ("i32", [[0, 3]]))
        self.load("a;b\n1,5;2\n", 1, "line 2: `1,5` is not a number")

    def test_columns(self):
        text = "year,n,rate\n2019,1,0.5\n2020,2,0.25\n"
        self.assertEqual(self.read(text, 'columns = ["rate"]'), ("f32", [0.5, 0.25]))
        self.assertEqual(self.read(text, 'columns = ["n", "year"]'), ("i32", [[1, 2019], [2, 2020]]))
        self.assertEqual(self.read('"a, b",c\n1,2\n', 'columns = ["a, b"]'), ("i32", [1]))
        self.refused(text, "it has no column `rates`: its headings are `year`, `n`, `rate`", 'columns = "rates"')
        self.refused("1,2\n", "its columns have no names", 'columns = ["a"]')
        self.refused("a,a\n1,2\n", "it has two columns `a`", 'columns = ["a"]')
        self.refused(text, "`load` has no parameter `colums`", 'colums = ["n"]')
        self.refused(text, "did you mean `columns`?", 'colums = ["n"]')
        for value in ("n", "[]", "3", '["n", 3]', '["{1}"]', "true"):
            self.refused(text, "`columns` must be an array of headings, such as `[\"length\", \"width\"]`",
                         f"columns = {value}")
        self.refused(text, "`load` gets `columns` twice", 'columns = ["n"], columns = ["year"]')
        self.refused(text, "load(file, member, columns = …", 'rows = ["n"]')

    def test_other_options(self):
        for option, wanted in (("missing = true", "`missing` must be a number or `nan`"),
                               ('missing = "x"', "`missing` must be a number or `nan`"),
                               ("labels = 1", "`labels` must be `true` or `false`"),
                               ('headings = "no"', "`headings` must be `true` or `false`"),
                               ('separator = "::"', '`separator` must be `","`, `";"` or `"\\t"`'),
                               ('decimal = ";"', '`decimal` must be `","` or `"."`')):
            self.refused("1,2\n", wanted, option)
        self.assertEqual(self.read("1,2\n", "headings = false"), ("i32", [[1, 2]]))
        self.assertEqual(self.read("1,2\t3\n", 'headings = false, separator = "\\t", decimal = ","'), ("f32", [[1.2, 3]]))
        self.assertEqual(self.read("1;2,5\n", 'headings = false, separator = ";", decimal = ","'), ("f32", [[1, 2.5]]))
        numpy.save(self.path("x.npy"), self.array())
        self.check(["-c", 'let x = load("x.npy", labels = true);'], 1, "", "only a csv file has options")

    def test_options_in_one_string(self):
        self.refused("1,2\n", "a csv file has no members", '"header"')
        self.refused("1,2\n", 'load("…", columns = ["a", "b"], missing = nan)', '"header"')
        self.refused("1,2\n", 'load("…", headings = true, columns = ["a", "b c"], labels = true, missing = -1)',
                     '"columns = a, b c; missing = -1; labels; headings"')

    def test_missing_cells(self):
        text = "a,b\n1,\nNA,4\n"
        self.refused("a,b\n1,\n3,4\n", "line 2 has an empty cell; say what it stands for with `missing = nan`")
        self.refused("a,b\n1,2\nNA,4\n", "line 3: `NA` is not a number; if it means that the cell is empty")
        self.assertEqual(self.read(text, "missing = nan"), ("f32", [[1, "nan"], ["nan", 4]]))
        self.assertEqual(self.read(text, "missing = -1"), ("i32", [[1, -1], [-1, 4]]))
        self.refused(text, "`missing` must be a number or `nan`", "missing = none")
        self.refused(text, "`nan` is not a value of type i32", "missing = nan", " as i32")

    def test_labels(self):
        text = "length,species\n5.1,setosa\n6.3,virginica\n5.0,setosa\n"
        self.refused(text, "line 2: `setosa` is not a number; with `labels = true` the words of a column become numbers")
        self.assertEqual(self.read(text, 'columns = ["species"], labels = true'), ("i32", [0, 1, 0]))
        self.assertEqual(self.read(text, "labels = true"), ("f32", [[5.1, 0], [6.3, 1], [5, 0]]))
        self.assertEqual(self.read("5.1,b\n6.3,a\n", "labels = true"), ("f32", [[5.1, 1], [6.3, 0]]))
        self.refused("a\n1\nx\n", "line 3: `x` is not a number, but `1` in line 2 of the same column is one", "labels = true")
        self.write("x.csv", text)
        code = 'let x = load("x.csv", labels = true);'
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


class Png(Files):
    def load(self, raw):
        pathlib.Path(self.path("x.png")).write_bytes(raw)
        x = self.shown('let x = load("x.png");')["x"]
        return numpy.array(x["data"], DTYPES[x["dtype"]]).reshape(x["shape"])

    def refused(self, raw, message, status=1):
        pathlib.Path(self.path("x.png")).write_bytes(raw)
        self.check(["-c", 'let x = load("x.png"); print(x);'], status, "", message)
        self.check(["-c", "let x: [u8; y, x]; print(x);", "--in", "x=x.png"], 3, "", message)

    def samples(self, shape, bits=8):
        return numpy.random.default_rng(sum(shape)).integers(0, 2 ** bits, shape)

    def same(self, got, want):
        self.assertEqual(got.tolist(), want.tolist())

    def test_every_colour_and_depth(self):
        for colour, n in ((0, 1), (4, 2), (2, 3), (6, 4)):
            for bits in (8, 16):
                for interlaced in (False, True):
                    with self.subTest((colour, bits, interlaced)):
                        want = self.samples((7, 5) if n == 1 else (7, 5, n), bits)
                        got = self.load(png.written(want, colour, bits, interlaced=interlaced, pieces=4))
                        self.assertEqual(got.dtype, numpy.dtype("i4" if bits == 16 else "u1"))
                        self.same(got, want)

    def test_small_interlaced_images(self):
        for height in (1, 2, 3):
            for width in (1, 2, 5, 9):
                want = self.samples((height, width, 3))
                self.same(self.load(png.written(want, 2, interlaced=True)), want)

    def test_each_filter(self):
        want = self.samples((6, 4, 3))
        for kind in range(5):
            self.same(self.load(png.written(want, 2, filters=(kind,))), want)

    def test_few_bits(self):
        for bits in (1, 2, 4):
            want = self.samples((3, 11), bits)
            self.same(self.load(png.written(want, 0, bits)), want * 255 // (2 ** bits - 1))

    def test_palettes(self):
        palette = self.samples((16, 3)).astype("u1")
        for bits in (1, 2, 4, 8):
            at = self.samples((3, 7), bits) % 16
            colours = palette[:2 ** bits]
            self.same(self.load(png.written(at, 3, bits, palette=colours.tobytes())), colours[at])
            alpha = numpy.full(16, 255)
            alpha[:2] = (0, 100)
            got = self.load(png.written(at, 3, bits, palette=colours.tobytes(), transparent=(0, 100)))
            self.same(got, numpy.concatenate([colours[at], alpha[at][..., None]], -1))

    def test_a_transparent_colour(self):
        grey = numpy.array([[1, 2], [3, 1]])
        self.same(self.load(png.written(grey, 0, transparent=(0, 1))), numpy.array([[[1, 0], [2, 255]], [[3, 255], [1, 0]]]))
        pixel = numpy.array([[[1, 2, 3], [1, 2, 4]]]) * 1000
        key = struct.pack(">HHH", 1000, 2000, 3000)
        self.same(self.load(png.written(pixel, 2, 16, transparent=key)), numpy.array([[[1000, 2000, 3000, 0], [1000, 2000, 4000, 65535]]]))

    def test_goes_and_comes(self):
        for n in (1, 2, 3, 4):
            for bits, type_ in ((8, "u8"), (16, "i32")):
                want = self.samples((5, 6, n), bits).astype(DTYPES[type_])
                numpy.save(self.path("x.npy"), want)
                self.check(["-c", f'let x: [{type_}; y, x, c]; save("o.png", x);', "--in", "x=x.npy"], 0, "")
                wrote = pathlib.Path(self.path("o.png")).read_bytes()
                self.same(png.read(wrote), want[..., 0] if n == 1 else want)
                self.same(self.load(wrote), want[..., 0] if n == 1 else want)
        self.check(["-c", 'save("o.png", [[0, 255], [128, 1]] as u8);'], 0, "")
        self.same(png.read(pathlib.Path(self.path("o.png")).read_bytes()), numpy.array([[0, 255], [128, 1]]))

    def test_a_gradient_is_compressed(self):
        self.check(["-c", 'let x[i in 0..256, j in 0..256] = (i + j) as i32 as u8; save("o.png", x);'], 0, "")
        self.assertLess(os.path.getsize(self.path("o.png")), 2000)

    def test_what_is_no_image(self):
        for code, message in (("[[0.5]]", "write `(255.0 * x) as u8` if it goes from 0 to 1"),
                              ("[[1]] as i16", "an image holds u8, or with 16 bits i32 from 0 to 65535, but the value is i16"),
                              ("[1] as u8", "the value has 1"),
                              ("[[[1, 2, 3, 4, 5]]] as u8", "or 4 (with alpha), not 5"),
                              ("[[70000]]", "the sample 70000 in row 0 does not fit in 16 bits"),
                              ("[[1], [-1]]", "the sample -1 in row 1")):
            self.check(["-c", f"let x = {code};", "--out", "x=o.png"], 3, "", message)
        self.check(["-c", "let x[i in 0..0, j in 0..2] = 1 as u8;", "--out", "x=o.png"], 3, "", "at least one pixel")

    def test_damage(self):
        image = self.samples((4, 3))
        whole = png.written(image, 0)
        head = whole[8:33]
        data = whole[whole.index(b"IDAT") - 4:-12]
        body = data[8:-4]
        end = png.chunk(b"IEND", b"")

        def made(*parts):
            return png.SIGNATURE + b"".join(parts)

        def header(width=3, height=4, bits=8, colour=0, rest=(0, 0, 0)):
            return png.chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, *rest))
        for raw, message in (
                (b"", "it is not a PNG image"), (b"GIF89a", "it is not a PNG image"),
                (png.SIGNATURE, "it is truncated before its header"),
                (whole[:40], "it is truncated inside a chunk"), (whole[:-12], "its IEND chunk is missing"),
                (whole + b"1", "it has bytes after its last chunk"),
                (whole.replace(b"made by", b"paid by"), "the checksum of its chunk `tEXt` is wrong"),
                (made(data, end), "its first chunk is not IHDR"), (made(head, head, data, end), "it has two IHDR chunks"),
                (made(head, end), "it has no image data"),
                (made(head, data, png.chunk(b"tEXt", b"a"), data, end), "its IDAT chunks are not consecutive"),
                (made(head, png.chunk(b"ABCD", b""), data, end), "a chunk `ABCD`, which this reader does not know"),
                (made(head, data, png.chunk(b"IEND", b"1")), "its IEND chunk is not empty"),
                (made(header(width=0), data, end), "its width or height is 0"),
                (made(header(width=1 << 31), data, end), "does not fit in 31 bits"),
                (made(header(bits=3), data, end), "the colour type 0 with 3 bits"),
                (made(header(colour=5), data, end), "the colour type 5 with 8 bits"),
                (made(header(bits=16, colour=3), data, end), "the colour type 3 with 16 bits"),
                (made(header(rest=(1, 0, 0)), data, end), "compression, filter or interlace method"),
                (made(header(rest=(0, 0, 2)), data, end), "compression, filter or interlace method"),
                (made(header(colour=3), data, end), "its palette is missing"),
                (made(header(colour=3), png.chunk(b"PLTE", b"1234"), data, end), "its palette does not fit its header"),
                (made(head, png.chunk(b"PLTE", b"123"), data, end), "its palette does not fit its header"),
                (made(header(colour=4), png.chunk(b"tRNS", b"12"), data, end), "its tRNS chunk does not fit")):
            with self.subTest(message):
                self.refused(raw, message)
        damaged = bytearray(body)
        damaged[len(body) // 2] ^= 0x55
        for raw, message in (  # seen when the pixels are read
                (made(head, png.chunk(b"IDAT", bytes(damaged)), end), "its compressed data is damaged"),
                (made(head, png.chunk(b"IDAT", body[:-6]), end), "it is truncated"),
                (made(head, png.chunk(b"IDAT", body + b"1"), end), "it has data after its image"),
                (made(header(height=5), data, end), "it is truncated: 16 bytes of pixels where its header needs 20"),
                (made(header(height=3), data, end), "it has more data than its header says"),
                (made(header(width=1 << 30, height=1 << 30), data, end), "cannot be 1073741824 by 1073741824 pixels"),
                (png.written(numpy.array([[7]]), 3, palette=(1, 2, 3)), "the colour 7 of a palette of 1"),
                (made(head, png.chunk(b"IDAT", zlib.compress(b"\5abc" * 4)), end), "a row has the filter 5")):
            with self.subTest(message):
                self.refused(raw, message, 3)


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
