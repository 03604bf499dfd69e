"""The pages as a whole. Usage: pages.py ROOT EIN

- docs/README.md lists every page below docs/ once, but for those of docs/errors, which docs/errors.md lists.
- Every link from one file of the repository to another leads somewhere, and so does every `#section` of a link to a page.
- docs/cookbook/index.md lists every task of the pages beside it once.
- The version is written once, in CMakeLists.txt: `ein --version`, the package file and the shared library have it, and so
  have the pages that name a version of Einlang. CHANGELOG.md begins with it."""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SECTION = re.compile(r"\]\(([^)#\s]*)#([^)\s]*)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/**/*.md", "tools/**/*.md")


def index_complaints(listed, there):
    """`listed`: the links of the index; `there`: the pages, by their path below docs/."""
    complaints = [f"docs/README.md lists {p} {listed.count(p)} times" for p in sorted(set(listed)) if listed.count(p) > 1]
    return complaints + [f"docs/README.md does not list {p}" for p in sorted(there - set(listed))]


def dead_links(text, exists):
    return [target for target in LINK.findall(CODE.sub("", text)) if "://" not in target and not exists(target)]


def anchors(text):
    """What `#…` may say of a page: its headings as GitHub and tools/site name them, the second of equal ones with -1, and so on."""
    found = []
    for heading in re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
        again = sum(f == name or re.fullmatch(re.escape(name) + r"-\d+", f) is not None for f in found)
        found.append(f"{name}-{again}" if again else name)
    return found


def dead_sections(text, page_at):
    """`page_at`: the text of a page by the path that a link has, "" for this one; None for what is not a page."""
    dead = []
    for target, section in SECTION.findall(CODE.sub("", text)):
        page = None if "://" in target else page_at(target)
        if page is not None and section not in anchors(page):
            dead.append(f"{target}#{section}")
    return dead


def cookbook_complaints(index, pages):
    """`pages`: the pages of the cookbook by name, without the index."""
    listed = [f"{target}#{section}" for target, section in SECTION.findall(index)]
    tasks = [f"{name}#{anchor}" for name, text in pages.items() for anchor in anchors(text)[1:]]
    return [f"docs/cookbook/index.md lists {task} {listed.count(task)} times" for task in tasks if listed.count(task) != 1]


def version_complaints(version, changes, pages, built):
    """`pages`: texts by name; `built`: what was built says, by where it says so."""
    complaints = [f"{where} says {said!r}, CMakeLists.txt {version}" for where, said in built.items() if said != version]
    first = re.search(r"^## (\S+)", changes, re.M)
    if not first or first[1] != version:
        complaints.append(f"CHANGELOG.md begins with {first and first[1]}, not with {version}")
    for name, text in pages.items():
        complaints += [f"{name} names Einlang {said}, this is {version}"
                       for said in re.findall(r"\bEinlang (\d+(?:\.\d+)+)", text) if said != version]
    return complaints


def self_test():
    assert index_complaints(["a.md", "b.md"], {"a.md", "b.md"}) == []
    assert len(index_complaints(["a.md", "a.md"], {"a.md", "b.md"})) == 2
    assert dead_links("[a](a.md) [b](b.md#c) [c](http://x) `[d](d.md)`", {"a.md"}.__contains__) == ["b.md"]
    page = "# One, two\n\n## `a_b[j]`\n\n## Same\n\n```sh\n# no heading\n```\n\n## Same\n\n[x](#same-1) [y](a.md#one-two) [z](a.cc#L3)\n"
    assert anchors(page) == ["one-two", "a_bj", "same", "same-1"], anchors(page)
    pages = {"": page, "a.md": page}
    assert dead_sections(page, pages.get) == []
    assert dead_sections("[x](#two) [y](a.md#no-heading) `[z](#z)`", pages.get) == ["#two", "a.md#no-heading"]
    assert cookbook_complaints("[T](a.md#t)", {"a.md": "# A\n\n## T\n"}) == []
    assert cookbook_complaints("", {"a.md": "# A\n\n## T\n"}) and cookbook_complaints("[T](a.md#t)" * 2, {"a.md": "# A\n\n## T\n"})
    assert version_complaints("1.2.0", "# C\n\n## 1.2.0 (x)\n", {"a": "Einlang 1.2.0"}, {"ein": "1.2.0"}) == []
    assert len(version_complaints("1.2.0", "## 1.1.0\n", {"a": "Einlang 1.1.0"}, {"ein": "1.1.0"})) == 3


def what_was_built(ein, major):
    folder = pathlib.Path(ein).resolve().parent
    said = {"ein --version": subprocess.run([ein, "--version"], capture_output=True, text=True, timeout=60).stdout.strip()[4:]}
    package = (folder / "generated/einlang.pc").read_text()
    said["einlang.pc"] = re.search(r"^Version: (\S+)$", package, re.M)[1]
    said["the shared library"] = (folder / f"libeinlang.so.{major}").resolve().name.removeprefix("libeinlang.so.")
    return said


def main(root, ein):
    self_test()
    docs = root / "docs"
    there = {str(p.relative_to(docs)) for p in docs.rglob("*.md")} - {"README.md"}
    listed = [l for l in LINK.findall((docs / "README.md").read_text()) if not l.startswith("../")]
    complaints = index_complaints(listed, {p for p in there if not p.startswith("errors/")})
    files = sorted({f for pattern in PAGES for f in root.glob(pattern) if ".venv" not in f.parts})
    for f in files:
        complaints += [f"{f.relative_to(root)}: {l} is not there" for l in dead_links(f.read_text(), lambda l: (f.parent / l).exists())]
    texts = {f.resolve(): f.read_text() for f in files}
    for f in files:
        page_at = lambda l: texts.get((f.parent / l).resolve() if l else f.resolve())
        complaints += [f"{f.relative_to(root)}: {l} is no section" for l in dead_sections(f.read_text(), page_at)]
    recipes = {f.name: f.read_text() for f in sorted((docs / "cookbook").glob("*.md"))}
    complaints += cookbook_complaints(recipes.pop("index.md"), recipes)
    version = re.search(r"^project\(einlang VERSION (\S+)", (root / "CMakeLists.txt").read_text(), re.M)[1]
    texts = {str(f.relative_to(root)): f.read_text() for f in files}
    complaints += version_complaints(version, texts["CHANGELOG.md"], texts, what_was_built(ein, version.split(".")[0]))
    print("\n".join(complaints) or f"{len(files)} pages, version {version}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
