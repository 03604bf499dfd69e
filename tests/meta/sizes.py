"""Files stay short enough to read in one sitting: 800 lines at most; those over 400 are listed. Usage:
sizes.py ROOT"""

import tree

SOFT, HARD = 400, 800


def check(root, quiet=False):
    complaints = []
    for path in tree.sources(root, folders=("src", "python", "tests", "tools", "fuzz")):
        lines = len(path.read_text().splitlines())
        if lines > HARD:
            complaints.append(f"{path.relative_to(root)}: {lines} lines, more than {HARD}")
        elif lines > SOFT and not quiet:
            print(f"{path.relative_to(root)}: {lines} lines")
    return complaints


if __name__ == "__main__":
    tree.run(
        check,
        good={"src/base/a.cc": "int a;\n" * HARD},
        bad=[{"src/base/a.cc": "int a;\n" * (HARD + 1)}, {"tests/unit/a.py": "a = 1\n" * (HARD + 1)}],
    )
