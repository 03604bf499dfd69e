"""Between a program and the world: output that does not arrive, threads and memory that are not there, what files are
written like, and which files a program may reach. Usage: test_outside.py EIN"""

import json
import os
import pathlib
import pwd
import resource
import shutil
import stat
import subprocess
import sys
import threading
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

GRAD = "let x = [1.0, 2.0];\nlet loss = sum[i](x[i] ** 2.0);\nlet g = @loss / @x;\nprint(g);\n"
MODULE = "/// Twice `x`.\n///\n/// ```ein\n/// assert(twice(2.0) == 4.0);\n/// ```\npub fn twice(x: f32) -> f32 {\n    2.0 * x\n}\n"


class Output(Cli):
    """Nothing that a verb says is lost silently."""

    def verbs(self):
        a, m = self.write("a.ein", GRAD), self.write("m.ein", MODULE)
        t = self.write("t.ein", 'test "one" {\n    assert(1 == 1);\n}\n')
        bad = self.write("bad.ein", "let  y=1;\n")
        yield "run", ["run", a]
        yield "run --show", ["run", a, "--show", "g"]
        yield "run json", ["run", a, "--show", "g", "--format", "json"]
        yield "run --backend ref", ["run", a, "--backend", "ref"]
        for stage in ("plan", "loops", "llvm", "asm"):
            yield "run --emit " + stage, ["run", a, "--emit", stage]
        yield "save", ["run", "-c", 'save("/dev/stdout", "text");']
        yield "check --facts", ["check", a, "--facts"]
        yield "check --facts json", ["check", a, "--facts", "--format", "json"]
        yield "--dump-after", ["check", a, "--dump-after", "sema"]
        yield "grad", ["grad", a]
        yield "explain", ["explain", a]
        yield "explain json", ["explain", a, "--format", "json"]
        yield "explain a code", ["explain", "E0301"]
        yield "explain all", ["explain"]
        yield "audit", ["audit", a]
        yield "audit json", ["audit", a, "--format", "json"]
        yield "gradcheck", ["gradcheck", a]
        yield "gradcheck json", ["gradcheck", a, "--format", "json"]
        yield "fmt -", ["fmt", "-"]
        yield "fmt --check", ["fmt", "--check", bad]
        yield "fix", ["fix", a]
        yield "fix -", ["fix", "-"]
        yield "test", ["test", t]
        yield "doc", ["doc", m]
        yield "doc json", ["doc", m, "--format", "json"]
        yield "doc --out", ["doc", m, "--out", self.path("pages")]
        yield "bench", ["bench", a, "--repeat", "1", "--no-peaks"]
        yield "bench json", ["bench", a, "--repeat", "1", "--no-peaks", "--format", "json"]
        for stage in ("core", "loops", "llvm", "asm"):
            yield "build --emit " + stage, ["build", a, "--emit", stage]
        yield "new", ["new", self.path("fresh")]
        yield "--version", ["--version"]
        yield "--help", ["--help"]
        yield "run --help", ["run", "--help"]

    def lost(self, args, why, **more):
        done = subprocess.run([test_cli.EIN, *args], stdin=subprocess.PIPE if "stdin" not in more else more.pop("stdin"),
                              stderr=subprocess.PIPE, text=True, timeout=60, **more)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"error[E0808]: cannot write to standard output: {why}", done.stderr)

    def test_a_full_disk(self):
        for name, args in self.verbs():
            with self.subTest(name), open("/dev/full", "w") as full:
                shutil.rmtree(self.path("fresh"), ignore_errors=True)
                subject = "print(1);\n"
                done = subprocess.run([test_cli.EIN, *args], input=subject, stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, cwd=self.folder.name)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("No space left on device", done.stderr)

    def test_closed(self):
        for name, args in self.verbs():
            with self.subTest(name):
                shutil.rmtree(self.path("fresh"), ignore_errors=True)
                done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', test_cli.EIN, *args], input="print(1);\n",
                                      stderr=subprocess.PIPE, text=True, timeout=60, cwd=self.folder.name)
                if name == "save":  # there is nothing behind that name
                    self.assertIn(done.returncode, (3, 1), done.stderr)
                    continue
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("error[E0808]: cannot write to standard output: Bad file descriptor", done.stderr)

    def test_a_pipe_that_nobody_reads(self):
        a = self.write("a.ein", GRAD)
        for args in (["run", a], ["grad", a], ["explain"], ["--help"], ["build", a, "--emit", "asm"]):
            read, write = os.pipe()
            os.close(read)
            with self.subTest(args):
                done = subprocess.run([test_cli.EIN, *args], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("cannot write to standard output: Broken pipe", done.stderr)
            os.close(write)

    def test_more_than_a_buffer(self):
        code = "let x[i in 0..900, j in 0..900] = i + j;\nprint(x);\n" + "print(x[0, 0]);\n" * 3000
        with open("/dev/full", "w") as full:
            done = subprocess.run([test_cli.EIN, "-"], input=code, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr.count("cannot write")), (3, 1), done.stderr)
        self.assertIn("No space left on device", done.stderr)

    def test_as_json(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([test_cli.EIN, "-c", "print(1);", "--error-format", "json"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, json.loads(done.stderr)["code"]), (3, "E0808"))

    def test_no_file_takes_the_place_of_a_closed_stream(self):
        x = self.npy("x.npy", "f32", [2], [1.0, 2.0])
        for closed in (">&-", "2>&-", "<&-", ">&- 2>&-"):
            out = self.path("o.npy")
            subprocess.run(["sh", "-c", f'exec "$0" "$@" {closed}', test_cli.EIN, "-c",
                            "let x: [f32; n]; print(x); let y = x * 2.0;", "--in", f"x={x}", "--out", f"y={out}"],
                           capture_output=True, timeout=60)
            self.assertEqual(numpy.load(out).tolist(), [2.0, 4.0])
            os.unlink(out)

    def test_without_standard_error(self):
        for args, status in ((["-c", "print(x);"], 1), (["run"], 2), (["-c", "assert(1 > 2);"], 3), (["-c", "print(1);"], 0)):
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" 2>&-', test_cli.EIN, *args], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, status)

    def test_a_verb_that_says_nothing(self):
        a = self.write("a.ein", GRAD)
        with open("/dev/full", "w") as full:
            done = subprocess.run([test_cli.EIN, "check", a], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_files_are_saved_all_the_same(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([test_cli.EIN, "-c", 'print(1); save("o.csv", [1, 2]);'], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60, cwd=self.folder.name)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(pathlib.Path(self.path("o.csv")).read_text(), "1\n2\n")


class Sources(Cli):
    def test_an_empty_file_is_an_empty_program(self):
        empty = self.write("a.ein", "")
        for args in (["run", empty], ["check", empty], ["fmt", empty], ["grad", empty], [empty, "--backend", "ref"]):
            self.check(args, 0, "")
        self.check(["-"], 0, "", stdin="")
        self.check(["-c", ""], 0, "")
        self.check(["test", empty], 0, "0 passed, 0 failed\n")

    def test_an_empty_module(self):
        self.write("m.ein", "")
        self.check([self.write("a.ein", "use m::f;\nprint(f(1));\n")], 1, "", "E0212")

    def test_the_reason_is_said(self):
        self.check(["run", self.path("none.ein")], 2, "", "none.ein`: No such file or directory")
        self.check(["run", self.folder.name], 2, "", "Is a directory")

    def test_a_pipe_is_a_source(self):
        done = subprocess.run(["bash", "-c", '"$0" run <(echo "print(7);")', test_cli.EIN], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "7\n"), done.stderr)


SHARED = "let x[i in 0..4000000] = sin(i as f32);\nlet s = sum[i](x[i] * x[i]);\nprint(\"{s:.0f}\");\n"


class Threads(Cli):
    NOTE = "note: ran with "

    def test_an_address_space_too_small_for_all(self):
        program = self.write("a.ein", SHARED)
        want = self.check([program], 0).stdout
        fewer = 0
        for kilobytes in (250000, 300000, 350000, 400000, 500000, 700000):
            size = kilobytes << 10
            done = subprocess.run([test_cli.EIN, program, "--threads", "64"], capture_output=True, text=True, timeout=60,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
            with self.subTest(kilobytes):
                self.assertIn(done.returncode, (0, 3), done.stderr)
                if done.returncode == 3:
                    self.assertIn("E0807", done.stderr)
                    continue
                self.assertEqual(done.stdout, want)
                fewer += self.NOTE in done.stderr
        self.assertGreater(fewer, 0, "no limit was between none and all of the threads")

    def test_no_more_processes(self):
        program = self.write("a.ein", SHARED)
        want = self.check([program], 0).stdout
        user = pwd.getpwnam("nobody")
        ein = test_cli.EIN
        if os.geteuid() == 0:  # nothing limits root
            os.chmod(self.folder.name, 0o755)
            ein = shutil.copy(test_cli.EIN, self.path("ein"))
            os.chmod(ein, 0o755)

        def limited():
            if os.geteuid() == 0:
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        for more in ([], ["--progress", "always"]):
            done = subprocess.run([ein, program, "--threads", "8", "--no-cache", *more], capture_output=True, text=True,
                                  timeout=60, preexec_fn=limited, cwd="/")
            self.assertEqual((done.returncode, done.stdout), (0, want), done.stderr)
            self.assertIn("note: ran with 1 thread instead of 8: Resource temporarily unavailable", done.stderr)


class Memory(Cli):
    def test_every_limit(self):
        """Whatever the limit: the answer, or E0807; never a fault. 127: the loader itself found no room. Below the size of the
        binary the system does not start it."""
        least = (os.path.getsize(test_cli.EIN) >> 20) + 1
        programs = {"print(1);\n": "1\n", GRAD: "[2] [2.0, 4.0]\n"}
        for code, want in programs.items():
            program = self.write("a.ein", code)
            for megabytes in range(least, 400, 12):
                size = megabytes << 20
                done = subprocess.run([test_cli.EIN, program, "--no-cache"], capture_output=True, text=True, timeout=60,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
                with self.subTest(code=code, megabytes=megabytes):
                    self.assertIn(done.returncode, (0, 3, 127), done.stderr)
                    if done.returncode == 3:
                        self.assertIn("error[E0807]: out of memory", done.stderr)
                    if done.returncode == 0:
                        self.assertEqual(done.stdout, want)


class Saved(Cli):
    """How files are written, whoever writes them."""

    def save(self, path, status=0, **more):
        return subprocess.run([test_cli.EIN, "-c", f"save({json.dumps(path)}, [1, 2]);"], capture_output=True, text=True,
                              timeout=60, cwd=self.folder.name, **more)

    def test_the_mode_stays(self):
        for mode in (0o600, 0o640, 0o666, 0o755):
            path = pathlib.Path(self.write("o.csv", "old"))
            path.chmod(mode)
            self.assertEqual(self.save("o.csv").returncode, 0)
            self.assertEqual((stat.S_IMODE(path.stat().st_mode), path.read_text()), (mode, "1\n2\n"))
        new = pathlib.Path(self.path("n.csv"))
        self.save("n.csv", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(stat.S_IMODE(new.stat().st_mode), 0o640)

    def test_through_links(self):
        os.mkdir(self.path("below"))
        target = self.write("below/o.csv", "old")
        os.symlink("below/o.csv", self.path("l.csv"))
        os.symlink("l.csv", self.path("ll.csv"))
        os.symlink("below/new.csv", self.path("dangling.csv"))
        self.assertEqual(self.save("ll.csv").returncode, 0)
        self.assertEqual(pathlib.Path(target).read_text(), "1\n2\n")
        self.assertEqual(self.save("dangling.csv").returncode, 0)
        self.assertEqual(pathlib.Path(self.path("below/new.csv")).read_text(), "1\n2\n")
        for name in ("l.csv", "ll.csv", "dangling.csv"):
            self.assertTrue(os.path.islink(self.path(name)))
        os.symlink("loop.csv", self.path("loop.csv"))
        done = self.save("loop.csv")
        self.assertEqual(done.returncode, 3)
        self.assertIn("links", done.stderr)

    def test_pipes_and_devices(self):
        os.mkfifo(self.path("p.csv"))
        got = []
        reader = threading.Thread(target=lambda: got.append(pathlib.Path(self.path("p.csv")).read_text()))
        reader.start()
        self.assertEqual(self.save("p.csv").returncode, 0)
        reader.join(20)
        self.assertEqual(got, ["1\n2\n"])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("p.csv")).st_mode))
        self.check(["-c", 'save("/dev/null", "text");'], 0, "")
        self.check(["-c", 'print("a"); save("/dev/stdout", "b\\n"); print("c");'], 0, "a\nb\nc\n")
        done = self.ein("-c", 'save("/dev/stderr", "told\\n");')
        self.assertEqual((done.returncode, done.stderr), (0, "told\n"))
        self.check(["grad", "-c", "print(1);"], 0)

    def test_standard_output_in_a_file(self):
        with open(self.path("all.txt"), "w") as out:
            subprocess.run([test_cli.EIN, "-c", 'print("a"); save("/dev/stdout", "b\\n"); print("c");'], stdout=out, check=True)
        self.assertEqual(pathlib.Path(self.path("all.txt")).read_text(), "a\nb\nc\n")

    def test_a_folder_in_the_way(self):
        os.mkdir(self.path("o.csv"))
        done = self.save("o.csv")
        self.assertEqual(done.returncode, 3)
        self.assertIn("it is a folder", done.stderr)

    def test_a_file_that_may_not_be_written(self):
        path = pathlib.Path(self.write("o.csv", "old"))
        path.chmod(0o444)
        done = self.save("o.csv")
        if os.geteuid() != 0:  # root may
            self.assertEqual((done.returncode, path.read_text()), (3, "old"))
            self.assertIn("Permission denied", done.stderr)

    def test_nothing_else_is_touched(self):
        for name in ("o.csv", "p"):
            self.write(name + ".1.part", "mine")
            self.write(name + ".o", "mine")
        self.save("o.csv")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["o.csv", "o.csv.1.part", "o.csv.o", "p.1.part", "p.o"])
        program = self.write("p.ein", "print(1);\n")
        self.check(["build", program, "-o", self.path("p"), "--emit", "exe"], 0, "")
        self.assertEqual(pathlib.Path(self.path("p.o")).read_text(), "mine")

    def test_every_writer(self):
        """fmt, fix, doc, explain and --out write like save does."""
        def writers():
            yield "a.ein", ["fmt", "link"], "let  a=1;\n"
            yield "a.npy", ["run", "-c", "let x = [1.0];", "--out", "x=link.npy"], ""
            yield "a.html", ["explain", "-c", GRAD, "--html", "link"], ""
            yield "a.txt", ["build", "-c", "print(1);", "--emit", "core", "-o", "link"], ""
        for name, args, text in writers():
            with self.subTest(args=args):
                path = pathlib.Path(self.write(name, text))
                path.chmod(0o640)
                link = pathlib.Path(self.path("link.npy" if "x=link.npy" in args else "link"))
                link.unlink(missing_ok=True)
                link.symlink_to(name)
                done = subprocess.run([test_cli.EIN, *args], capture_output=True, text=True, cwd=self.folder.name, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(link.is_symlink())
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
                self.assertNotEqual(path.read_bytes(), text.encode())


class Access(Cli):
    """What a program that nobody has read may reach."""

    def setUp(self):
        super().setUp()
        root = pathlib.Path(os.path.realpath(self.folder.name))
        self.here, self.program, self.other = root / "here", root / "program", root / "other"
        for folder in (self.here, self.program, self.other):
            folder.mkdir()
            numpy.save(folder / "x.npy", numpy.array([1.0], "f4"))

    def go(self, source, *more, verb="run"):
        path = self.program / "a.ein"
        path.write_text(source)
        return subprocess.run([test_cli.EIN, verb, *more, str(path)], capture_output=True, text=True, timeout=60,
                              cwd=self.here)

    def refused(self, done, status, *parts):
        self.assertEqual(done.returncode, status, done.stderr)
        for part in ("error[E0811]", *parts):
            self.assertIn(part, done.stderr)

    def test_load(self):
        os.symlink(self.other / "x.npy", self.program / "link.npy")
        os.symlink(self.other, self.program / "folder")
        for path in ("../other/x.npy", str(self.other / "x.npy"), "link.npy", "folder/x.npy", "../other/none.npy",
                     "/etc/passwd.npy"):
            with self.subTest(path):
                source = f'let x = load("{path}");\nprint(x);\n'
                real = self.other / pathlib.Path(path).name.replace("link", "x") if "etc" not in path else "/etc/passwd.npy"
                self.refused(self.go(source), 1, f"`{real}`" if "etc" not in path else "/etc/passwd.npy",
                             f"--allow-read={pathlib.Path(real).parent}", "--> ", ":1:")
        for path in ("x.npy", str(self.program / "x.npy"), str(self.here / "x.npy"), "../here/x.npy"):
            self.assertEqual(self.go(f'print(load("{path}"));\n').stdout, "[1] [1.0]\n", path)
        source = 'print(load("../other/x.npy"));\n'
        for allowed in (self.other, self.other / "x.npy", self.other.parent, "../other", self.program / "folder"):
            self.assertEqual(self.go(source, f"--allow-read={allowed}").stdout, "[1] [1.0]\n", allowed)
        self.refused(self.go(source, f"--allow-write={self.other}"), 1)
        done = self.go(source, "--allow-read=/no/such/folder")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--allow-read needs a folder or a file that exists, got `/no/such/folder`", done.stderr)

    def test_a_name_that_only_begins_alike(self):
        more = self.here.parent / "program2"
        more.mkdir()
        numpy.save(more / "x.npy", numpy.array([1.0], "f4"))
        self.refused(self.go('print(load("../program2/x.npy"));\n'), 1)
        self.refused(self.go('print(load("../program2/x.npy"));\n', f"--allow-read={self.program}"), 1)

    def test_every_verb_that_reads_headers(self):
        source = 'let x: [f32; i] = load("../other/x.npy");\nlet loss = sum[i](x[i] ** 2.0);\nlet g = @loss / @x;\n' \
                 'test "it" {\n    assert(loss > 0.0);\n}\n\n/// One.\npub fn one() {\n    1\n}\n'
        for verb, *more in (["run"], ["check"], ["grad"], ["explain"], ["audit"], ["gradcheck"], ["bench", "--no-peaks"],
                            ["build", "--emit", "core"], ["fix"], ["test"]):
            with self.subTest(verb):
                self.refused(self.go(source, *more, verb=verb), 1)
                done = self.go(source, *more, f"--allow-read={self.other}", verb=verb)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_examples_of_a_module(self):
        def module(line):
            return f'/// One.\n///\n/// ```ein\n/// {line}\n/// ```\npub fn one() {{\n    1\n}}\n'
        for verb in ("doc", "test"):
            self.refused(self.go(module('print(load("../other/x.npy"));'), verb=verb), 1)
            done = self.go(module('save("../other/y.csv", [1]);'), verb=verb)
            self.assertEqual(done.returncode, 1)
            self.assertIn("may not write", done.stderr + done.stdout)
            self.assertFalse((self.other / "y.csv").exists())
            self.assertEqual(self.go(module('save("../other/y.csv", [1]);'), "--allow-write=../other", verb=verb).returncode, 0)
            (self.other / "y.csv").unlink()

    def test_save(self):
        os.symlink(self.other, self.here / "folder")
        os.symlink(self.other / "new.csv", self.here / "dangling.csv")
        (self.other / "old.csv").write_text("old")
        os.symlink(self.other / "old.csv", self.here / "link.csv")
        for path in ("../other/new.csv", str(self.other / "new.csv"), "folder/new.csv", "dangling.csv", "link.csv",
                     str(self.program / "new.csv"), "folder/../new.csv"):
            with self.subTest(path):
                done = self.go(f'print("ran");\nsave("{path}", [1]);\n')
                self.refused(done, 3, "--allow-write=", "outside the current folder", ":2:1")
                self.assertEqual(done.stdout, "")  # known before anything happens
        self.assertEqual(sorted(os.listdir(self.other)), ["old.csv", "x.npy"])
        self.assertEqual((self.other / "old.csv").read_text(), "old")
        for path in ("new.csv", "./new.csv", str(self.here / "new.csv"), "folder/../here/new.csv"):
            self.assertEqual(self.go(f'save("{path}", [1]);\n').returncode, 0, path)
        for path in ("folder/new.csv", "dangling.csv", "../other/new.csv"):
            self.assertEqual(self.go(f'save("{path}", [1]);\n', "--allow-write", str(self.other)).returncode, 0, path)
            (self.other / "new.csv").unlink()
        self.refused(self.go('save("../other/t.txt", "text");\n'), 3)

    def test_what_the_command_line_names(self):
        out = self.other / "y.npy"
        done = self.go("let x: [f32; n];\nlet y = x * 2.0;\n", "--in", f"x={self.other / 'x.npy'}", "--out", f"y={out}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(numpy.load(out).tolist(), [2.0])

    def test_modules_come_from_the_programs_folder(self):
        (self.program / "m.ein").write_text('pub fn f() {\n    load("x.npy")\n}\n')
        self.assertEqual(self.go("use m::f;\nprint(f());\n").stdout, "[1] [1.0]\n")
        (self.program / "m.ein").write_text('pub fn f() {\n    load("../other/x.npy")\n}\n')
        self.refused(self.go("use m::f;\nprint(f());\n"), 1, "m.ein:2:")


class Library(Cli):
    """What library functions would have to leave out is an error, already when compiling where extents are known."""

    def test_known_extents(self):
        self.check(["check", "-c", "use std::array::rows_of; let x[k] = [1.0, 2.0, 3.0]; print(rows_of(x, 2));"], 1, "",
                   "3 cells are no rows of 2")
        self.check(["check", "-c", "use std::array::top_k; let x[k] = [1.0, 2.0]; let (v, at) = top_k[k](x, 3); print(v);"], 1,
                   "", "E0317")


class Csv(Cli):
    def load(self, text, *more):
        self.write("x.csv", text)
        done = subprocess.run([test_cli.EIN, "-c", f'print(load("x.csv"{"".join(more)}));'], capture_output=True, text=True,
                              cwd=self.folder.name, timeout=60)
        return done.returncode, done.stdout if done.returncode == 0 else done.stderr

    def test_no_number_is_a_heading(self):
        self.assertEqual(self.load("a,b\n1,2\n"), (0, "[1, 2]\n[[1, 2]]\n"))
        self.assertEqual(self.load(",b\n1,2\n"), (0, "[1, 2]\n[[1, 2]]\n"))
        for first in ("1,b", "a,2", "1.5,x", "true,x", "nan,x", "3,4x"):
            status, said = self.load(first + "\n3,4\n")
            self.assertEqual(status, 1, said)
            self.assertIn("is not a number, but other cells of the line are", said)
            self.assertIn('load("…", headings = true)', said)
        status, said = self.load("1,\n3,4\n")
        self.assertIn("line 1 has an empty cell", said)

    def test_headings_that_are_asked_for(self):
        for first in ("2019,2020", "1,b", "a,b", "x,"):
            self.assertEqual(self.load(first + "\n3,4\n", ', headings = true'), (0, "[1, 2]\n[[3, 4]]\n"))
        self.assertIn("no numbers", self.load("1,2\n", ', headings = true')[1])
        x = self.write("x.csv", "2019,2020\n3,4\n")
        code = "let x: [f32; r, c]; print(x);"
        self.check(["-c", code, "--in", f"x={x}", "--csv-headings"], 0, "[r: 1, c: 2]\n[[3.0, 4.0]]\n")
        self.check(["-c", code, "--in", f"x={x}"], 0, "[r: 2, c: 2]\n[[2019.0, 2020.0],\n [3.0, 4.0]]\n")

    def test_numbers_that_do_not_fit(self):
        for dtype, cell in (("f16", "70000"), ("bf16", "3.4e38"), ("f32", "1e39"), ("f16", "-1e9")):
            x = self.write("x.csv", cell + "\n")
            self.check(["-c", f"let x: [{dtype}; n]; print(x);", "--in", f"x={x}", "--backend", "ref"], 3, "",
                       f"`{cell}` is not a value of type {dtype}")
            self.check(["-c", f"let x: {dtype}; print(x);", "--set", f"x={cell}", "--backend", "ref"], 2, "",
                       f"`{cell}` is not a value of type {dtype}")
        self.assertIn("line 1: `1e400` is not a number", self.load("1e400\n3\n")[1])  # and no heading
        self.check(["-c", "let x: f64; print(x);", "--set", "x=1e400"], 2, "", "`1e400` is not a value of type f64")


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
