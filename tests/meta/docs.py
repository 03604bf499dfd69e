"""The programs in README.md, docs/ and on the start page of the site are true. Usage: docs.py ROOT EIN

```ein compiles without a diagnostic, ```ein,error=E0301 has exactly that error,
```ein,warning=W0301 has exactly that warning. A block ```output right after one is what
it prints, on both back ends; a block ```message is what `ein check program.ein` says of it. The programs of a page are
run in one folder, in order, so that one may read what another wrote. A program whose first line is `// NAME.ein` is kept there
under that name, and a block ```console runs commands: after `$ ein …`, or `$ cat FILE`, stands what it prints; a line `…` stands for
any lines, and `[status 3]` at the end for an exit status other than 0. A block ```repl is what the prompt shows: lines after `> ` and `. `
are typed. (The pages of docs/errors and the two indexes have checks of their own; C++ on a page is compiled by tests/api.)
What points to a section of docs/decisions.md by its number points to one that is there, and the tests it names are there."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$(?:\n+^```(output|message)\n(.*?)^```$)?", re.M | re.S)


def ein_blocks(text):
    """(line, marker, program, output, message) of every ein block."""
    for m in BLOCK.finditer(text):
        language, _, marker = m.group(1).partition(",")
        if language == "ein":
            said = {m.group(3): m.group(4)}
            yield text.count("\n", 0, m.start()) + 1, marker, m.group(2), said.get("output"), said.get("message")


def console_blocks(text):
    for m in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, m.start()) + 1, m.group(1)


def prompt_blocks(text):
    for m in re.finditer(r"^```repl\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, m.start()) + 1, m.group(1)


def check_prompt(ein, folder, block):
    lines = block.splitlines()
    typed = [line[2:] for line in lines if line[:2] in ("> ", ". ")]
    shown = [line for line in lines if line[:2] not in ("> ", ". ")]
    done = run(ein, folder, "repl", program="\n".join(typed))
    if done.returncode != 0 or not fits(shown, (done.stdout + done.stderr).splitlines()):
        return f"has status {done.returncode} and shows:\n{done.stdout}{done.stderr}"
    return None


def commands(block):
    """(command, the lines it prints, status) of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, rest = part.partition("\n")
        lines = rest.splitlines()
        status = re.fullmatch(r"\[status (\d+)\]", lines[-1]) if lines else None
        yield command, lines[:-1] if status else lines, int(status[1]) if status else 0


def fits(expected, printed):
    """Whether the lines are as expected, where `…` is any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def check_console(ein, folder, block):
    for command, expected, status in commands(block):
        words = shlex.split(command)
        if words[0] == "cat":
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
        elif words[0] == "ein":
            done = run(ein, folder, *words[1:])
        else:
            return f"`{command}` is neither `ein` nor `cat`"
        if done.returncode != status or not fits(expected, (done.stdout + done.stderr).splitlines()):
            return f"`{command}` has status {done.returncode} and prints:\n{done.stdout}{done.stderr}"
    return None


def run(ein, folder, *args, program=""):
    return subprocess.run([ein, *args], input=program, capture_output=True, text=True, timeout=60, cwd=folder,
                          env={**os.environ, "NO_COLOR": "1"})


def codes_of(ein, folder, program):
    done = run(ein, folder, "check", "-", "--error-format", "json", program=program)
    if done.returncode not in (0, 1):
        return [f"status {done.returncode}: {done.stderr}"]
    return [json.loads(line)["code"] for line in done.stderr.splitlines()]


def check_block(ein, folder, marker, program, output, message):
    kind, _, code = marker.partition("=")
    if marker and (kind not in ("error", "warning") or not code):
        return f"unknown marker `{marker}`"
    expected = [code] if code else []
    kept = re.match(r"// ([\w.]+\.ein)\n", program)
    if kept:
        pathlib.Path(folder, kept[1]).write_text(program)
    found = codes_of(ein, folder, program)
    if found != expected:
        return f"has {found or 'no diagnostic'}, expected {expected or 'none'}"
    for backend in ("ref", "native") if output is not None else ():
        done = run(ein, folder, "run", "-", "--backend", backend, program=program)
        if done.stdout != output or done.returncode != 0:
            return f"prints, with --backend {backend}:\n{done.stdout}{done.stderr}"
    if message is not None:
        pathlib.Path(folder, "program.ein").write_text(program)
        done = run(ein, folder, "check", "program.ein")
        if done.stderr != message:
            return f"is answered with:\n{done.stderr}"
    return None


def check_text(ein, text):
    blocks = [(line, check, rest) for find, check in ((ein_blocks, check_block), (console_blocks, check_console), (prompt_blocks, check_prompt))
              for line, *rest in find(text)]
    blocks.sort(key=lambda block: block[0])
    with tempfile.TemporaryDirectory() as folder:
        results = [(line, check(ein, folder, *rest)) for line, check, rest in blocks]
    return len(blocks), [(line, problem) for line, problem in results if problem]


def check_decisions(page, sources, exists):
    """`sources`: (name, text) of what may point to the page; `exists`: whether a path below tests/ is there."""
    sections = re.findall(r"^## (\d+)\. ", page, re.M)
    complaints = [f"{name} points to decision {n}, which is not on the page"
                  for name, text in sources for n in re.findall(r"decisions\.md, (\d+)", text) if n not in sections]
    for tests in re.findall(r"^Tests: (?:.+\n)+", page, re.M):
        complaints += [f"there is no tests/{path}" for path in re.findall(r"`([\w/.]+)`", tests) if not exists(path)]
    return complaints


def self_test(ein):
    page = "## 1. A\n\nTests: `run/a`.\n"
    assert not check_decisions(page, [("a.cc", "// (decisions.md, 1)")], lambda path: True)
    assert check_decisions(page, [("a.cc", "// (decisions.md, 2)")], lambda path: True)
    assert check_decisions(page, [], lambda path: False)
    good = ("```ein\nprint(1);\n```\n\n```output\n1\n```\n```ein,error=E0201\nlet a = b;\n```\n"
            "```sh\nnot ein\n```\n```ein\nsave(\"a.npy\", [1]);\nprint(1);\n```\n```output\n1\n```\n"
            "```ein\nlet a = load(\"a.npy\");\n```\n```ein\n// two.ein\nprint(2);\n```\n"
            "```console\n$ ein two.ein\n2\n$ ein run -c 'print(a);'\nerror[E0201]: unknown name `a`\n…\n[status 1]\n```\n"
            "```repl\n> let x = (1.0\n. + 1.0)\nx: f32 = 2.0\n```\n")
    assert check_text(ein, good) == (7, []), check_text(ein, good)
    for bad in ("```ein\nlet a = b;\n```\n", "```ein,error=E0202\nlet a = b;\n```\n",
                "```ein,error=E0201\nlet a = 1;\n```\n", "```ein,fails\nlet a = 1;\n```\n",
                "```ein\nprint(1);\n```\n\n```output\n2\n```\n",
                "```ein,error=E0201\nlet a = b;\n```\n```message\nerror[E0201]: no\n```\n",
                "```ein\nlet x = [1.0, 2.0]; let y = sum[k](x[k + 1]);\n```\n",
                "```console\n$ ein run -c 'print(1);'\n2\n```\n", "```console\n$ ein run -c 'print(a);'\n…\n```\n",
                "```console\n$ ls\n```\n", "```repl\n> let x = 1.0\nx: f32 = 2.0\n```\n", "```repl\n> x\n```\n"):
        assert check_text(ein, bad)[1], bad


def main(root, ein):
    self_test(ein)
    failed = 0
    indexes = {root / "docs/errors.md", root / "docs/README.md"}
    for path in [root / "README.md", root / "tools/site/start.md", *sorted({*(root / "docs").glob("*.md"), *(root / "docs/cookbook").glob("*.md")} - indexes)]:
        text = path.read_text()
        count, problems = check_text(ein, text)
        if count == 0 and "```python" not in text:  # tests/python runs those
            problems.append((1, "has no program that could be checked"))
        print(f"{path.relative_to(root)}: {count} programs, {len(problems)} wrong")
        failed += len(problems)
        for line, problem in problems:
            print(f"  line {line}: {problem}")
    sources = [(path, path.read_text()) for folder in ("src", "fuzz", "tests", "stdlib") for path in (root / folder).rglob("*")
               if path.suffix in (".cc", ".h", ".ein")]
    complaints = check_decisions((root / "docs/decisions.md").read_text(), sources, lambda path: (root / "tests" / path).exists())
    print("\n".join(complaints) or "docs/decisions.md: every pointer leads somewhere")
    return 1 if failed or complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())))
