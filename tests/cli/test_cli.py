"""The command line as its users meet it: exit statuses, options, formats. Usage: test_cli.py EIN"""

import json
import os
import pathlib
import pty
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import run as files  # noqa: E402  (write_npy)

EIN = None
os.environ.setdefault("EINLANG_CACHE", "off")  # not the cache of whoever runs this

MATMUL = """let A: [f64; i, k];
let B: [f64; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
print(C);
"""


def read_npy(path):
    """(descr, shape, cells) of a little-endian .npy file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size].decode(), {})  # the format is a Python literal
    code = {d: c for d, c in files.DTYPES.values()}[header["descr"]]
    body = data[10 + size:]
    count = len(body) // struct.calcsize(code)
    return header["descr"], header["shape"], list(struct.unpack(f"<{count}{code}", body))


class Cli(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def write(self, name, text):
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)

    def npy(self, name, dtype, shape, cells):
        files.write_npy(pathlib.Path(self.path(name)), dtype, shape, cells)
        return self.path(name)

    def ein(self, *args, stdin="", env=None, cwd=None):
        """In a folder of its own, where what programs save goes."""
        return subprocess.run([os.path.abspath(EIN), *args], input=stdin, capture_output=True, text=True, timeout=60,
                              cwd=cwd or self.folder.name, env={**os.environ, **(env or {})})

    def terminal(self, *args):
        """Standard error is a terminal; the process, and what was written there."""
        master, slave = pty.openpty()
        done = subprocess.run([EIN, *args], stdout=subprocess.PIPE, stderr=slave, timeout=120)
        os.close(slave)
        err = b""
        try:
            while part := os.read(master, 65536):
                err += part
        except OSError:
            pass  # the other end is closed
        os.close(master)
        return done, err.decode()

    def check(self, args, status, out=None, err=None, **more):
        """Runs; checks the status, all of standard output, and a part of standard error."""
        done = self.ein(*args, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if out is not None:
            self.assertEqual(done.stdout, out)
        if err is not None:
            self.assertIn(err, done.stderr)
        if err is None and status == 0:
            self.assertEqual(done.stderr, "")
        return done


class Programs(Cli):
    def test_from_a_file(self):
        path = self.write("a.ein", "print(1 + 1);\n")
        self.check(["run", path], 0, "2\n")
        self.check([path], 0, "2\n")

    def test_from_the_command_line(self):
        self.check(["run", "-c", "print(3);"], 0, "3\n")
        self.check(["-c", "print(3);"], 0, "3\n")

    def test_from_standard_input(self):
        self.check(["run", "-"], 0, "4\n", stdin="print(4);")
        self.check(["-"], 0, "4\n", stdin="print(4);")
        self.check(["check", "-"], 1, "", "<standard input>:1:9", stdin="let a = b;")

    def test_wrong_program(self):
        done = self.check(["run", "-c", "print(x);"], 1, "", "error[E0201]: unknown name `x`")
        self.assertTrue(done.stderr.endswith("1 error\n"))

    def test_wrong_program_prints_nothing(self):
        self.check(["run", "-c", "print(1); print(x);"], 1, "", "E0201")

    def test_run_time_failure(self):
        done = self.check(["run", "-c", 'print("a"); assert(1 > 2, "no");'], 3, "a\n")
        self.assertEqual(done.stderr, "error[E0804]: assertion failed: no\n --> <command line>:1:13\n  |\n"
                         "1 | print(\"a\"); assert(1 > 2, \"no\");\n  |             ^^^^^^^^^^^^^^^^^^^\n")

    def test_unreadable_file(self):
        for args in (["run", self.path("none.ein")], [self.path("none.ein")], ["run", "/"],
                     ["check", self.path("none.ein")], ["grad", self.path("none.ein")]):
            self.check(args, 2, "", "cannot read")

    def test_not_utf8(self):
        path = self.path("a.ein")
        pathlib.Path(path).write_bytes(b"let a = \xff\xfe;\n")
        self.check(["check", path], 1, "", "error[E0")

    def test_version_and_help(self):
        self.assertRegex(self.check(["--version"], 0).stdout, r"^ein \d+\.\d+\.\d+")
        self.assertIn("run", self.check(["--help"], 0).stdout)
        self.assertIn("--show", self.check(["run", "--help"], 0).stdout)


class Usage(Cli):
    def test_wrong_usage(self):
        for args in ([], ["run"], ["check"], ["grad"], ["frobnicate"], ["run", "--frobnicate"],
                     ["run", "-c"], ["run", "-c", "print(1);", "--format", "xml"],
                     ["run", "-c", "print(1);", "--backend", "gpu"],
                     ["run", "-c", "print(1);", "-O4"],
                     ["run", "-c", "print(1);", "--cpu", "abacus"],
                     ["run", "-c", "print(1);", "--dump-after", "nothing"],
                     ["check", "-c", "print(1);", "--error-format", "xml"],
                     ["grad", "-c", "let x = 1.0;", "--of", "x"],
                     ["grad", "-c", "let x = 1.0;", "--wrt", "x"]):
            with self.subTest(args):
                self.assertNotEqual(self.check(args, 2, "").stderr, "")

    def test_verbs(self):
        self.write("sum.ein", "print(1);\n")
        self.check(["runn", "sum.ein"], 2, "", "did you mean `ein run`?")
        self.check(["sum"], 2, "", "did you mean the file `sum.ein`?")
        self.check(["frobnicate"], 2, "", "`ein help` lists the commands")
        self.assertEqual(self.check(["help"], 0).stdout, self.check(["--help"], 0).stdout)
        self.assertEqual(self.check(["help", "check"], 0).stdout, self.check(["check", "--help"], 0).stdout)
        self.check(["help", "chekc"], 2, "", "did you mean `ein check`?")
        self.check([], 2, "", "exit statuses: 0 success")
        self.assertIn("{native,ref}=native", self.check(["help", "run"], 0).stdout)

    def test_words_that_a_verb_does_not_take(self):
        self.check(["-c", "print(1);", "--shwo", "x"], 2, "", "`ein run` has no option `--shwo`; did you mean `--show`?")
        self.check(["check", "a.ein", "b.ein"], 2, "", "takes no more arguments")
        self.check(["run", "a.ein", "-c", "print(1);"], 2, "", "either the file `a.ein` or the text after -c")

    def test_pairs_repeat_an_option(self):
        code = "let x: f32; let y: f32; print(x + y);"
        for words in (["--set", "x=1", "y=2"], ["--set=x=1", "y=2"], ["--set", "x=1", "--set", "y=2"]):
            self.check(["-c", code, *words], 0, "3.0\n")
        self.check(["run", "--set", "x=1", "y=2", "-c", code], 0, "3.0\n")

    def test_an_input_that_is_missing(self):
        code = "let x: [f32; n]; let s: f32; let z: f32; print(s * sum[i](x[i]));"
        self.check(["-c", code], 3, "", "supply it with `--in x=FILE`; these have no value either: `s`, `z`")
        self.check(["-c", "let s: f32; print(s);"], 3, "", "supply it with `--set s=VALUE`")

    def test_the_mode_of_derivatives(self):
        code = "let x = 2.0; let y = x * x; print(@y / @x);"
        for verb, option in (("run", "--grad-mode"), ("grad", "--grad-mode"), ("grad", "--mode")):
            self.check([verb, "-c", code, option, "forward"], 0)

    def test_unknown_values(self):
        self.check(["-c", "let loss = 1;", "--show", "lose"], 2, "", "did you mean `loss`?")
        self.check(["-c", "let loss = 1;", "--out", "lose=a.npy"], 2, "", "no value `lose`")
        self.check(["-c", "let loss = 1;", "--out", "loss"], 2, "", "NAME=FILE")

    def test_errors_of_the_program_come_first(self):
        self.check(["-c", "let a = b;", "--show", "c"], 1, "", "E0201")


class Inputs(Cli):
    def test_tensors(self):
        a = self.npy("a.npy", "f64", [1, 2], [1, 2])
        b = self.npy("b.npy", "f64", [2, 1], [10, 100])
        self.check(["-c", MATMUL, "--in", f"A={a}", "--in", f"B={b}"], 0,
                   "[i: 1, j: 1]\n[[210.0]]\n")

    def test_scalars(self):
        code = "let n: i32; let x: f64; let b: bool; print(n, x, b);"
        self.check(["-c", code, "--set", "n=-3", "--set", "x=1e-3", "--set", "b=true"], 0,
                   "-3 0.001 true\n")
        self.check(["-c", "let x: f32; print(x);", "--set", "x=inf"], 0, "inf\n")

    def test_scalar_from_a_file(self):
        n = self.npy("n.npy", "i32", [], [7])
        self.check(["-c", "let n: i32; print(n);", "--in", f"n={n}"], 0, "7\n")

    def test_missing(self):
        self.check(["-c", MATMUL], 3, "", "input `A` was not given a value")
        self.check(["-c", "let n: i32; print(n);"], 3, "", "input `n` was not given a value")

    def test_not_missed_when_not_needed(self):
        self.check(["-c", "let n: i32; print(1);"], 0, "1\n")

    def test_wrong_shape(self):
        code = "let x: [f32; n]; print(x);"
        matrix = self.npy("x.npy", "f32", [1, 2], [1, 2])
        for backend in ("ref", "native"):
            self.check(["-c", code, "--in", f"x={matrix}", "--backend", backend], 3, "", "`x`")
        long = self.npy("x.npy", "f32", [3], [1, 2, 3])
        self.check(["-c", "let x: [f32; 2]; print(x);", "--in", f"x={long}"], 3, "", "extent 3")

    def test_open_rank(self):
        code = "let x: [f32; ..batch, i]; let s[..batch] = sum[i](x[..batch, i]); print(s);"
        x = self.npy("x.npy", "f32", [1, 2], [1, 2])
        self.check(["-c", code, "--in", f"x={x}"], 0, "[batch_0: 1] [3.0]\n")
        self.check(["check", "-c", code, "--in", f"x={x}"], 0, "")
        self.check(["grad", "-c", code, "--in", f"x={x}"], 0,
                   "let x: [f32; batch_0, i];\n"
                   "let s[batch_0 in 0..batch_0] = sum[i in 0..i](x[batch_0, i]);\n"
                   "print(\"{s}\");\n")
        self.check(["check", "-c", code], 1, "", "E0407")
        self.check(["-c", code, "--in", "x=missing.npy"], 3, "", "missing.npy")

    def test_open_rank_that_does_not_fit(self):
        scalar = self.npy("x.npy", "f32", [], [1])
        code = "let x: [f32; *, i]; print(x);"
        self.check(["-c", code, "--in", f"x={scalar}"], 1, "", "has 0 coordinates, but its type has 1")
        matrix = self.npy("m.npy", "f32", [1, 1], [1])
        code = "let x: [f32; ..b, i]; let y: [f32; ..b]; print(x, y);"
        self.check(["-c", code, "--in", f"x={matrix}", "--in", f"y={matrix}"], 3, "", "`y`")
        code = "let x: [f32; ..a, ..b]; print(x);"
        self.check(["-c", code, "--in", f"x={matrix}"], 1, "", "two packs of unknown length")

    def test_wrong_type(self):
        x = self.npy("x.npy", "f64", [1], [1])
        for backend in ("ref", "native"):
            self.check(["-c", "let x: [f32; n]; print(x);", "--in", f"x={x}", "--backend", backend],
                       3, "", "f64")

    def test_values_that_are_no_values(self):
        for declared, value in (("i32", "1.5"), ("i32", "x"), ("i8", "300"), ("u8", "-1"),
                                ("bool", "1"), ("f32", "one"), ("i32", "")):
            with self.subTest(declared=declared, value=value):
                self.check(["-c", f"let x: {declared}; print(x);", "--set", f"x={value}"], 2, "",
                           "is not a value of type")

    def test_wrong_names(self):
        self.check(["-c", "let x: i32; print(x);", "--set", "y=1"], 2, "", "no value `y`")
        self.check(["-c", "let x = 1; print(x);", "--set", "x=2"], 2, "", "has a definition")
        self.check(["-c", "let x: [i32; n]; print(x);", "--set", "x=2"], 2, "", "--in x=FILE")
        self.check(["-c", "let x: i32; print(x);", "--set", "x"], 2, "", "NAME=VALUE")

    def test_broken_files(self):
        code = "let x: [f32; n]; print(x);"
        whole = pathlib.Path(self.npy("x.npy", "f32", [2], [1, 2])).read_bytes()
        for name, data in (("empty", b""), ("text", b"1 2 3\n"), ("short", whole[:-4]),
                           ("header", whole[:20]), ("magic", whole[:9])):
            path = self.path(name + ".npy")
            pathlib.Path(path).write_bytes(data)
            with self.subTest(name):
                self.check(["-c", code, "--in", f"x={path}"], 3, "", "error[E0808]: ")
        self.check(["-c", code, "--in", f"x={self.path('none.npy')}"], 3, "", "cannot read")


class Outputs(Cli):
    def show(self, code, names, *args):
        done = self.check(["-c", code, "--show", names, "--format", "json", *args], 0)
        return done.stdout.splitlines()

    def test_json_is_the_last_line(self):
        lines = self.show('print("hello"); let A[i, j] = [[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]];'
                          "let k = 3;", "A,k")
        self.assertEqual(lines[0], "hello")
        self.assertEqual(json.loads(lines[-1]), {
            "A": {"dtype": "f32", "coords": ["i", "j"], "shape": [2, 3],
                  "data": [[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]]},
            "k": {"dtype": "i32", "coords": [], "shape": [], "data": 3}})
        self.assertEqual(list(json.loads(lines[-1])), ["A", "k"])

    def test_json_without_names(self):
        value = json.loads(self.show("let a = [[1, 2]];", "a")[-1])["a"]
        self.assertEqual(value["coords"], [None, None])

    def test_json_of_non_finite_numbers(self):
        code = "let z = [0.0]; let a[i in 0..3] = (1.0 - i) / z[0];"
        value = json.loads(self.show(code, "a")[-1])["a"]
        self.assertEqual(value["data"], ["inf", "nan", "-inf"])

    def test_json_of_booleans_and_nothing(self):
        code = "let b = [true, false]; let e[i in 0..0] = 1; let f[i in 0..2, j in 0..0] = 1;"
        value = json.loads(self.show(code, "b,e,f")[-1])
        self.assertEqual(value["b"]["data"], [True, False])
        self.assertEqual((value["e"]["shape"], value["e"]["data"]), ([0], []))
        self.assertEqual((value["f"]["shape"], value["f"]["data"]), ([2, 0], [[], []]))

    def test_json_is_never_summarised(self):
        value = json.loads(self.show("let a[i in 0..5000] = i;", "a")[-1])["a"]
        self.assertEqual(value["data"], list(range(5000)))

    def test_json_keeps_every_digit(self):
        a = self.npy("a.npy", "f64", [1], [0.1 + 0.2])
        k = self.npy("k.npy", "i64", [1], [2**63 - 1])
        lines = self.show("let a: [f64; n]; let k: [i64; n];", "a,k", "--in", f"a={a}", "--in",
                          f"k={k}")
        value = json.loads(lines[-1])
        self.assertEqual(value["a"]["data"], [0.1 + 0.2])
        self.assertEqual(value["k"]["data"], [2**63 - 1])

    def test_text(self):
        self.check(["-c", "let a = 1; let b[i] = [1, 2];", "--show", "a,b"], 0,
                   "a = 1\nb = [i: 2] [1, 2]\n")

    def test_files(self):
        out = self.path("c.npy")
        self.check(["-c", "let C[i, j] = [[1.5, 2.5]];", "--out", f"C={out}"], 0, "")
        self.assertEqual(read_npy(out), ("<f4", (1, 2), [1.5, 2.5]))
        self.check(["-c", "let C = 7;", "--out", f"C={out}"], 0, "")
        self.assertEqual(read_npy(out), ("<i4", (), [7]))
        self.check(["-c", "let C: [bool; n] = [true, false];", "--out", f"C={out}"], 0, "")
        self.assertEqual(read_npy(out), ("|b1", (2,), [True, False]))

    def test_files_come_back(self):
        out = self.path("a.npy")
        for dtype in ("i8", "i16", "i32", "i64", "u8", "f32", "f64"):
            self.check(["-c", f"let a: [{dtype}; n] = [1, 2, 3];", "--out", f"a={out}"], 0, "")
            self.check(["-c", f"let a: [{dtype}; n]; print(sum[i](a[i] * 2) == 12);", "--in",
                        f"a={out}"], 0, "true\n")

    def test_unwritable(self):
        out = self.path("no/a.npy")
        self.check(["-c", "let a = 1;", "--out", f"a={out}"], 3, "", "cannot write")


class Backends(Cli):
    def test_the_same_values(self):
        code = "let h[0] = 1.0; let h[t in 1..5] = h[t - 1] * 1.5; print(h);"
        expected = "[t: 5] [1.0, 1.5, 2.25, 3.375, 5.0625]\n"
        for args in (["--backend", "ref"], ["--backend", "native"], ["-O0"], ["-O1"], ["-O3"]):
            with self.subTest(args):
                self.check(["run", "-c", code, *args], 0, expected)

    def test_processors(self):
        code = "let x = [0.5, 2.5, -1.5]; print(floor(x), round(x), exp(x) as [f16; n]);"
        expected = self.ein("-c", code).stdout
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        needs = {"native": [], "portable": [], "sse2": [], "avx2": ["avx2", "fma", "f16c"],
                 "avx512": ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"]}
        needs["avx512-bf16"] = [*needs["avx512"], "avx512_bf16"]
        for cpu, features in needs.items():
            with self.subTest(cpu):
                if all(f in flags for f in features):
                    self.check(["-c", code, "--cpu", cpu], 0, expected)
                else:
                    self.check(["-c", code, "--cpu", cpu], 2, "", "the best it supports is")
        emitted = self.check(["-c", code, "--cpu", "sse2", "--emit", "asm"], 0).stdout
        self.assertNotIn("ymm", emitted)

    def test_the_same_failures(self):
        code = "let i: i32; let x = [1, 2]; print(x[i]);"
        texts = {self.check(["-c", code, "--set", "i=2", *args], 3, "").stderr
                 for args in (["--backend", "ref"], ["-O0"], ["-O2"])}
        self.assertEqual(len(texts), 1, texts)

    def test_out_of_memory(self):
        code = "let x[i in 0..100000000000000] = i * 1.0; print(x);"
        for backend in ("ref", "native"):
            self.check(["-c", code, "--backend", backend], 3, "", "error[E0807]: out of memory")


class Checking(Cli):
    def test_fine(self):
        self.check(["check", "-c", "print(1);"], 0, "")

    def test_every_mistake(self):
        code = "let a = b;\nlet c = exo(1.0);\nlet d = 1 + true;"
        done = self.check(["check", "-c", code], 1, "")
        self.assertEqual(done.stderr.count("error[E"), 3)
        self.assertTrue(done.stderr.endswith("3 errors\n"))

    def test_warnings_are_fine(self):
        code = "let x = [1.0, 2.0]; let y = sum[k](x[k + 1]);"
        self.check(["check", "-c", code], 0, "", "warning[W0302]")

    def test_at_most_twenty(self):
        code = "".join(f"let a{i} = b{i};\n" for i in range(30))
        done = self.check(["check", "-c", code], 1, "", "10 more errors not shown")
        self.assertEqual(done.stderr.count("error[E"), 20)

    def test_human(self):
        self.assertEqual(self.check(["check", self.write("t.ein", "let a = bb;\n")], 1).stderr,
                         "error[E0201]: unknown name `bb`\n"
                         f" --> {self.path('t.ein')}:1:9\n"
                         "  |\n"
                         "1 | let a = bb;\n"
                         "  |         ^^\n\n"
                         "1 error\n")

    def test_short(self):
        done = self.check(["check", "-c", "let a = b;", "--error-format", "short"], 1, "")
        self.assertEqual(done.stderr.splitlines()[0],
                         "<command line>:1:9: error[E0201]: unknown name `b`")

    def test_json(self):
        code = "let a = b;\nlet c = d;"
        done = self.check(["check", "-c", code, "--error-format", "json"], 1, "")
        first, second = (json.loads(line) for line in done.stderr.splitlines())
        self.assertEqual((first["code"], first["severity"]), ("E0201", "error"))
        self.assertEqual(first["message"], "unknown name `b`")
        label = second["labels"][0]
        self.assertEqual([label[k] for k in ("line", "col", "start", "end", "primary")],
                         [2, 9, 19, 20, True])
        self.assertIn("error[E0201]", first["rendered"])

    def test_json_fix(self):
        code = "let A = [[1.0]]; let y[i] = A[i, k] * 2.0;"
        done = self.check(["check", "-c", code, "--error-format", "json"], 1, "")
        fix = json.loads(done.stderr)["fixes"][0]
        for edit in sorted(fix["edits"], key=lambda e: -e["start"]):
            code = code[:edit["start"]] + edit["replacement"] + code[edit["end"]:]
        self.assertEqual(code, "let A = [[1.0]]; let y[i] = sum[k](A[i, k] * 2.0);")
        self.check(["check", "-c", code], 0, "")


class Colours(Cli):
    def on_a_terminal(self, *args, env=None):
        """Standard error as it looks on a terminal."""
        leader, follower = pty.openpty()
        env = {k: v for k, v in {**os.environ, **(env or {})}.items() if v is not None}
        done = subprocess.run([EIN, "check", "-c", "let a = b;", *args], stderr=follower,
                              stdout=subprocess.DEVNULL, env=env, timeout=60)
        os.close(follower)
        text = os.read(leader, 65536).decode()
        os.close(leader)
        self.assertEqual(done.returncode, 1)
        return text

    def test_only_on_a_terminal(self):
        self.assertIn("\x1b[", self.on_a_terminal(env={"NO_COLOR": None}))
        self.assertNotIn("\x1b[", self.check(["check", "-c", "let a = b;"], 1).stderr)

    def test_no_color(self):
        self.assertNotIn("\x1b[", self.on_a_terminal(env={"NO_COLOR": "1"}))

    def test_option(self):
        self.assertNotIn("\x1b[", self.on_a_terminal("--color", "never"))
        done = self.check(["check", "-c", "let a = b;", "--color", "always"], 1)
        self.assertIn("\x1b[", done.stderr)


class Inside(Cli):
    def test_dump_after(self):
        code = "let x = 2.0; let y = x * x; let g = @y / @x; print(g);"

        def dump(name):
            return self.check(["check", "-c", code, "--dump-after", name], 0).stdout

        self.assertIn("(let y", dump("parse"))
        self.assertIn("@y / @x", dump("sema"))
        self.assertIn("@y / @x", dump("solve-gates"))
        self.assertNotIn("@", dump("autodiff"))
        wrong = 'let w = load("missing.npy"); let y = w * 2.0;'
        steps = "let x = 0.5; let h[0] = x; let h[t in 1..100] = sin(h[t - 1]); let d = @h[99] / @x; print(d);"
        whole, cut = (self.check(["check", "-c", steps, *limit, "--dump-after", "checkpoint"], 0).stdout
                      for limit in ([], ["--grad-memory", "100"]))
        self.assertGreater(cut.count("let "), whole.count("let "))  # segments have arrays of their own
        self.assertIn("(let y", self.check(["check", "-c", wrong, "--dump-after", "parse"], 1, None, "E0220").stdout)
        self.assertEqual(self.check(["check", "-c", wrong, "--dump-after", "sema"], 1, None, "E0220").stdout, "")

    def test_time_passes(self):
        done = self.check(["run", "-c", "print(1);", "--time-passes"], 0, "1\n", "ms")
        for name in ("parse", "sema", "autodiff"):
            self.assertIn(name, done.stderr)


class Grad(Cli):
    CODE = "let x: [f64; n]; let loss = sum[i](x[i] ** 2); let dx = @loss / @x; print(dx);"

    def test_prints_a_program_without_requests(self):
        printed = self.check(["grad", "-c", self.CODE], 0).stdout
        self.assertNotIn("@", printed)
        x = self.npy("x.npy", "f64", [2], [1, 3])
        again = self.write("printed.ein", printed)
        self.check([again, "--in", f"x={x}"], 0, "[n: 2] [2.0, 6.0]\n")
        self.assertEqual(self.check(["grad", again], 0).stdout, printed)

    def test_of_and_wrt(self):
        code = "let x: [f64; n]; let w: f64; let loss = sum[i](x[i] * w);"
        printed = self.check(["grad", "-c", code, "--of", "loss", "--wrt", "x,w"], 0).stdout
        x, w = self.npy("x.npy", "f64", [2], [1, 3]), self.npy("w.npy", "f64", [], [5])
        done = self.check([self.write("p.ein", printed), "--in", f"x={x}", "--in", f"w={w}",
                           "--show", "d_loss_d_x,d_loss_d_w", "--format", "json"], 0)
        value = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(value["d_loss_d_x"]["data"], [5.0, 5.0])
        self.assertEqual(value["d_loss_d_w"]["data"], 4.0)

    def test_by_a_record(self):
        code = "let x: { enc: { w: [f64; n], k: i32 }, b: f64 }; let loss = sum[i](x.enc.w[i] ** 2.0 * x.b);"
        printed = self.check(["grad", "-c", code, "--of", "loss", "--wrt", "x"], 0).stdout
        w = self.npy("w.npy", "f64", [2], [1, 3])
        done = self.check([self.write("p.ein", printed), "--in", f"x_enc_w={w}", "--set", "x_b=0.5", "--show",
                           "d_loss_d_x_enc_w,d_loss_d_x_b", "--format", "json"], 0)
        value = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(value["d_loss_d_x_enc_w"]["data"], [1.0, 3.0])
        self.assertEqual(value["d_loss_d_x_b"]["data"], 10.0)
        self.assertNotIn("x_b", self.check(["grad", "-c", code.replace(" * x.b", ""), "--of", "loss", "--wrt", "x.enc"], 0).stdout)
        self.assertIn("x_enc_w", self.check(["explain", "-c", code, "--of", "loss", "--wrt", "x"], 0).stdout)
        self.check(["grad", "-c", code, "--of", "loss", "--wrt", "x.enk"], 1, "", "did you mean `x.enc`?")
        self.check(["grad", "-c", code, "--of", "loss", "--wrt", "x.enc.k"], 1, "", "E0602")
        self.check(["gradcheck", "-c", code, "--of", "loss", "--wrt", "x"], 0)

    def test_mistakes(self):
        self.check(["grad", "-c", "let a = b;"], 1, "", "E0201")
        code = "let x = 1.0; let k = 2; let loss = x * x;"
        self.check(["grad", "-c", code, "--of", "los", "--wrt", "x"], 1, "", "did you mean `loss`?")
        self.check(["grad", "-c", code, "--of", "loss", "--wrt", "k"], 1, "", "E0602")


class Sizes(Cli):
    """Long and deep programs end in a result or a message, never in a fault."""

    def result(self, lines, value):
        self.check(["check", self.write("p.ein", "\n".join(lines))], 0, "")
        if value is not None:
            self.check(["run", "--backend", "ref", self.path("p.ein")], 0, value + "\n")

    def too_deep(self, text):
        self.check(["check", self.write("p.ein", text)], 1, "", "E0111")

    def test_chains_of_definitions(self):
        n = 3000
        backward = ["let x0 = 1.0;"] + [f"let x{i} = x{i - 1} + 1.0;" for i in range(1, n)]
        self.result(backward + [f'print("{{x{n - 1}}}");'], "3000.0")
        self.result(list(reversed(backward)) + [f'print("{{x{n - 1}}}");'], "3000.0")

    def test_locals(self):
        n = 1000
        body = ["let a0 = x;"] + [f"let a{i} = a{i - 1} + 1.0;" for i in range(1, n)]
        self.result(["fn f(x) {", *body, f"a{n - 1}", "}", "let y = f(1.0);", 'print("{y}");'], "1000.0")

    def test_clauses(self):
        n = 3000
        clauses = [f"let f[{i}] = {i}.0;" for i in range(n)]
        self.result(clauses + ['print("{f[2999]}");'], "2999.0")
        self.result(clauses[::-1] + ['print("{f[2999]}");'], "2999.0")
        hole = clauses[:1500] + clauses[1501:]
        self.check(["check", self.write("p.ein", "\n".join(hole))], 1, "", "nothing defines f[1500]")

    def test_chains_in_expressions(self):
        n = 100000
        for text in ["let y = " + " + ".join(["1.0"] * n), "let y = " + "(" * n + "1.0" + ")" * n,
                     "let y = 1" + " as i32" * n, "let x = (1, 2);\nlet y = x" + ".0" * n,
                     "let x: [f32; 2];\nlet y = x" + "[0]" * n, "let y = 1.0" + " where true" * n,
                     "let y = " + "if true { 1.0 } else " * n + "{ 0.0 }"]:
            self.too_deep(text + ";\n")

    def both(self, lines, value):
        """The same answer from both back ends."""
        path = self.write("p.ein", "\n".join(lines) + "\n")
        for backend in ("ref", "native"):
            self.check(["run", "--no-cache", "--backend", backend, path], 0, value + "\n")

    def test_long_expressions(self):
        """20,000 operators are accepted, and 5,000 `else if`s."""
        n = 20000
        self.both(["let a[i in 0..2] = i + 1;", "let y = " + " + ".join(f"a[{i % 2}]" for i in range(n)) + ";",
                   "let b = [true, false];", "let z = " + " || ".join(["b[1]"] * n) + ";", 'print("{y} {z}");'],
                  "30000 false")
        arms = "".join(f"if k[i] == {i} {{ {i} }} else " for i in range(5000))
        self.both(["let k[i in 0..3] = i * 2499;", f"let y[i] = {arms}{{ -1 }};", 'print("{y[0]} {y[1]} {y[2]}");'],
                  "0 2499 4998")

    def test_arms(self):
        n = 3000
        arms = [f"{i} => {i % 7}," for i in range(n)]
        self.both(["let k[i in 0..3] = i * 2000;", "let y[i] = match k[i] {", *arms, "_ => -1 };",
                   'print("{y[0]} {y[1]} {y[2]}");'], "0 5 -1")
        pairs = [f"({i}, {i % 3}) => {i}," for i in range(n)]
        self.both(["let k[i in 0..3] = i * 2;", "let y[i] = match (k[i], k[i]) {", *pairs, "(_, 4) => -4,", "_ => -1 };",
                   'print("{y[0]} {y[1]} {y[2]}");'], "0 2 -4")
        self.check(["check", self.write("p.ein", "let k = 3;\nlet y = match k {\n" + "\n".join(arms + arms[:1]) +
                                        "\n_ => 0 };\n")], 0, "", "W0501")

    def test_boxes(self):
        """Ranges in any order, one over others, and the hole that is left."""
        n = 1000
        boxes = [f"let f[i in {10 * i}..{10 * i + 10}] = {i};" for i in range(n)]
        shuffled = [boxes[i * 377 % n] for i in range(n)]
        shown = 'print("{f[0]} {f[4995]} {f[9999]}");'
        self.both(shuffled + [shown], "0 499 999")
        self.both(shuffled + ["let f[i in 4990..5005] = -1;", shown], "0 -1 999")
        self.both([f"let f[i in 0..{10 * n}] = -2;"] + shuffled[1:] + [shown], "-2 499 999")
        hole = [b for b in shuffled if "4990..5000" not in b]
        self.check(["check", self.write("p.ein", "\n".join(hole))], 1, "", "nothing defines f[i in 4990..5000]")

    def test_shared_derivatives(self):
        """What is read twice is written once, however often it is read on."""
        n = 60
        lines = ["let x0 = 2.0;", "let x1 = 1.0;"] + [f"let x{i} = x{i - 1} * x{i - 2};" for i in range(2, n)]
        lines += ["let d = @x19 / @x0;", 'print("{d}");', f"let e = @x{n - 1} / @x0;"]
        fibonacci = [0, 1]
        while len(fibonacci) < n:
            fibonacci.append(fibonacci[-1] + fibonacci[-2])
        power = fibonacci[18]  # x19 is x0 to that
        self.both([line.replace("2.0;", "1.0;") for line in lines], f"{power}.0")
        printed = self.ein("grad", self.write("p.ein", "\n".join(lines))).stdout
        self.assertLess(max(map(len, printed.splitlines())), 1000)

    def test_calls(self):
        """How many calls may be made grows with the program (E0215)."""
        n = 25000
        lines = ["fn f(x) { x + 1.0 }", "let x = 1.0;"] + [f"let y{i} = f(x);" for i in range(n)]
        self.check(["check", self.write("p.ein", "\n".join(lines))], 0, "", "")

    def test_inputs(self):
        """Every input brings extents and constraints of its own."""
        lines = []
        for i in range(2000):
            lines += [f"let A{i}: [f32; n{i}, m{i}];", f"let v{i}: [f32; k{i}];",
                      f"let s{i}[i] = sum[j](A{i}[i, j] * v{i}[j]);", f"let t{i}[i] = v{i}[i + 1] - v{i}[i];"]
        self.check(["check", self.write("p.ein", "\n".join(lines))], 0, "")

    def test_long_line(self):
        """A message shows the part of a long line that it is about."""
        line = "let y = [" + "1.0, " * 20000 + "oops, " + "1.0, " * 20000 + "];\n"
        done = self.ein("check", self.write("p.ein", line))
        self.assertEqual(done.returncode, 1)
        self.assertLess(len(done.stderr), 2000)
        self.assertRegex(done.stderr, r"…(1\.0, |\.0, |0, |, | )?(1\.0, )+oops, (1\.0, )+.*…\n +\| +\^\^\^\^")

    def test_requests(self):
        n = 300
        lines = ["let x = 3.0;"]
        for i in range(n):
            lines += [f"let y{i} = x * x;", f"let d{i} = @y{i} / @x;"]
        self.result(lines + ['print("{d0} {d299}");'], "6.0 6.0")


if __name__ == "__main__":
    EIN = sys.argv.pop(1)
    unittest.main()
