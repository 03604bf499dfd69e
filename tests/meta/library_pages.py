"""docs/library is what `ein doc --library` writes, and nothing public lacks a doc comment or an example.
Usage: library_pages.py ROOT EIN [--write]   (--write: make the pages anew; see also `make reference`)"""

import pathlib
import subprocess
import sys
import tempfile

OTHERS = {"coverage.md"}  # written by tests/stdlib/coverage.py


def pages(ein, folder):
    done = subprocess.run([ein, "doc", "--library", "--out", folder], capture_output=True, text=True, timeout=300)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"ein doc --library: status {done.returncode}\n{done.stderr}")
    return {p.name: p.read_text() for p in pathlib.Path(folder).glob("*.md")}


def stale(fresh, kept):
    """The pages that differ, are missing or are no longer written."""
    return sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))


def main(root, ein, write):
    assert stale({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": ""}) == ["b", "c"]
    folder = root / "docs/library"
    kept = {p.name: p.read_text() for p in folder.glob("*.md") if p.name not in OTHERS}
    with tempfile.TemporaryDirectory() as fresh_folder:
        fresh = pages(ein, fresh_folder)
    if write:
        folder.mkdir(exist_ok=True)
        for name in stale(fresh, kept):
            if name in fresh:
                (folder / name).write_text(fresh[name])
            else:
                (folder / name).unlink()
        return 0
    for name in stale(fresh, kept):
        print(f"docs/library/{name} is not what `ein doc --library` writes: run `make reference`")
    print(f"{len(fresh)} pages")
    return 1 if stale(fresh, kept) else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], "--write" in sys.argv[3:]))
