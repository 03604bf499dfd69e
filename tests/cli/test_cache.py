"""The cache of compiled programs: a hit compiles nothing and gives the same, and nothing that can be wrong with the
cache is ever more than a miss. Usage: test_cache.py EIN"""

import concurrent.futures
import os
import pathlib
import re
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from test_cli import Cli  # noqa: E402

PROGRAM = """let x: [f64; n];
let h[0] = 1.0;
let h[t in 1..20] = h[t - 1] * 0.5 + x[t % 2];
let loss = sum[t](h[t] ** 2.0);
let g = @loss / @x;
print("loss {loss:.6f}");
print(g);
"""
STATS = re.compile(r"^cache: (\d+) found, (\d+) missed, (\d+) stored; compiled (\d+)$", re.M)
HIT, MISS = (1, 0, 0, 0), (0, 1, 1, 1)


class Cache(Cli):
    def setUp(self):
        super().setUp()
        self.cache = pathlib.Path(self.path("cache"))
        self.program = self.write("p.ein", PROGRAM)
        self.x = self.npy("x.npy", "f64", [2], [0.25, -0.75])

    def run_program(self, *more, env=None, program=None):
        """(what it printed, what the cache did)."""
        done = self.ein("run", program or self.program, "--in", f"x={self.x}", "--cache-stats", *more,
                        env={"EINLANG_CACHE": str(self.cache), **(env or {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        found = STATS.search(done.stderr)
        self.assertEqual(STATS.sub("", done.stderr).strip(), "")
        return done.stdout, tuple(map(int, found.groups())) if found else None

    def entries(self):
        return sorted(self.cache.glob("*.eincache*"))

    def test_a_hit_compiles_nothing(self):
        cold, what = self.run_program()
        self.assertEqual(what, MISS)
        warm, what = self.run_program()
        self.assertEqual(what, HIT)
        self.assertEqual(cold, warm)
        self.assertEqual(cold, self.run_program("--backend", "ref")[0])
        self.assertEqual(len(self.entries()), 1)

    def test_another_shape_is_a_hit(self):
        self.run_program()
        self.x = self.npy("x.npy", "f64", [3], [0.25, -0.75, 4.0])
        self.assertEqual(self.run_program()[1], HIT)

    def test_what_decides_the_code_decides_the_name(self):
        self.run_program()
        self.assertEqual(self.run_program("-O0")[1], MISS)
        self.assertEqual(self.run_program("--show", "h")[1], MISS)
        self.write("p.ein", PROGRAM.replace("0.5", "0.25"))
        self.assertEqual(self.run_program()[1], MISS)
        # A message would point elsewhere.
        self.write("p.ein", "// moved\n" + PROGRAM)
        self.assertEqual(self.run_program()[1], MISS)

    def test_no_cache(self):
        self.assertEqual(self.run_program("--no-cache")[1], None)
        self.assertEqual(self.run_program(env={"EINLANG_CACHE": "off"})[1], None)
        self.assertFalse(self.cache.exists())

    def test_where_it_is(self):
        home = pathlib.Path(self.path("home"))
        env = {"EINLANG_CACHE": "", "XDG_CACHE_HOME": "", "HOME": str(home)}
        self.run_program(env=env)
        self.assertEqual(len(list((home / ".cache" / "einlang").iterdir())), 1)
        xdg = pathlib.Path(self.path("xdg"))
        self.run_program(env={**env, "XDG_CACHE_HOME": str(xdg)})
        self.assertEqual(len(list((xdg / "einlang").iterdir())), 1)
        self.assertEqual(self.run_program(env={**env, "HOME": ""})[1], None)

    def test_damaged_entries(self):
        cold, _ = self.run_program()
        entry = self.entries()[0]
        whole = entry.read_bytes()
        damaged = [b"", whole[:7], whole[:48], whole[:len(whole) // 2], whole[:-1], whole + b"x",
                   b"einlang!" + whole[8:], bytes(len(whole))]
        damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
                    for at in range(0, len(whole), max(1, len(whole) // 12))]
        for i, data in enumerate(damaged):
            with self.subTest(i):
                entry.write_bytes(data)
                self.assertEqual(self.run_program(), (cold, MISS))
                self.assertEqual(entry.read_bytes(), whole)  # repaired, and the same as the first time

    def test_an_entry_under_another_name(self):
        """Right in itself, and still not this program's."""
        other = self.write("q.ein", PROGRAM.replace("0.5", "0.25"))
        mine, _ = self.run_program()
        entry = self.entries()[0]
        theirs, _ = self.run_program(program=other)
        self.assertNotEqual(mine, theirs)
        misplaced = next(e for e in self.entries() if e != entry)
        whole = entry.read_bytes()
        entry.write_bytes(misplaced.read_bytes())
        self.assertEqual(self.run_program(), (mine, MISS))
        self.assertEqual(entry.read_bytes(), whole)

    def noted(self, env=None):
        done = self.ein("run", self.program, "--in", f"x={self.x}", "--cache-stats",
                        env={"EINLANG_CACHE": str(self.cache), **(env or {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_a_folder_that_others_may_write_to(self):
        cold, _ = self.run_program()
        for mode in (0o777, 0o770, 0o1777, 0o722):
            self.cache.chmod(mode)
            out, err = self.noted()
            self.assertEqual(out, cold)
            self.assertEqual(err, f"note: the cache `{self.cache}` is not used: other users may write to it "
                                  f"(mode {mode & 0o777:03o}); `chmod go-w` changes that\n")
        for mode in (0o700, 0o755, 0o500):
            self.cache.chmod(mode)
            self.assertEqual(self.run_program(), (cold, HIT))
        self.cache.chmod(0o700)

    def test_a_folder_of_somebody_else(self):
        cold, _ = self.run_program("--no-cache")
        if os.geteuid() == 0:
            self.cache.mkdir()
            os.chown(self.cache, 65534, -1)
            folder = self.cache
        else:
            folder = "/usr"  # root's, and nobody else may write to it
        out, err = self.noted({"EINLANG_CACHE": str(folder)})
        self.assertEqual((out, err), (cold, f"note: the cache `{folder}` is not used: it belongs to another user\n"))

    def test_not_a_file(self):
        cold, _ = self.run_program()
        entry = self.entries()[0]
        entry.unlink()
        entry.mkdir()
        self.assertEqual(self.run_program(), (cold, (0, 1, 0, 1)))
        entry.rmdir()
        os.mkfifo(entry, 0o600)  # nobody ever writes to it
        self.assertEqual(self.run_program()[0], cold)

    def test_files_of_others(self):
        cold, _ = self.run_program()
        self.entries()[0].chmod(0o666)  # anybody could have put code there
        self.assertEqual(self.run_program(), (cold, MISS))

    def test_no_folder(self):
        cold, _ = self.run_program("--no-cache")
        in_the_way = self.write("file", "")
        for folder in (in_the_way, in_the_way + "/below", "/proc/none", "/dev/null/x"):
            with self.subTest(folder):
                self.assertEqual(self.run_program(env={"EINLANG_CACHE": folder}), (cold, (0, 1, 0, 1)))

    def test_read_only_folder(self):
        cold, _ = self.run_program("--no-cache")
        self.cache.mkdir()
        self.cache.chmod(0o500)
        self.addCleanup(self.cache.chmod, 0o700)
        out, what = self.run_program()
        self.assertEqual(out, cold)
        if os.geteuid() != 0:  # root writes anywhere
            self.assertEqual(what, (0, 1, 0, 1))

    def test_full_disk(self):
        cold, _ = self.run_program("--no-cache")
        for limit in (0, 100, 1000):
            done = subprocess.run(
                [test_cli.EIN, "run", self.program, "--in", f"x={self.x}", "--cache-stats"], capture_output=True,
                text=True, env={**os.environ, "EINLANG_CACHE": str(self.cache)},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual((done.returncode, done.stdout), (0, cold), done.stderr)
            self.assertIn("0 stored", done.stderr)
            self.assertEqual(self.entries(), [])

    def test_many_at_a_time(self):
        cold, _ = self.run_program("--no-cache")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            runs = [pool.submit(self.run_program) for _ in range(18)]
            for r in runs:
                self.assertEqual(r.result()[0], cold)
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.run_program(), (cold, HIT))

    def test_another_compiler(self):
        """The same program under another build of `ein` has another name."""
        self.run_program()
        other = pathlib.Path(self.path("ein"))
        data = bytearray(pathlib.Path(test_cli.EIN).read_bytes())
        at = data.find(b"GNU\0", data.find(b"\x14\0\0\0\x03\0\0\0GNU\0"))
        self.assertGreater(at, 0, "the binary has no build id")
        data[at + 4] ^= 0xFF
        other.write_bytes(data)
        other.chmod(0o700)
        before, test_cli.EIN = test_cli.EIN, str(other)
        try:
            self.assertEqual(self.run_program()[1], MISS)
            self.assertEqual(self.run_program()[1], HIT)
        finally:
            test_cli.EIN = before
        self.assertEqual(self.run_program()[1], HIT)

    def test_failures_are_the_same(self):
        """Messages of a program from the cache show the same places."""
        codes = ["let x: [f64; n];\nlet i = 7;\nlet y[k in 0..2] = x[i + k];\nprint(y);",
                 "let x: [f64; n];\nlet q[k in 0..3] = 6 / (k - 1);\nprint(q); print(x);",
                 "let x: [f64; n];\nassert(sum[k](x[k]) > 100.0, \"too small\");",
                 "let x: [f64; n];\nlet y[k in 0..5] = x[k];\nprint(y);",
                 "let x: [f64; n];\nlet y: [f64; n];\nprint(x); print(y);"]
        for code in codes:
            with self.subTest(code):
                program = self.write("f.ein", code)
                args = ["run", program, "--in", f"x={self.x}"]
                env = {"EINLANG_CACHE": str(self.cache)}
                runs = [self.ein(*args, *more, env=env) for more in ([], [], ["--no-cache"])]
                self.assertEqual({r.returncode for r in runs}, {3}, runs[0].stderr)
                self.assertEqual(len({r.stderr for r in runs}), 1)

    def test_programs(self):
        """Every twentieth program of tests/run, cold and warm."""
        folder = pathlib.Path(__file__).resolve().parent.parent / "run"
        programs = [p for p in sorted(folder.rglob("*.ein")) if "//! " not in p.read_text()][::20]
        self.assertGreater(len(programs), 5)
        for p in programs:
            with self.subTest(p.name):
                env = {"EINLANG_CACHE": str(self.cache)}
                cold, warm = (self.ein("run", str(p), env=env) for _ in range(2))
                self.assertEqual((cold.returncode, cold.stdout), (warm.returncode, warm.stdout))


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
