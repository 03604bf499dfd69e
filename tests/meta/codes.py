"""Every diagnostic code is emitted somewhere in src/ and has a file test, or stands in RESERVED; no
test folder names a code that does not exist. Usage: codes.py ROOT"""

import pathlib
import re

import tree

# Codes that nothing emits today.
RESERVED = {"E9999"}  # (the checks of this file itself use it)

# Given only under an option that file tests do not pass; tested in tests/cli/test_tools.py and
# tests/cli/test_ranks.py.
UNDER_OPTION = {"E0406", "E0901", "E0902", "E0903", "E0904", "E0907", "E0908"}


def check(root, quiet=False):
    root = pathlib.Path(root)
    codes = re.findall(r"^EIN_DIAG\((\w+),", (root / "src/base/codes.def").read_text(), re.M)
    emitted = set()
    for path in tree.sources(root, suffixes=(".h", ".cc")):
        emitted |= set(re.findall(r"Code::([EW]\d{4})\b", path.read_text()))
    tested = set()
    for path in (root / "tests").rglob("*.ein"):
        text = path.read_text()
        tested |= set(re.findall(r"//~(?:@\S+|\^*)\s*([EW]\d{4})\b", text))
        tested |= set(re.findall(r"//! fails: (E\d{4})\b", text))
    folders = {p.name for p in (root / "tests/errors").glob("*") if p.is_dir()}
    complaints = [f"{c} stands twice in codes.def" for c in set(codes) if codes.count(c) > 1]
    if codes != sorted(codes, key=lambda c: (c[0], c)):
        complaints.append("codes.def is not in order")
    for code in codes:
        if code in emitted and code in RESERVED:
            complaints.append(f"{code} is emitted: take it out of RESERVED")
        elif code in emitted - UNDER_OPTION and (code not in tested or code not in folders):
            complaints.append(f"{code} is emitted and has no test in tests/errors/{code}")
        elif code not in emitted and code not in RESERVED:
            complaints.append(f"{code} is never emitted: emit it, or add it to RESERVED")
    known = set(codes)
    complaints += [f"{c} is emitted and stands not in codes.def" for c in sorted(emitted - known)]
    complaints += [f"tests/errors/{f} is no code" for f in sorted(folders - known)]
    return complaints


def small(**changes):
    files = {"src/base/codes.def": "EIN_DIAG(E0101, Error, a, a)\nEIN_DIAG(E9999, Error, b, b)\n",
             "src/base/a.cc": "diags.error(Code::E0101, m)",
             "tests/errors/E0101/a.ein": "x  //~ E0101 a\n"}
    files.update(changes)
    return {name: text for name, text in files.items() if text is not None}


if __name__ == "__main__":
    tree.run(
        check,
        good=small(),
        bad=[
            small(**{"tests/errors/E0101/a.ein": "x\n"}),
            small(**{"tests/errors/E0101/a.ein": None, "tests/run/a.ein": "x  //~ E0101 a\n"}),
            small(**{"src/base/a.cc": ""}),
            small(**{"src/base/a.cc": "Code::E0101 Code::E9999"}),
            small(**{"src/base/a.cc": "Code::E0101 Code::E0998"}),
            small(**{"tests/errors/E0102/a.ein": "x  //~ E0101 a\n"}),
            small(**{"src/base/codes.def": "EIN_DIAG(E9999,\nEIN_DIAG(E0101,\n"}),
        ],
    )
