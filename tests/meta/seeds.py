"""tests/seeds.md names a test for every snippet of the book: every file it names exists, and every
test named after a chapter stands in it. Usage: seeds.py ROOT"""

import pathlib
import re
import sys

NAMED = re.compile(r"(?:run|grad|errors/[EW]\d{4})/seed_\d{3}_\w+\.ein")


def problems(tests, page):
    named = set(NAMED.findall(page))
    there = {str(f.relative_to(tests)) for f in tests.rglob("seed_*.ein")}
    return ([f"seeds.md names {n}, which does not exist" for n in sorted(named - there)]
            + [f"{n} is not in seeds.md" for n in sorted(there - named)])


def main(root):
    tests = pathlib.Path(root) / "tests"
    page = (tests / "seeds.md").read_text()
    if not problems(tests, page + "run/seed_000_missing.ein") or not problems(tests, ""):
        print("seeds.py cannot fail")
        return 1
    found = problems(tests, page)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
