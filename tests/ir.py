"""What each pass does, on the smallest program in which it does something. Usage: ir.py EIN [-k FILTER] [--write]

tests/ir/PASS.ein (or PASS_WHAT.ein) begins with a comment that says what to look at; PASS.txt beside it is what
`ein run PASS.ein --dump-after PASS` prints. A line `//! args: …` gives more arguments, `//! verb: grad` another verb. --write makes the dumps anew: read
the difference before you keep it.

Besides the dump itself: it differs from the dump after the pass before, so a pass that is switched off fails its test;
every pass has a file; and all of them are short."""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Text and names have suites of their own, tables for a caller and machine code cannot be read in a minute.
WITHOUT = {"parse", "sema", "image", "ptx", "machine-code"}
MOST_LINES = {".ein": 15, ".txt": 40}


def passes(ein):
    """All passes, in order, as `ein` lists them."""
    text = subprocess.run([ein, "run", "--help"], capture_output=True, text=True, timeout=60).stdout
    return re.search(r"--dump-after TEXT:\{([^}]*)\}", text)[1].split(",")


def dump(ein, path, name):
    args = [a for m in re.finditer(r"^//! args:(.*)$", path.read_text(), re.M) for a in shlex.split(m[1])]
    # Nothing up to the last pass that is looked at depends on the processor; these make sure of it.
    verb = re.search(r"^//! verb: (\w+)$", path.read_text(), re.M)
    how = [] if verb else ["--cpu", "sse2", "--threads", "1"]
    done = subprocess.run([ein, verb[1] if verb else "run", str(path), "--dump-after", name, *how, *args],
                          capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def pass_of(path):
    return path.stem.partition("_")[0]


def check(ein, path, order, write=False):
    """What is wrong with one file."""
    name, text = pass_of(path), path.read_text()
    if name not in order or name in WITHOUT:
        return [f"`{name}` is no pass that is looked at here"]
    got, said = dump(ein, path, name)
    if said:
        return [said]
    golden = path.with_suffix(".txt")
    if write:
        golden.write_text(got)
    problems = []
    if not re.match(r"(//! (args|verb):.*\n)*// [\w`]", text):
        problems.append("it does not begin with a comment that says what to look at")
    if got == dump(ein, path, order[order.index(name) - 1])[0]:
        problems.append(f"the pass changes nothing here: {order[order.index(name) - 1]} gives the same")
    for file, lines in (path, text), (golden, got):
        if lines.count("\n") > MOST_LINES[file.suffix]:
            problems.append(f"{file.name} has more than {MOST_LINES[file.suffix]} lines")
    want = golden.read_text() if golden.exists() else ""
    if want != got:
        problems.append("\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), golden.name, "printed", lineterm="")))
    return problems


def self_test(ein, order):
    """A dump that differs, a pass that changes nothing and a program without a comment are all noticed."""
    program = "// Look.\nlet x = [1.0, 2.0];\nlet y[i in 0..1] = sum[k](x[k] where k == i + 1);\n"
    solved = "let x = [1.0, 2.0];\nlet y[i in 0..1] = x[i + 1];\n"
    for name, text, golden, fine in [("solve-gates", program, solved, True),
                                     ("solve-gates", program, solved + "let z = 1;\n", False),
                                     ("solve-gates", program.removeprefix("// Look.\n"), solved, False),
                                     ("make-scans", program, solved, False),
                                     ("parse", program, program, False)]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, f"{name}_test.ein")
            path.write_text(text)
            path.with_suffix(".txt").write_text(golden)
            if (not check(ein, path, order)) != fine:
                sys.exit(f"self-test: {name} with {golden!r} should {'pass' if fine else 'fail'}: {check(ein, path, order)}")


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ein")
    parser.add_argument("-k", default="", help="only files whose name contains this")
    parser.add_argument("--write", action="store_true", help="write the dumps as they are now")
    options = parser.parse_args(argv)
    order = passes(options.ein)
    self_test(options.ein, order)
    files = sorted(f for f in (HERE / "ir").glob("*.ein") if options.k in f.name)
    failed = 0
    for path in files:
        problems = check(options.ein, path, order, options.write)
        failed += bool(problems)
        for problem in problems:
            print(f"FAILED {path.relative_to(HERE)}: {problem}")
    if not options.k:
        there = {f.name for f in (HERE / "ir").iterdir()}
        missing = [p for p in order if p not in WITHOUT and p not in {pass_of(f) for f in files}]
        stray = sorted(there - {n for f in files for n in (f.name, f.with_suffix(".txt").name)})
        for problem in [f"{p} has no file" for p in missing] + [f"ir/{f} belongs to no program" for f in stray]:
            print(f"FAILED {problem}")
            failed += 1
    print(f"{len(files)} files, {failed} failures")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
