"""Files: every format in and out, `load` and `save`, damaged files. Usage: test_files.py EIN"""

import json
import os
import pathlib
import struct
import sys
import unittest
import zipfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from tensor_files import DTYPES, SAFE, Files, read_safetensors, safetensors  # noqa: E402

class Npy(Files):
    def test_every_type_order_and_byte_order(self):
        for name, code in DTYPES.items():
            for order in "CF":
                for endian in "<>":
                    a = numpy.array(self.array().astype(endian + code), order=order)
                    numpy.save(self.path("x.npy"), a)
                    with self.subTest(name=name, order=order, endian=endian):
                        x = self.shown(f"let x = load({self.quoted(self.path('x.npy'))});", "x",
                                       "--backend", "ref")["x"]
                        self.assertEqual((x["dtype"], x["shape"]), (name, [2, 3]))
                        self.assertEqual(numpy.array(x["data"]).tolist(), a.tolist())

    def test_versions(self):
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.path("x.npy"), "wb") as f:
                numpy.lib.format.write_array(f, self.array(), version=version)
            x = self.shown(f"let x = load({self.quoted(self.path('x.npy'))});")["x"]
            self.assertEqual(x["data"], self.array().tolist())

    def test_a_value_may_be_called_load(self):
        numpy.save(self.path("x.npy"), self.array())
        x = self.shown(f"let load = load({self.quoted(self.path('x.npy'))});", "load")["load"]
        self.assertEqual(x["data"], self.array().tolist())

    def test_bf16_goes_and_comes(self):
        out = self.path("x.npy")
        self.check(["-c", "let x: [bf16; n] = [1.5, -2.0];", "--out", f"x={out}", "--backend",
                    "ref"], 0, "")
        self.assertEqual(numpy.load(out).tobytes(), b"\xc0\x3f\x00\xc0")
        x = self.shown(f"let x = load({self.quoted(out)});", "x", "--backend", "ref")["x"]
        self.assertEqual((x["dtype"], x["data"]), ("bf16", [1.5, -2.0]))

    def test_types_that_are_none(self):
        for array, message in ((numpy.zeros(2, [("a", "f4"), ("b", "i4")]), "records"),
                               (numpy.array([None]), "Python objects"),
                               (numpy.array(["a"]), "has no Einlang type"),
                               (numpy.zeros(2, "c8"), "`<c8` has no Einlang type"),
                               (numpy.zeros(2, "u4"), "`<u4` has no Einlang type")):
            numpy.save(self.path("x.npy"), array, allow_pickle=True)
            self.check(["-c", f"let x = load({self.quoted(self.path('x.npy'))});"], 1, "", message)
            self.check(["-c", "let x: [f32; n]; print(x);", "--in", f"x={self.path('x.npy')}"], 3,
                       "", message)

    def test_absurd_headers(self):
        for shape, message in (("(4000000000, 4000000000, 4000000000)", "do not fit in 64 bits"),
                               ("(99999999999999999999,)", "do not fit in 64 bits"),
                               ("(9223372036854775807, 2)", "do not fit in 64 bits"),
                               ("(0, 9223372036854775807, 9223372036854775807)", "do not fit"),
                               ("(-1,)", "negative extent"), ("(1000000000000,)", "truncated"),
                               ("(" + "1, " * 100 + ")", "not an npy header"),
                               ("(1", "not an npy header"), ("3", "not an npy header")):
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"1234"
            pathlib.Path(self.path("x.npy")).write_bytes(raw)
            with self.subTest(shape):
                self.check(["-c", "let x: [f32; n]; print(x);", "--in", f"x={self.path('x.npy')}"],
                           3, "", message)
                self.check(["-c", f"let x = load({self.quoted(self.path('x.npy'))});"], 1, "",
                           message)


    def test_headers_with_garbage(self):
        def refused(header, message, data=b"12345678", version=b"\x01\x00"):
            raw = b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + data
            pathlib.Path(self.path("x.npy")).write_bytes(raw)
            with self.subTest(header=header, data=data):
                self.check(["-c", 'let x = load("x.npy");'], 1, "", message)
                self.check(["-c", "let x: [f32; n]; print(x);", "--in", "x=x.npy"], 3, "", message)
        good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
        for header, message in (
                (good + "x\n", "there is something after its dictionary"), (good + "\0\n", "something after"),
                (good + good, "there is something after"), (good[:-1], "not an npy header"),
                (good[:-1] + "'shape': (2,), }", "the key `shape` twice"),
                (good[:-1] + "'extra': 1, }", "an unknown key `extra`"),
                (good.replace("'shape': (2,)", "'form': (2,)"), "an unknown key `form`"),
                ("{'descr': '<f4', 'shape': (2,), }", "it needs `descr`, `fortran_order` and `shape`"),
                (good.replace("', '", "' '"), "not an npy header"), (good.replace("(2,)", "(2)"), "`shape` is not a tuple"),
                (good.replace("(2,)", "(2 1)"), "not an npy header"), (good.replace("(2,)", "(02,)"), "not an npy header"),
                (good.replace("False", "Falsehood"), "not an npy header"), (good.replace("(2,)", "(2,,)"), "not an npy header")):
            refused(header, message)
        refused(good, "it is truncated: 7 bytes of data where its header needs 8", b"1234567")
        refused(good, "it is damaged: 9 bytes of data where its header needs 8", b"123456789")
        refused(good, "version 1.1, not 1.0 to 3.0", version=b"\x01\x01")
        refused(good, "version 4.0, not 1.0 to 3.0", version=b"\x04\x00")


class Npz(Files):
    def test_checksums_always_count(self):
        """Also of bytes that are no part of the array, and of a header that is right."""
        whole = bytearray()
        for write in (numpy.savez, numpy.savez_compressed):
            write(self.path("x.npz"), x=self.array((50, 3)))
            whole = bytearray(pathlib.Path(self.path("x.npz")).read_bytes())
            central = whole.rindex(b"PK\x01\x02")
            whole[central + 16] ^= 1  # the checksum itself
            pathlib.Path(self.path("x.npz")).write_bytes(whole)
            self.check(["-c", "let x: [f32; n, m]; print(x);", "--in", "x=x.npz"], 3, "", "its checksum is wrong")
        longer = b"".join((b"\x93NUMPY\x01\x00\x76\0", b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117),
                           b"\n", b"12345678"))
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.path("x.npz"), "w", method) as z:
                z.writestr("x.npy", longer)
            self.check(["-c", 'let x = load("x.npz"); print(x);'], 0)
            with zipfile.ZipFile(self.path("x.npz"), "w", method) as z:
                z.writestr("x.npy", longer + b"more")
            self.check(["-c", 'let x = load("x.npz");'], 1, "", "it is damaged: 12 bytes of data where its header needs 8")

    def test_two_members_of_one_name(self):
        numpy.save(self.path("x.npy"), self.array())
        with zipfile.ZipFile(self.path("x.npz"), "w") as z:
            for _ in range(2):
                with self.assertWarns(UserWarning) if _ else open(os.devnull):
                    z.write(self.path("x.npy"), "x.npy")
        self.check(["-c", 'let x = load("x.npz", "x");'], 1, "", "it has two members `x.npy`")

    def test_a_member_under_another_name(self):
        numpy.savez(self.path("x.npz"), a=self.array(), b=self.array() + 1)
        raw = pathlib.Path(self.path("x.npz")).read_bytes()
        pathlib.Path(self.path("x.npz")).write_bytes(raw.replace(b"b.npy", b"c.npy", 1))  # the local header alone
        self.check(["-c", 'let x = load("x.npz", "b");'], 1, "", "its directory is damaged")
        self.check(["-c", 'let x = load("x.npz", "a");'], 0, "")

    def test_stored_deflated_and_zip64(self):
        a, b = self.array(), self.array((4,), "i8")
        numpy.savez(self.path("stored.npz"), a=a, b=b)
        numpy.savez_compressed(self.path("deflated.npz"), a=a, b=b)
        with zipfile.ZipFile(self.path("wide.npz"), "w") as z:
            for name, value in (("a", a), ("b", b)):
                with z.open(name + ".npy", "w", force_zip64=True) as f:
                    numpy.lib.format.write_array(f, value)
        for name in ("stored", "deflated", "wide"):
            path = self.quoted(self.path(name + ".npz"))
            x = self.shown(f'let a = load({path}, "a"); let b = load({path}, "b");', "a,b")
            self.assertEqual(x["a"]["data"], a.tolist())
            self.assertEqual(x["b"]["data"], b.tolist())

    def test_members(self):
        numpy.savez(self.path("two.npz"), a=self.array(), b=self.array())
        numpy.savez(self.path("one.npz"), other=self.array((2,)))
        path = self.quoted(self.path("two.npz"))
        self.check(["-c", f"let x = load({path});"], 1, "", "name one of them: it has `a`, `b`")
        self.check(["-c", f'let x = load({path}, "c");'], 1, "", "no tensor `c`: it has `a`, `b`")
        self.check(["-c", f'let x = load({self.quoted(self.path("x.npy"))}, "c");'], 1, "", "no such")
        code = "let b: [f32; n, m]; print(b[1, 2]);"
        self.check(["-c", code, "--in", f"b={self.path('two.npz')}"], 0, "5.0\n")
        self.check(["-c", "let x: [f32; n]; print(x[1]);", "--in", f"x={self.path('one.npz')}"], 0,
                   "1.0\n")
        self.check(["-c", "let c: [f32; n, m]; print(c);", "--in", f"c={self.path('two.npz')}"], 3,
                   "", "no tensor `c`")

    def test_saved(self):
        out = self.path("o.npz")
        self.check(["-c", f"let W[i, j] = [[1.5, 2.0]]; let k = 7; save({self.quoted(out)}, W, k, W * 2.0);"],
                   0, "")
        with numpy.load(out) as z:
            self.assertEqual({k: z[k].tolist() for k in z},
                             {"W": [[1.5, 2.0]], "k": 7, "arr_2": [[3.0, 4.0]]})

    def test_a_bomb_is_not_believed(self):
        numpy.savez_compressed(self.path("x.npz"), a=numpy.zeros(1000, "f4"))
        raw = bytearray(pathlib.Path(self.path("x.npz")).read_bytes())
        at = raw.rindex(b"PK\x01\x02")
        raw[at + 24:at + 28] = struct.pack("<I", 0xfffffff0)
        pathlib.Path(self.path("x.npz")).write_bytes(raw)
        self.check(["-c", f"let x = load({self.quoted(self.path('x.npz'))});"], 1, "", "damaged")


class Csv(Files):
    def load(self, text, status=0, message=None):
        self.write("x.csv", text)
        code = f"let x = load({self.quoted(self.path('x.csv'))});"
        if status:
            return self.check(["-c", code], status, "", message)
        x = self.shown(code)["x"]
        return x["dtype"], x["data"]

    def test_shapes_and_types(self):
        self.assertEqual(self.load("1,2\n3,4\n"), ("i32", [[1, 2], [3, 4]]))
        self.assertEqual(self.load("a, b\r\n1,2.5\r\n\r\n3,+4e0"), ("f32", [[1, 2.5], [3, 4]]))
        self.assertEqual(self.load("y\n1\n3000000000\n"), ("i64", [1, 3000000000]))
        self.assertEqual(self.load("true,false\n"), ("bool", [[True, False]]))
        self.assertEqual(self.load("inf,nan,-inf\n"), ("f32", [["inf", "nan", "-inf"]]))
        self.assertEqual(self.load("\ufeff1\n"), ("i32", [1]))

    def test_mistakes(self):
        self.load("1,2\n3\n", 1, "line 2 has 1 cells, line 1 has 2")
        self.load("a,b\n1,2\n\n3,x\n", 1, "line 4: `x` is not a number")
        self.load("1,\n", 1, "line 1 has an empty cell")
        self.load("true\n3\n", 1, "line 2")
        self.load("", 1, "no numbers")
        self.load("a,b\n", 1, "no numbers")

    def test_as_an_input(self):
        x = self.write("x.csv", "1\n2\n3\n")
        for type_, out in (("[f32; n]", "[n: 3] [1.0, 2.0, 3.0]"), ("[i64; n]", "[n: 3] [1, 2, 3]"),
                           ("[u8; n, m]", "[n: 3, m: 1]\n[[1],\n [2],\n [3]]")):
            self.check(["-c", f"let x: {type_}; print(x);", "--in", f"x={x}"], 0, out + "\n")
        row = self.write("r.csv", "1,2.5\n")
        self.check(["-c", "let x: [f64; n]; print(x);", "--in", f"x={row}"], 0,
                   "[n: 2] [1.0, 2.5]\n")
        self.check(["-c", "let x: [i32; n]; print(x);", "--in", f"x={row}"], 3, "",
                   "line 1: `2.5` is not a value of type i32")
        big = self.write("b.csv", "300\n")
        self.check(["-c", "let x: [u8; n]; print(x);", "--in", f"x={big}"], 3, "", "type u8")
        one = self.write("o.csv", "7\n")
        self.check(["-c", "let x: f32; print(x);", "--in", f"x={one}"], 0, "7.0\n")

    def test_goes_and_comes(self):
        out = self.path("o.csv")
        for code, text in (("[[0.1, -1e30], [3.0, 4.0]]", "0.1,-1e+30\n3.0,4.0\n"),
                           ("[1, 2]", "1\n2\n"), ("7", "7\n"), ("[true]", "true\n")):
            self.check(["-c", f"let x = {code};", "--out", f"x={out}"], 0, "")
            self.assertEqual(pathlib.Path(out).read_text(), text)
        self.check(["-c", "let x[i in 0..2, j in 0..2, k in 0..2] = 1;", "--out", f"x={out}"], 3, "",
                   "at most 2 coordinates")


class Safetensors(Files):
    def test_every_type(self):
        arrays = {name: (SAFE[name], self.array(dtype=code)) for name, code in DTYPES.items()}
        path = pathlib.Path(self.path("x.safetensors"))
        path.write_bytes(safetensors({"t_" + k: v for k, v in arrays.items()}))
        for name, (_, array) in arrays.items():
            x = self.shown(f'let x = load({self.quoted(path)}, "t_{name}");', "x", "--backend",
                           "ref")["x"]
            self.assertEqual((x["dtype"], x["data"]), (name, array.tolist()))
        path.write_bytes(safetensors({"x": ("U64", self.array(dtype="u8"))}))
        self.check(["-c", f"let x = load({self.quoted(path)});"], 1, "", "are U64")

    def test_saved(self):
        out = self.path("o.safetensors")
        self.check(["-c", f"let W = [[1.5, 2.0]]; let k = [7]; save({self.quoted(out)}, W, k);"], 0, "")
        back = read_safetensors(out)
        self.assertEqual({k: v.tolist() for k, v in back.items()}, {"W": [[1.5, 2.0]], "k": [7]})

    def layout(self, header, size, message):
        """A header (text or what becomes JSON) before so many bytes: the message, or none."""
        text = (header if isinstance(header, str) else json.dumps(header)).encode()
        pathlib.Path(self.path("x.safetensors")).write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
        with self.subTest(header=header):
            self.check(["-c", 'let x = load("x.safetensors", "x"); print(x);'], 1 if message else 0,
                       "" if message else None, message)

    def test_offsets_are_checked(self):
        def entry(**more):
            return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **more}
        for header, message in (({"x": entry(data_offsets=[0, 4])}, "its extents need 8"),
                                ({"x": entry(data_offsets=[8, 0])}, "ends before it begins"),
                                ({"x": entry(data_offsets=[-8, 0])}, "not a number of 63 bits"),
                                ({"x": entry(data_offsets=[0, 80])}, "truncated"),
                                ({"x": entry(shape=[2**62, 4])}, "do not fit in 64 bits"),
                                ({"x": entry(shape=[1.5])}, "not a number of 63 bits"),
                                ({"x": {"dtype": "F32"}}, "needs dtype, shape"),
                                ({"x": 3}, "needs dtype, shape"), ([1], "not a JSON object"),
                                ({}, "contains no tensor")):
            text = json.dumps(header).encode()
            path = pathlib.Path(self.path("x.safetensors"))
            path.write_bytes(struct.pack("<Q", len(text)) + text + b"12345678")
            with self.subTest(header=header):
                self.check(["-c", f"let x = load({self.quoted(path)});"], 1, "", message)
        self.layout({"x": entry(data_offsets=[8, 16])}, 16, "bytes 0 to 8 belong to no tensor")
        self.layout({"x": entry()}, 12, "bytes 8 to 12 belong to no tensor")
        self.layout({"x": entry(), "y": entry(data_offsets=[12, 20])}, 20, "bytes 8 to 12 belong to no tensor")
        self.layout({"x": entry(), "y": entry(data_offsets=[4, 12])}, 12, "`x` and `y` share bytes")
        self.layout({"x": entry(), "y": entry()}, 8, "`x` and `y` share bytes")
        self.layout({"x": entry(), "y": entry(shape=[0], data_offsets=[4, 4])}, 8, "share bytes")
        self.layout({"x": entry(), "y": entry(shape=[0], data_offsets=[8, 8])}, 8, None)
        self.layout('{"x": 3, "x": 4}', 8, "it has `x` twice")
        self.layout('{"x": {"dtype": "F32", "shape": [2], "shape": [2], "data_offsets": [0, 8]}}', 8, "it has `shape` twice")
        self.layout('{"__metadata__": {"a": "b", "a": "c"}, "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', 8,
                    "it has `a` twice")
        path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
        self.check(["-c", f"let x = load({self.quoted(path)});"], 1, "", "too long")


IDX = {"u8": 0x08, "i8": 0x09, "i16": 0x0b, "i32": 0x0c, "f32": 0x0d, "f64": 0x0e}


def idx(array, name):
    """The bytes of an IDX file."""
    start = bytes((0, 0, IDX[name], array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return start + array.astype(">" + DTYPES[name]).tobytes()


class Idx(Files):
    def test_every_type_goes_and_comes(self):
        for name in IDX:
            a = self.array(dtype=DTYPES[name])
            raw = idx(a, name)
            pathlib.Path(self.path("x.idx")).write_bytes(raw)
            with self.subTest(name=name):
                source = f"let x = load({self.quoted(self.path('x.idx'))});"
                x = self.shown(source, "x", "--out", f"x={self.path('y.IDX')}")["x"]
                self.assertEqual((x["dtype"], x["data"]), (name, a.tolist()))
                self.assertEqual(pathlib.Path(self.path("y.IDX")).read_bytes(), raw)

    def test_names_of_the_mnist_files(self):
        a = self.array((3, 2, 2), "u1")
        for name in ("train-images-idx3-ubyte", "train-images.idx3-ubyte", "a-idx3-float"):
            path = pathlib.Path(self.path(name))
            path.write_bytes(idx(a, "u8"))
            self.check(["-c", f"let a: [u8; b, y, x] = load({self.quoted(path)}); print(a[2, 1, 0]);"],
                       0, "10\n")
            saved = self.path("o-" + name)
            self.check(["-c", f"let x = load({self.quoted(path)}); save({self.quoted(saved)}, x);"], 0, "")
            self.assertEqual(pathlib.Path(saved).read_bytes(), idx(a, "u8"))
        for name, message in (("train-images-idx3-ubyte.gz", "compressed files are not supported; use gunzip"),
                              ("idx3-ubytes", "no extension"), ("a-idx-b", "no extension")):
            path = pathlib.Path(self.path(name))
            path.write_bytes(idx(a, "u8"))
            self.check(["-c", f"let x = load({self.quoted(path)});"], 1, "", message)

    def test_ranks(self):
        for shape in ((), (0,), (1, 0, 3), (1, 2, 3, 4)):
            pathlib.Path(self.path("x.idx")).write_bytes(idx(self.array(shape), "f32"))
            x = self.shown(f"let x = load({self.quoted(self.path('x.idx'))});")["x"]
            self.assertEqual(x["shape"], list(shape))

    def test_mistakes(self):
        whole = idx(self.array(), "f32")
        for raw, message in ((b"", "not an IDX file"), (whole[1:], "not an IDX file"),
                             (b"\x1f\x8b" + whole, "compressed files are not supported; use gunzip"),
                             (whole[:2] + b"\x0a" + whole[3:], "element type 0x0a is not an IDX type"),
                             (whole[:10], "truncated inside its header"),
                             (whole[:-1], "truncated: 23 bytes of data where its header needs 24"),
                             (whole + b"1", "damaged: 25 bytes of data where its header needs 24"),
                             (whole[:3] + b"\x04" + b"\xff" * 16, "do not fit in 64 bits")):
            path = pathlib.Path(self.path("x.idx"))
            path.write_bytes(raw)
            with self.subTest(message):
                self.check(["-c", f"let x = load({self.quoted(path)});"], 1, "", message)
                self.check(["-c", "let x: [f32; n, m]; print(x);", "--in", f"x={path}"], 3, "", message)
        self.check(["-c", "let x = 1 as i64;", "--out", f"x={self.path('y.idx')}"], 3, "",
                   "the value is i64")


class Images(Files):
    def load(self, raw, status=0, message=None, name="x.pgm"):
        path = pathlib.Path(self.path(name))
        path.write_bytes(raw)
        code = f"let x = load({self.quoted(path)});"
        if status:
            self.check(["-c", code + " print(x);"], status, "", message)
            return self.check(["-c", "let x: [u8; y, x]; print(x);", "--in", f"x={path}"], 3, "", message)
        x = self.shown(code)["x"]
        self.assertEqual(x["dtype"], "u8")
        return x["data"]

    def test_bytes_and_text(self):
        grey, colour = [[0, 10, 255], [7, 8, 9]], [[[1, 2, 3], [4, 5, 6]]]
        self.assertEqual(self.load(b"P5\n3 2\n255\n" + bytes(sum(grey, []))), grey)
        self.assertEqual(self.load(b"P5 # a comment\n# 9 9\n3\t2 255\r" + bytes(sum(grey, [])) + b"\n"), grey)
        self.assertEqual(self.load(b"P2\n3 2 255\n0 10 255 # white\n7 8\n9"), grey)
        self.assertEqual(self.load(b"P6 2 1 255\n" + bytes(range(1, 7)), name="x.ppm"), colour)
        self.assertEqual(self.load(b"P3 2 1 255 1 2 3 4 5 6\n", name="x.pnm"), colour)
        self.assertEqual(self.load(b"P5 0 2 255\n"), [[], []])

    def test_white_is_255(self):
        self.assertEqual(self.load(b"P2 4 1 15 0 1 8 15"), [[0, 17, 136, 255]])
        self.assertEqual(self.load(b"P5 2 1 1\n\0\1"), [[0, 255]])

    def test_goes_and_comes(self):
        out = self.path("o.pgm")
        code = f"let a[y in 0..2, x in 0..3] = (y + x) as f32 / 3.0; save({self.quoted(out)}, (255.0 * a) as u8);"
        for backend in ("ref", "native"):
            self.check(["-c", code, "--backend", backend], 0, "")
            self.assertEqual(pathlib.Path(out).read_bytes(), b"P5\n3 2\n255\n\0\x55\xaa\x55\xaa\xff")
        out = self.path("o.ppm")
        self.check(["-c", "let a[y in 0..2, x in 0..1, c in 0..3] = (y * 3 + c) as u8;", "--out", f"a={out}"], 0)
        self.assertEqual(self.load(pathlib.Path(out).read_bytes(), name="p.ppm"),
                         [[[0, 1, 2]], [[3, 4, 5]]])

    def test_what_is_no_image(self):
        for code, name, message in (
                ("[[0.5]]", "o.pgm", "write `(255.0 * x) as u8` if it goes from 0 to 1"),
                ("[[1]]", "o.pgm", "the value is i32; write `x as u8`"),
                ("[[[1]]] as u8", "o.pgm", "has 3 coordinates; .ppm is for colours"),
                ("[[1]] as u8", "o.ppm", "has 2 coordinates; .pgm is for grey"),
                ("[1] as u8", "o.pnm", "the value has 1"),
                ("[[[1, 2]]] as u8", "o.ppm", "has extent 3 (red, green, blue), not 2")):
            self.check(["-c", f"let x = {code};", "--out", f"x={self.path(name)}"], 3, "", message)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_mistakes(self):
        for raw, message in (
                (b"", "not a PGM or PPM image"), (b"P8 1 1 255\n1", "not a PGM or PPM image"),
                (b"P4 8 1\n1", "it is a P4 image"), (b"P5", "its width is missing"),
                (b"P5 3 2", "its largest sample is missing"), (b"P5 3 2 255", "truncated inside its header"),
                (b"P5 a 2 255\n", "its width is not a number"),
                (b"P5 1 1 25x\n1", "its largest sample is not a number"),
                (b"P5 1 1 0\n1", "its largest sample is 0"),
                (b"P5 1 1 65535\n11", "its samples go up to 65535"),
                (b"P5 9999999999 2 255\n", "its width does not fit in 31 bits"),
                (b"P5 2000000000 2000000000 255\n", "it is truncated"),
                (b"P6 2147483647 2147483647 255\n", "do not fit in 64 bits"),
                (b"P5 3 2 255\n12345", "5 bytes of data where its header needs 6"),
                (b"P5 3 2 255\n12345678", "8 bytes of data where its header needs 6"),
                (b"P2 2 2 255 1 2 3", "it is truncated")):
            with self.subTest(raw):
                self.load(raw, 1, message)
        for raw, message in (  # seen when the cells are read
                (b"P5 1 1 9\n\x0a", "a sample 10 where its header says at most 9"),
                (b"P2 2 2 255 100 200 3\n", "truncated: 3 samples where its header needs 4"),
                (b"P2 2 1 255 1 2 3\n", "more than the 2 samples"),
                (b"P2 2 1 255 1 x\n", "its sample is not a number"),
                (b"P2 2 1 255 1 256", "a sample 256 where its header says at most 255")):
            with self.subTest(raw):
                self.load(raw, 3, message)


class Load(Files):
    def test_beside_the_program_then_here(self):
        folder = pathlib.Path(self.path("sub"))
        folder.mkdir()
        numpy.save(folder / "x.npy", self.array((1,)) + 1)
        program = self.write("sub/a.ein", 'let x = load("x.npy"); print(x);\n')
        self.check([program], 0, "[1] [1.0]\n")
        numpy.save(self.path("here.npy"), self.array((1,)) + 2)
        program = self.write("sub/b.ein", 'let x = load("here.npy"); print(x);\n')
        self.check([program], 0, "[1] [2.0]\n")
        self.check(["-c", 'print(load("here.npy"));'], 0, "[1] [2.0]\n")
        self.check(["-"], 0, "[1] [2.0]\n", stdin='print(load("here.npy"));')

    def test_takes_part_in_every_check(self):
        numpy.save(self.path("w.npy"), self.array())
        w = self.quoted(self.path("w.npy"))
        self.check(["check", "-c", f"let W = load({w}); let x = [1.0, 2.0];"
                    "let y[i] = sum[k](W[i, k] * x[k]);"], 1, "", "E0301")
        self.check(["check", "-c", f"let W: [f32; out, 4] = load({w});"], 1, "", "E0405")
        self.check(["check", "-c", f"let W: [f64; out, in] = load({w});"], 1, "", "E0405")
        self.check(["check", "-c", f"let W = load({w}); print(W[0, 3]);"], 1, "", "E0306")

    def test_only_what_is_reached_is_read(self):
        numpy.save(self.path("w.npy"), self.array())
        raw = pathlib.Path(self.path("w.npy")).read_bytes()
        w = self.quoted(self.path("w.npy"))
        self.check(["-c", f"let W = load({w}); print(1);"], 0, "1\n")
        pathlib.Path(self.path("w.npy")).write_bytes(raw[:-1])
        self.check(["-c", f"let W = load({w}); print(1);"], 1, "", "truncated")

    def test_derivatives_by_a_loaded_value(self):
        numpy.save(self.path("w.npy"), self.array((3,)))
        w = self.quoted(self.path("w.npy"))
        code = f"let W: [f32; i] = load({w}); let V = load({w});" \
               "let loss = sum[i](W[i] * W[i] * V[i]); let g = @loss / @W; print(g);"
        for backend in ("ref", "native"):
            self.check(["-c", code, "--backend", backend], 0, "[i: 3] [0.0, 2.0, 8.0]\n")

    def test_printed_source_loads_again(self):
        numpy.savez(self.path("w.npz"), a=self.array((3,)), b=self.array((3,)))
        program = self.write("a.ein", 'let W: [f32; i] = load("w.npz", "a");\nlet y = W * load("w.npz", "b");\n'
                             "print(y);\n")
        printed = self.check(["grad", program], 0).stdout
        self.assertEqual(self.check(["grad", self.write("b.ein", printed)], 0).stdout, printed)
        self.check([self.path("b.ein")], 0, "[i: 3] [0.0, 1.0, 4.0]\n")

    def test_is_not_supplied(self):
        numpy.save(self.path("w.npy"), self.array())
        self.check(["-c", f"let W = load({self.quoted(self.path('w.npy'))}); print(W);", "--in",
                    f"W={self.path('w.npy')}"], 2, "", "`W` is loaded from")


class Save(Files):
    def test_in_source_order(self):
        out = self.path("o.npy")
        code = f"let x = [1.0]; save({self.quoted(out)}, x); assert(x[0] > 2.0); save({self.quoted(out)}, x * 2.0);"
        self.check(["-c", code], 3, "", "assertion failed")
        self.assertEqual(numpy.load(out).tolist(), [1.0])

    def test_nobody_sees_half_a_file(self):
        out = self.write("o.csv", "old")
        code = f"let x[i in 0..2, j in 0..2, k in 0..2] = 1; save({self.quoted(out)}, x);"
        self.check(["-c", code], 3, "", "error[E0808]: cannot write")
        self.assertEqual(pathlib.Path(out).read_text(), "old")
        self.assertEqual(os.listdir(self.folder.name), ["o.csv"])

    def test_unwritable(self):
        done = self.check(["-c", f"let x = 1; save({self.quoted(self.path('no/x.npy'))}, x);"], 3, "")
        self.assertIn("no such folder", done.stderr)
        self.assertIn(" --> <command line>:1:12\n", done.stderr)
        self.check(["-c", "let x = 1;", "--out", "x=/dev/null/x.npy"], 3, "", "cannot write")
        self.check(["-c", "let x = 1;", "--out", "x=x.dat"], 2, "", "not a tensor format")


class Records(Files):
    NET = "type Net = { enc: { w: [f32; hidden, 3], b: [f32; hidden] }, out: [f32; hidden], rate: f32 };\n"

    def save(self, name="net.npz", **changes):
        parts = {"enc.w": self.array((4, 3)), "enc.b": self.array((4,)), "out": self.array((4,)) + 1,
                 "rate": numpy.float32(0.5)}
        parts.update({k.replace("_", "."): v for k, v in changes.items()})
        numpy.savez(self.path(name), **{k: v for k, v in parts.items() if v is not None})

    def test_all_parts(self):
        self.save()
        x = self.shown(self.NET + 'let x = load("net.npz") as Net;')["x"]
        self.assertEqual(x["enc"]["w"]["data"], self.array((4, 3)).tolist())
        self.assertEqual(x["rate"]["data"], 0.5)
        self.assertEqual(list(x), ["enc", "out", "rate"])
        self.check(["-c", self.NET + 'let x = load("net.npz") as Net; save("again.npz", x);'], 0, "")
        again = numpy.load(self.path("again.npz"))
        self.assertEqual(sorted(again), ["enc.b", "enc.w", "out", "rate"])

    def test_what_does_not_fit_is_named_together(self):
        code = self.NET + 'let x = load("net.npz") as Net; print(x.rate);'
        self.save(enc_b=None, rate=None, other=self.array(), enc_w=self.array((4, 2)), out=self.array((5, 1)))
        said = self.check(["-c", code], 1, "", "error[E0220]: `net.npz` does not have the parts of this record").stderr
        for part in ("it lacks `enc.b`, `rate`", "it also has `other`",
                     "`enc.w` is [f32; 4, 2], but 3 is needed at coordinate 1",
                     "`out` is [f32; 5, 1], but it needs 1 coordinate", "1 error"):
            self.assertIn(part, said)
        self.save(out=self.array((5,)))
        self.check(["-c", code], 1, "", "`out` is [f32; 5], but `hidden` is 4 in `enc.w`")
        self.save(more=self.array())
        self.check(["-c", code], 1, "", "it also has `more`")

    def test_files_without_parts(self):
        numpy.save(self.path("x.npy"), self.array())
        self.check(["-c", self.NET + 'let x = load("x.npy") as Net;'], 1, "", "`x.npy` holds no parts with names")
        self.check(["-c", self.NET + 'let x = load("no.npz") as Net;'], 1, "", "there is no such file")
        self.save()
        self.check(["-c", self.NET + 'let x = load("net.npz", "enc") as Net;'], 1, "",
                   "a record is loaded from a whole file")


class Numbered(Files):
    """Tensors `h.0.w`, `h.1.w`, … of a file as an array of records."""
    NET = "type Net = { first: [f32; i], h: [{ w: [f32; i, o], in: { b: [f32; o] } }; layer] };\n"
    LOAD = NET + 'let x = load("net.safetensors") as Net; '

    def parts(self):
        out = {"first": self.array((2,))}
        for layer in range(3):
            out[f"h.{layer}.w"] = self.array((2, 4)) + layer
            out[f"h.{layer}.in.b"] = self.array((4,)) - layer
        return out

    def save(self, parts):
        pathlib.Path(self.path("net.safetensors")).write_bytes(safetensors({k: ("F32", v) for k, v in parts.items()}))
        numpy.savez(self.path("net.npz"), **parts)

    def test_numbers_become_a_coordinate(self):
        parts = self.parts()
        self.save(parts)
        for name in ("net.safetensors", "net.npz"):
            x = self.shown(self.NET + f'let x = load("{name}") as Net;')["x"]
            self.assertEqual(x["h"]["w"]["data"], [parts[f"h.{k}.w"].tolist() for k in range(3)])
            self.assertEqual(x["h"]["in"]["b"]["data"], [parts[f"h.{k}.in.b"].tolist() for k in range(3)])
        y = self.shown(self.LOAD + "let y[layer, o] = x.h[layer].w[1, o] - x.h[layer].in.b[o];", "y")["y"]
        self.assertEqual(y["data"], [(parts[f"h.{k}.w"][1] - parts[f"h.{k}.in.b"]).tolist() for k in range(3)])

    def test_inputs(self):
        parts = self.parts()
        self.save(parts)
        run = self.check(["-c", self.NET + "let x: Net; print(x.h[2].w[1, 3]);", "--in", "x=net.safetensors"], 0)
        self.assertEqual(float(run.stdout), parts["h.2.w"][1, 3])

    def test_written_back_under_the_same_names(self):
        parts = self.parts()
        self.save(parts)
        self.check(["-c", self.LOAD + 'save("a.safetensors", (2.0 * x) as Net); let y: Net = x * 2.0; save("b.safetensors", y);'], 0, "")
        self.check(["-c", self.LOAD + "let y: Net = x * 2.0;", "--out", "y=c.safetensors"], 0, "")
        for name in ("a", "b", "c"):
            back = read_safetensors(self.path(name + ".safetensors"))
            self.assertEqual(sorted(back), sorted(parts))
            for key, value in parts.items():
                numpy.testing.assert_array_equal(back[key], 2 * value)
        self.check(["-c", self.LOAD + 'save("d.safetensors", x * 2.0);'], 0, "")  # no type: all layers in one tensor, which is read too
        self.assertEqual(sorted(read_safetensors(self.path("d.safetensors"))), ["first", "h.in.b", "h.w"])
        self.check(["-c", self.NET + 'let y = load("d.safetensors") as Net; print(y.h.w[2, 1, 3]);'], 0, f"{2 * parts['h.2.w'][1, 3]}\n")

    def test_a_record_needs_a_file_of_several_tensors(self):
        self.save(self.parts())
        self.check(["-c", self.LOAD, "--out", "x=x.npy"], 2, "", "a .npy file holds one tensor, not 3")

    def test_a_missing_number(self):
        parts = self.parts()
        del parts["h.1.w"]
        self.save(parts)
        self.check(["-c", self.LOAD], 1, "", "it has `h.2.w`, but no `h.1.w`")
        del parts["h.2.w"]
        self.save(parts)
        self.check(["-c", self.LOAD], 1, "", "it has `h.2.in.b`, but no `h.2.w`")
        for key in ("h.0.w", "h.0.in.b", "h.1.in.b", "h.2.in.b"):
            del parts[key]
        self.save(parts)
        self.check(["-c", self.LOAD], 1, "", "it lacks `h.#.w`, `h.#.in.b`, where `#` is a number from 0 on")

    def test_other_parts(self):
        parts = {**self.parts(), "h.1.other": self.array(), "h.01.w": self.array((2, 4))}
        self.save(parts)
        said = self.check(["-c", self.LOAD], 1, "", "it also has").stderr
        self.assertIn("`h.1.other`", said)
        self.assertIn("`h.01.w`", said)

    def test_layers_that_differ(self):
        self.save({**self.parts(), "h.1.w": self.array((2, 5))})
        self.check(["-c", self.LOAD], 1, "", "`h.1.w` is [f32; 2, 5], but `h.0.w` is [f32; 2, 4]")
        self.save({f"h.{k}.in.b": self.array((5,)) for k in range(3)} | {k: v for k, v in self.parts().items() if "b" not in k})
        self.check(["-c", self.LOAD], 1, "", "`h.#.in.b` is [f32; 3, 5], but `o` is 4 in `h.#.w`")

    def test_names_that_are_none(self):
        numpy.savez(self.path("net.npz"), **{"0.weight": self.array((2,)), "2.weight": self.array((3,)), "type": self.array((4,)),
                                             "list.0": self.array((2,)), "list.1": self.array((2,)) + 1})
        net = ('type Net = { "0" as first: { weight: [f32; a] }, "2.weight" as second: [f32; b], "type" as kind: [f32; c], '
               '"list.#" as list: [f32; n, a] };\n')
        x = self.shown(net + 'let x = load("net.npz") as Net;')["x"]
        self.assertEqual(x["second"]["data"], self.array((3,)).tolist())
        self.assertEqual(x["list"]["data"], [self.array((2,)).tolist(), (self.array((2,)) + 1).tolist()])
        self.check(["-c", net + 'let x = load("net.npz") as Net; save("again.npz", x);'], 0, "")
        self.assertEqual(sorted(numpy.load(self.path("again.npz"))), ["0.weight", "2.weight", "list.0", "list.1", "type"])
        self.check(["-c", "type Net = { match: [f32; n] };"], 1, "", '`"match" as …: …`')
        self.check(["-c", 'type Net = { "" as x: [f32; n] };'], 1, "", "a plain string that is not empty")

    def test_numbered_tensors_without_a_record(self):
        parts = self.parts()
        self.save(parts)
        self.check(["-c", 'let w: [f32; layer, i, o] = load("net.safetensors", "h.#.w"); print(w[2, 1, 3]);'], 0,
                   f"{parts['h.2.w'][1, 3]}\n")
        self.check(["-c", 'let w = load("net.safetensors", "h.#.v");'], 1, "", "it contains no tensor `h.#.v`")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
