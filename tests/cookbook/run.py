"""The numbers of the cookbook, computed a second time. Usage: run.py ROOT

docs.py sees to it that a program prints what its page shows. Here NumPy computes the same numbers independently: for each task of
docs/cookbook/PAGE.md the module PAGE beside this file has a function under its heading, whose numbers are those of the page, in
order. Shapes (`[i: 3]`) and types are left out; true and false are 1 and 0."""

import importlib
import pathlib
import re
import sys

import numpy as np

HEADER = re.compile(r"\[(?:\w+: )?\d+(?:, (?:\w+: )?\d+)*\](?=\s+\[)")
TYPE = re.compile(r"\[[a-z]\w*;[^\]]*\]")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])|\btrue\b|\bfalse\b")


def array_end(text, start):
    """Where the brackets that open at `start` are closed."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def without_shapes(text):
    text = TYPE.sub("", text)
    out, at = [], 0
    while at < len(text):
        header = HEADER.match(text, at)
        if header:
            start = text.index("[", header.end())
            end = array_end(text, start)
            out.append(text[start:end])
            at = end
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def numbers(text):
    """(value, how far rounding may have moved it) of every number that a program printed."""
    found = []
    for word in NUMBER.findall(without_shapes(text)):
        if word in ("true", "false"):
            found.append((float(word == "true"), 0.0))
            continue
        digits = re.search(r"\.(\d+)", word)
        unit = 10.0 ** -len(digits[1]) if digits else 0.0
        found.append((float(word), max(0.51 * unit, 2e-6 * abs(float(word)))))
    return found


def tasks(page):
    """The headings of a page with what their programs print."""
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        title, _, rest = section.partition("\n")
        yield title, "".join(re.findall(r"^```output\n(.*?)^```", rest, re.M | re.S))


def flat(values):
    return [float(x) for value in values for x in np.ravel(value)]


def compare(printed, expected):
    found, expected = numbers(printed), flat(expected)
    if len(found) != len(expected):
        return f"prints {len(found)} numbers, NumPy has {len(expected)}"
    for (value, allowed), right in zip(found, expected):
        if not abs(value - right) <= allowed:
            return f"prints {value!r}, NumPy has {right!r}"
    return None


def check(page, functions):
    """What is wrong with a page, by heading."""
    there = dict(tasks(page))
    wrong = [(title, "has no computation in NumPy") for title, out in there.items() if title not in functions and numbers(out)]
    wrong += [(title, "is not on the page") for title in functions if title not in there]
    for title, function in functions.items():
        problem = compare(there.get(title, ""), function()) if title in there else None
        if problem:
            wrong.append((title, problem))
    return wrong


def self_test():
    page = "## A\n\n```output\n[i: 2] [1.5, 2.0] 3 true\n[f32; 3, i]\n[2, j: 1]\n[[4],\n [5]] [2] [3, 4] [2] [6, 7]\n```\n"
    right = {"A": lambda: [[1.5, 2], 3, 1, [4, 5], [3, 4], [6, 7]]}
    assert check(page, right) == [], check(page, right)
    assert check(page, {}) and check("", right) and check(page.replace("1.5", "1.6"), right)
    assert check(page.replace(", 7]", "]"), right) and check(page.replace("true", "false"), right)


def main(root):
    self_test()
    failed = count = 0
    pages = [p for p in sorted((root / "docs/cookbook").glob("*.md")) if p.stem != "index"]
    for path in pages:
        functions = importlib.import_module(path.stem).TASKS
        count += len(functions)
        for title, problem in check(path.read_text(), functions):
            print(f"docs/cookbook/{path.name}: {title}: {problem}")
            failed += 1
    print(f"{count} tasks on {len(pages)} pages, {failed} wrong")
    return 1 if failed or not pages else 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    sys.exit(main(pathlib.Path(sys.argv[1])))
