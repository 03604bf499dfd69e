"""What the meta checks share: the source files of a tree, and a self-test that a check can fail."""

import pathlib
import sys
import tempfile


def sources(root, folders=("src",), suffixes=(".h", ".cc", ".def", ".py")):
    for folder in folders:
        for path in sorted((pathlib.Path(root) / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path


def run(check, good, bad):
    """`check(root)` returns a list of complaints. First prove, on small trees, that it accepts `good` and
    rejects each of `bad` ({path: text}); then apply it to the tree named on the command line."""
    for files, expected in [(good, False)] + [(tree, True) for tree in bad]:
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            complaints = check(root, quiet=True)
            if bool(complaints) != expected:
                sys.exit(f"self-test: {sorted(files)} should {'fail' if expected else 'pass'}: {complaints}")
    complaints = check(sys.argv[1])
    print("\n".join(complaints) if complaints else "fine")
    sys.exit(1 if complaints else 0)
