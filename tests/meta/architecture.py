"""ARCHITECTURE.md tells the truth. Usage: architecture.py ROOT EIN [--write]

- "The files of src" has one line for every file below src/ (a .h and a .cc of one name are one line), under the heading
  of its folder, and nothing else.
- A function named as `folder/file.cc: name` stands in that file; where an arrow leads to it, the file before calls it.
- Other files and folders that it names exist.
- A block ```after PASS is what `--dump-after PASS` prints for the program above it; --write fills them."""

import pathlib
import re
import subprocess
import sys

import tree

FUNCTION = r"`([\w/]+\.(?:cc|h)): (\w+)`"
BLOCK = re.compile(r"^```after (\S+)\n(.*?)^```$", re.M | re.S)


def check_map(page, src):
    """`src`: the files below src/, by path."""
    complaints, folder, listed = [], None, []
    for line in page.partition("\n## The files of src\n")[2].partition("\n## ")[0].splitlines():
        if line.startswith("### src/"):
            folder = line[len("### src/"):]
        elif m := re.match(r"- `([^`]*)`: \S", line):
            listed.append(m[1])
            if m[1].split("/")[0] != folder:
                complaints.append(f"{m[1]} stands under src/{folder}")
        elif line.startswith("- "):
            complaints.append(f"no line of the map: {line}")
    there = {str(pathlib.PurePath(f).with_suffix("")) for f in src}
    complaints += [f"{f} is listed {listed.count(f)} times" for f in sorted(set(listed)) if listed.count(f) > 1]
    complaints += [f"src/{f} is not listed" for f in sorted(there - set(listed))]
    return complaints + [f"{f} is listed and does not exist" for f in sorted(set(listed) - there)]


def has_function(text, name):
    return re.search(rf"\b{name}\(", text) is not None


def check_functions(page, read):
    """`read`: the text of a file below src/, or None."""
    complaints = []
    for file, name in re.findall(FUNCTION, page):
        text = read(file)
        if text is None or not has_function(text, name):
            complaints.append(f"{file} has no function {name}")
    for file, _, to, name in re.findall(rf"{FUNCTION}(?= →\s+{FUNCTION})", page):
        if not re.search(rf"\b{name}\b", read(file) or ""):
            complaints.append(f"{file} does not name {name} of {to}")
    return complaints


def check_paths(page, exists):
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", page.partition("\n## The files of src\n")[0]))
    named |= set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", page.partition("\n## Around src\n")[2]))
    return [f"{path} is named and does not exist" for path in sorted(named) if not exists(path)]


def check(root, quiet=False):
    root = pathlib.Path(root)
    page, src = (root / "ARCHITECTURE.md").read_text(), root / "src"

    def read(file):
        return (src / file).read_text() if (src / file).is_file() else None

    def exists(path):
        return any((folder / path).exists() for folder in (root, src, root / "tests")) or any((src / path).parent.glob(pathlib.PurePath(path).name + ".*"))

    files = [str(f.relative_to(src)) for f in src.rglob("*") if f.is_file()]
    return check_map(page, files) + check_functions(page, read) + check_paths(page, exists)


def filled(page, ein):
    """The page with its dumps as they are now."""
    program = re.search(r"^```ein\n(.*?)^```$", page, re.M | re.S)[1]

    def dump(m):
        done = subprocess.run([ein, "check", "-", "--dump-after", m[1]], input=program, capture_output=True, text=True, timeout=60)
        return f"```after {m[1]}\n{done.stdout}{done.stderr}```"

    return BLOCK.sub(dump, page)


def small(page, **more):
    files = {"src/core/a.cc": "int f(int x) { return g(x); }\n", "src/core/b/c.h": "int g(int);\n", "ARCHITECTURE.md": page}
    return files | more


GOOD = """`core/a.cc: f` → `core/b/c.h: g`; `core/a.cc` is text.
## The files of src

### src/core
- `core/a`: a file
- `core/b/c`: another
"""

if __name__ == "__main__":
    page_file, ein = pathlib.Path(sys.argv[1], "ARCHITECTURE.md"), str(pathlib.Path(sys.argv[2]).resolve())
    page = page_file.read_text()
    now = filled(page, ein)
    if "--write" in sys.argv:
        page_file.write_text(now)
    elif now != page:
        sys.exit("the dumps of ARCHITECTURE.md are not what `ein` prints: tests/meta/architecture.py ROOT EIN --write")
    if not BLOCK.search(page) or filled(page.replace("```after sema\n", "```after sema\nx\n"), ein) != now:
        sys.exit("self-test: the dumps of the page are not looked at")
    tree.run(
        check,
        good=small(GOOD),
        bad=[
            small(GOOD, **{"src/core/d.cc": ""}),
            small(GOOD + "- `core/d`: not there\n"),
            small(GOOD + "- `core/a`: twice\n"),
            small(GOOD.replace("### src/core", "### src/base")),
            small(GOOD.replace("a.cc: f", "a.cc: h")),
            small(GOOD.replace("a.cc: f", "e.cc: f")),
            small(GOOD.replace("`core/a.cc: f` → `core/b/c.h: g`", "`core/b/c.h: g` → `core/a.cc: f`")),
            small(GOOD.replace("`core/a.cc` is", "`core/x.cc` is")),
        ],
    )
