"""The source archive has all that the wheel is built of (section 2), so `pip install` of it gives the same."""

import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a build reads, and what a reader of an archive expects.
PARTS = ["src", "include", "cmake", "stdlib", "python", "docs", "examples", "tools"]
LEFT_OUT = ["bench", "fuzz", "tests", "build", ".git"]


def test_source_archive(tmp_path):
    code = f"from scikit_build_core.build import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(tmp_path / done.stdout.split()[-1]) as archive:
        found = {name.partition("/")[2]: archive.extractfile(name) for name in archive.getnames() if archive.getmember(name).isfile()}
        version = re.search(r"project\(einlang VERSION ([\d.]+)", found["CMakeLists.txt"].read().decode())
        assert f"Version: {version[1]}\n" in found["PKG-INFO"].read().decode()
        there = {"pyproject.toml", "LICENSE", "README.md", "Makefile"}
        for part in PARTS:
            there |= {str(path.relative_to(ROOT)) for path in (ROOT / part).rglob("*")
                      if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".svg", ".pgm")}
        assert sorted(there - set(found)) == []
        assert sorted(name for name in found if name.split("/")[0] in LEFT_OUT) == []
        changed = [name for name in sorted(there) if archive.extractfile(f"einlang-{version[1]}/{name}").read() != (ROOT / name).read_bytes()]
        assert changed == []
