"""Every .h and .cc file is as clang-format writes it. Usage: format.py ROOT [--write]   (see also `make format`)

Debian 12's clang-format, version 14: another one may disagree."""

import pathlib
import subprocess
import sys
import tempfile

FOLDERS = ("src", "include", "python", "tests", "fuzz")
# Laid out as tables, by hand.
BY_HAND = {"src/core/core.h", "src/syntax/ast.h", "include/einlang/einlang.h"}
COMMAND = "clang-format-14"


def differs(files, root):
    """The files that clang-format would change."""
    done = subprocess.run([COMMAND, f"--style=file:{root / '.clang-format'}", "--dry-run", *map(str, files)],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(done.stderr)
    named = {line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line}
    return [f for f in files if str(f) in named]


def main(root, write):
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*"))
             if f.suffix in (".h", ".hpp", ".cc") and str(f.relative_to(root)) not in BY_HAND]
    with tempfile.TemporaryDirectory() as folder:
        wrong = pathlib.Path(folder, "a.cc")
        wrong.write_text("int  a;\n")
        if differs([wrong], root) != [wrong]:
            sys.exit("self-test: an unformatted file was not noticed")
    found = differs(files, root)
    if write and found:
        subprocess.run([COMMAND, "-i", *map(str, found)], check=True)
    for f in found:
        print(f"{f.relative_to(root)}: " + ("formatted" if write else "run `make format`"))
    print(f"{len(files)} files, {len(found)} not formatted")
    return 1 if (found and not write) or not files else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), "--write" in sys.argv))
