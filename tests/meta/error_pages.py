"""Every diagnostic that the compiler can give has a page, and the page's examples do what it says: a block
```ein fails gives exactly that code, a block ```ein fixed none. Words after `fails` are options of `ein check`, or of
`ein run` where the code is that of a run-time failure.
Words after `fixed` are options in place of those.
A line `// file: NAME` in a block begins another file; the program is what stands before the first of them.
docs/errors.md lists them all; `--write` makes it anew.
Usage: error_pages.py ROOT EIN [--write]"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SEVERAL_PROCESSES = {"E0907", "E0908"}  # tested in tests/cli/test_ranks.py
BLOCK = re.compile(r"^```ein (fails|fixed)([^\n]*)\n(.*?)^```$", re.M | re.S)


def emitted(root):
    found = set()
    for path in (root / "src").rglob("*.cc"):
        found.update(re.findall(r"\bCode::([EW]\d{4})\b", path.read_text()))
    return found


def titles(root):
    text = (root / "src/base/codes.def").read_text()
    return dict(re.findall(r'^EIN_DIAG\((\w+), \w+, \w+, "(.*)"\)$', text, re.M))


def codes_of(ein, verb, options, program):
    texts = re.split(r"^// file: (\S+)\n", program, flags=re.M)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip(["main.ein", *texts[1::2]], texts[::2]):
            pathlib.Path(folder, name).write_text(text)
        result = subprocess.run([ein, verb, "--error-format", "json", *options, "main.ein"], cwd=folder,
                                capture_output=True, text=True, timeout=60,
                                env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})  # as without a GPU
    return {json.loads(line)["code"] for line in result.stderr.splitlines() if line.startswith("{")}


def check_page(ein, code, title, text):
    complaints = []
    if not text.startswith(f"# {code}: {title}\n"):
        complaints.append(f"{code}: the page does not begin with `# {code}: {title}`")
    blocks = BLOCK.findall(text)
    if code in SEVERAL_PROCESSES:
        return complaints + [f"{code}: needs several processes, so no example can show it"] * bool(blocks)
    if [kind for kind, _, _ in blocks] != ["fails", "fixed"]:
        return complaints + [f"{code}: the page needs one failing and one fixed example, in this order"]
    for kind, words, program in blocks:
        options = (words or blocks[0][1]).split()
        verb = "run" if code.startswith(("E08", "E09")) else "check"  # a failure shows when the program runs
        found, expected = codes_of(ein, verb, options, program), {code} if kind == "fails" else set()
        if found != expected:
            complaints.append(f"{code}: the {kind} example gives {sorted(found) or 'nothing'}")
    return complaints


def index(known, pages):
    lines = ["# Errors and warnings", "",
             "Every message has a code. `ein explain CODE` prints its page, with a program that fails and one that works.",
             "The first two digits tell what an error is about: E01 syntax, E02 names, E03 coordinates and ranges, E04 clauses and",
             "extents, E05 types, E06 derivatives, E07 limitations of the compiler, E08 errors at run time,",
             "E09 several ranks.", "", "| code | meaning |", "|---|---|"]
    lines += [f"| [{code}](errors/{code}.md) | {known[code]} |" for code in sorted(pages) if code in known]
    return "\n".join(lines) + "\n"


def main():
    root, ein = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    known, pages = titles(root), {p.stem: p for p in (root / "docs/errors").glob("*.md")}
    complaints = [f"{code}: the compiler gives it, but docs/errors has no page" for code in emitted(root) - set(pages)]
    complaints += [f"{code}: a page for a code that does not exist" for code in set(pages) - set(known)]
    listing = root / "docs/errors.md"
    if "--write" in sys.argv:
        listing.write_text(index(known, pages))
    if not listing.exists() or listing.read_text() != index(known, pages):
        complaints.append("docs/errors.md does not list the pages as they are: tests/meta/error_pages.py ROOT EIN --write")
    # The check must be able to fail: a page that promises the wrong code is caught.
    wrong = "# E0201: t\n```ein fails\nlet a = 1 +;\n```\n```ein fixed\nlet a = b;\n```\n"
    if len(check_page(ein, "E0201", "t", wrong)) != 2:
        complaints.append("self-test: a wrong page was not noticed")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check_page, ein, code, known[code], path.read_text())
                for code, path in sorted(pages.items()) if code in known]
        for job in jobs:
            complaints += job.result()
    print("\n".join(sorted(complaints)) or f"{len(pages)} pages are right")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
