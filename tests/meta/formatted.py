"""Every .ein file of the repository is formatted. A file with a syntax error cannot be, and a file that is about
its own layout says so: `//! layout: as written`. Usage: formatted.py ROOT EIN"""

import pathlib
import subprocess
import sys

FOLDERS = ("stdlib", "examples", "tests", "bench", "docs")
AS_WRITTEN = "//! layout: as written"


def differs(ein, text):
    """True when the formatter would change the text; None when it cannot read it."""
    done = subprocess.run([ein, "fmt", "-"], input=text, capture_output=True, text=True, timeout=60)
    return None if done.returncode else done.stdout != text


def main():
    root, ein = pathlib.Path(sys.argv[1]), sys.argv[2]
    if not differs(ein, "let a=1"):
        sys.exit("self-test: an unformatted program was not noticed")
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*.ein"))]
    wrong = [f for f in files if AS_WRITTEN not in (text := f.read_text()) and differs(ein, text)]
    for f in wrong:
        print(f"{f.relative_to(root)}: run `ein fmt` on it")
    print(f"{len(files)} files, {len(wrong)} not formatted")
    sys.exit(1 if wrong or not files else 0)


if __name__ == "__main__":
    main()
