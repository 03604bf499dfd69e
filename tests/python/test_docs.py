"""The pages about Python and the docstrings are true: every block of Python is a doctest, and all of them are run."""

import doctest
import importlib
import pathlib
import pkgutil
import re

import pytest

import einlang

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["docs/python.md", "README.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def run(test, out):
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=out.append, clear_globs=False)
    return runner.summarize(verbose=False)


def check_page(text, name):
    """(how many examples, what is wrong with them)"""
    names, wrong, count = {"__name__": "__main__"}, [], 0
    for found in BLOCK.finditer(text):
        language, block = found.groups()
        line = text.count("\n", 0, found.start()) + 1
        kept = re.match(r"// ([\w.]+\.ein)\n", block)
        if language == "ein" and kept:
            pathlib.Path(kept[1]).write_text(block)
        if language != "python":
            continue
        test = doctest.DocTestParser().get_doctest(block, names, f"{name}, line {line}", name, line)
        if not test.examples:
            wrong.append(f"{name}, line {line}: a block without an example that is run")
        count += len(test.examples)
        test.globs = names  # a copy was made; blocks go on from one another
        run(test, wrong)
    return count, wrong


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count, wrong = check_page((ROOT / page).read_text(), page)
    assert not wrong, "\n".join(wrong)
    assert count > 0


def test_a_wrong_page_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = "```ein\n// a.ein\nlet a = 1;\n```\n```python\n>>> a = open('a.ein').read()\n\n```\n```python\n>>> len(a)\n20\n\n```\n"
    assert check_page(good, "good") == (2, [])
    assert check_page("```python\na = 1\n```\n", "bad")[1]
    assert check_page("```python\n>>> 1 + 1\n3\n\n```\n", "bad")[1]


def modules():
    found = ["einlang"]
    for module in pkgutil.iter_modules(einlang.__path__, "einlang."):
        # Those that need other packages are tested where those are.
        if not module.name.startswith("einlang._") and module.name not in ("einlang.torch", "einlang.jax"):
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules())
def test_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
        run(test, wrong)
    assert not wrong, "\n".join(wrong)


def test_the_first_docstring_has_examples():
    found = doctest.DocTestFinder().find(einlang, "einlang", module=einlang)
    assert sum(len(test.examples) for test in found) >= 4
