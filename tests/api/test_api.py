"""The C and C++ interfaces: the examples and a test program in each language, against the build folder and against an
installed tree (pkg-config, find_package). Usage: test_api.py ROOT BUILD"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("EINLANG_CACHE", "off")  # not the cache of whoever runs this
ROOT = BUILD = None
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wconversion"]


class Api(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_ok(self, *args, **more):
        done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=300, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def compile(self, source, *flags):
        program = self.folder / source.stem
        driver = ["cc", "-std=c99"] if source.suffix == ".c" else ["c++", "-std=c++20"]
        self.run_ok(*driver, *STRICT, source, "-o", program, *flags)
        return program

    def beside(self):
        return ["-I", ROOT / "include", "-L", BUILD, "-leinlang", f"-Wl,-rpath,{BUILD}", "-pthread"]

    def test_examples(self):
        self.assertEqual(self.run_ok(self.compile(ROOT / "examples/c/gradient.c", *self.beside())),
                         "loss 20.75\nslope -53 -68\n")
        self.assertEqual(self.run_ok(self.compile(ROOT / "examples/cpp/descent.cc", *self.beside())),
                         "y = 1.000 + 2.000 x, loss 0.000000\n")

    def test_the_tour(self):
        text = (ROOT / "docs/tour.md").read_text()
        blocks = re.findall(r"^```cpp\n(.*?)^```$\n+^```output\n(.*?)^```$", text, re.M | re.S)
        self.assertTrue(blocks)
        for source, output in blocks:
            path = self.folder / "tour.cc"
            path.write_text(source)
            self.assertEqual(self.run_ok(self.compile(path, *self.beside())), output)

    def test_in_c(self):
        print(self.run_ok(self.compile(ROOT / "tests/api/api_test.c", *self.beside())), end="")

    def test_in_cpp(self):
        print(self.run_ok(self.compile(ROOT / "tests/api/api_test.cc", "-O2", *self.beside())), end="")

    def test_exports(self):
        names = self.run_ok("nm", "-D", "--defined-only", BUILD / "libeinlang.so").splitlines()
        found = sorted(line.split()[-1] for line in names)
        self.assertTrue(all(n.startswith("ein_") for n in found), found)
        header = (ROOT / "include/einlang/einlang.h").read_text()
        declared = sorted(set(re.findall(r"EIN_API [^;(]*?\b(ein_\w+)\(", header)))
        self.assertEqual([n for n in found if not n.startswith("ein_standalone")], declared)

    def test_cache(self):
        program = self.compile(ROOT / "examples/c/gradient.c", *self.beside())
        env = {**os.environ, "EINLANG_CACHE": str(self.folder / "cache")}
        first = self.run_ok(program, env=env)
        entries = list((self.folder / "cache").iterdir())
        self.assertEqual(len(entries), 1)
        self.assertEqual(self.run_ok(program, env=env), first)
        self.assertEqual(list((self.folder / "cache").iterdir()), entries)

    def test_installed(self):
        built, moved = self.folder / "built", self.folder / "moved"
        self.run_ok("cmake", "--install", BUILD, "--prefix", built)
        built.rename(moved)
        flags = self.run_ok("pkg-config", "--cflags", "--libs", "einlang",
                            env={**os.environ, "PKG_CONFIG_PATH": str(moved / "lib/pkgconfig")}).split()
        program = self.compile(ROOT / "examples/c/gradient.c", *flags, f"-Wl,-rpath,{moved}/lib")
        self.assertIn("loss 20.75", self.run_ok(program))
        user = self.folder / "user"
        user.mkdir()
        version = re.search(r"project\(einlang VERSION (\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]
        (user / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(user CXX)\nset(CMAKE_CXX_STANDARD 20)\n"
            f"find_package(einlang {version} REQUIRED)\n"
            f"add_executable(descent {ROOT}/examples/cpp/descent.cc)\ntarget_link_libraries(descent einlang::einlang)\n")
        self.run_ok("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={moved}")
        self.run_ok("cmake", "--build", user / "build")
        self.assertIn("loss 0.000000", self.run_ok(user / "build/descent"))
        # The installed compiler finds its run-time library.
        self.run_ok(moved / "bin/ein", "build", "-c", "print(2 + 3);", "--emit", "exe", "-o", self.folder / "five")
        self.assertEqual(self.run_ok(self.folder / "five"), "5\n")


if __name__ == "__main__":
    ROOT, BUILD = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    unittest.main()
