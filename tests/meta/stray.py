"""No test leaves files in the repository, in the build folder or in build/tests. `before` the suite what is there is
listed, `after` it what is new is reported. Usage: stray.py ROOT BUILD before|after"""

import os
import pathlib
import sys
import tempfile

SKIPPED = {".git", "__pycache__", ".cache", ".venv"}  # folders that others fill
# Written by ctest, this file, cmake --install and tests/python/run.py.
OF_TOOLS = {"Testing", "stray_files.txt", "install_manifest.txt", "environment", "python", "python-build"}


def listing(root, build):
    """Every file of the repository, and what lies directly in the build folder and its `tests`."""
    found = set()
    for folder, folders, files in os.walk(root):
        # A folder with a CMakeCache.txt is a build.
        folders[:] = [f for f in folders if f not in SKIPPED and not pathlib.Path(folder, f, "CMakeCache.txt").exists()]
        found.update(str(pathlib.Path(folder, f)) for f in files)
    for folder in (build, build / "tests"):
        found.update(str(f) for f in folder.iterdir() if f.name not in OF_TOOLS)
    return found


def self_test():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for folder in ("src", "build/tests", "build/deep", "build-other"):
            (root / folder).mkdir(parents=True)
        for build in ("build", "build-other"):
            (root / build / "CMakeCache.txt").write_text("")
        before = listing(root, root / "build")
        for file in ("a.npy", "src/b.npy", "build/c.npy", "build/tests/d.npy", "build/deep/e.npy", "build-other/f.npy"):
            (root / file).write_text("")
        new = sorted(pathlib.Path(f).name for f in listing(root, root / "build") - before)
        assert new == ["a.npy", "b.npy", "c.npy", "d.npy"], new


def main(root, build, when):
    self_test()
    kept = build / "stray_files.txt"
    if when == "before":
        kept.write_text("\n".join(sorted(listing(root, build))))
        return 0
    new = sorted(listing(root, build) - set(kept.read_text().split("\n")))
    kept.unlink()
    for f in new:
        print(f"{f} appeared while the tests ran: give the test that writes it a folder of its own")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]))
