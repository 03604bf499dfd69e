"""clang-tidy finds nothing in src, with the checks of .clang-tidy. Usage: tidy.py ROOT BUILD [-j JOBS]

The folders of GROUPS are compiled as one file each: most of the time goes into the headers they share. So a name in an
unnamed namespace must be the only one of its group, as it must be for the build."""

import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import time

# The longest first. Folders that are not named are a group each.
GROUPS = (("base", "syntax", "core", "autodiff", "optimise", "plan", "loops", "lower"), ("driver", "cli", "capi"))
LLVM = "/usr/lib/llvm-19/include"


def groups(root):
    folders = sorted(f.name for f in (root / "src").iterdir() if f.is_dir())
    named = {f for g in GROUPS for f in g}
    return [*GROUPS, *((f,) for f in folders if f not in named)]


def tidy(root, build, sources):
    """What clang-tidy says about these files, compiled as one."""
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "unit.cc")
        unit.write_text("".join(f'#include "{s}"\n' for s in sources))
        flags = ["-std=c++20", "-w", f"-I{root}/src", f"-I{root}/include", f"-I{build}/generated", "-isystem", LLVM,
                 '-DEIN_VERSION=""']
        done = subprocess.run(["clang-tidy-19", "--quiet", f"--config-file={root}/.clang-tidy", str(unit), "--", *flags],
                              capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout


def self_test(root, build):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "src", "a.cc")
        source.parent.mkdir()
        source.write_text("#include <string>\nint f(std::string s) { std::string t = std::move(s); return s.size() + t.size(); }\n")
        status, said = tidy(root, build, [source])
        if status == 0 or "bugprone-use-after-move" not in said:
            sys.exit(f"self-test: a use after a move was not noticed: {said}")


def main(root, build, jobs):
    self_test(root, build)

    def one(group):
        begin = time.monotonic()
        # What is compiled only for WebAssembly is not part of a build for this machine.
        sources = [s for f in group for s in sorted((root / "src" / f).rglob("*.cc")) if "wasm" not in s.parts]
        return group, len(sources), *tidy(root, build, sources), time.monotonic() - begin

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for group, count, status, said, seconds in pool.map(one, groups(root)):
            failed += status != 0
            print(f"{' '.join(group)}: {count} files, {seconds:.0f} s")
            if status:
                print(said)
    return 1 if failed else 0


if __name__ == "__main__":
    jobs = int(sys.argv[sys.argv.index("-j") + 1]) if "-j" in sys.argv else 2
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), jobs))
