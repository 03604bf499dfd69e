"""The messages a user meets first, in full: what `ein check` renders for every program below
tests/messages, against the text beside it. Usage: test_messages.py EIN [--update]"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent / "messages"


def rendered(ein, program):
    done = subprocess.run([ein, "check", program.name, "--color", "never"], cwd=program.parent,
                          capture_output=True, text=True)
    return done.returncode, done.stderr


def check(ein, program, update):
    status, text = rendered(ein, program)
    expected = program.with_suffix(".txt")
    if update:
        expected.write_text(text)
    if status != 1:
        return f"{program.name}: exit status {status}, expected 1"
    if not expected.exists() or expected.read_text() != text:
        return f"{program.name}: not the text of {expected.name}:\n{text}"
    return None


def check_fix(ein):
    """`ein fix` writes the forgotten sum, and then the program is right."""
    broken = HERE / "forgotten_sum.ein"
    done = subprocess.run([ein, "fix", "-"], input=broken.read_text(), capture_output=True,
                          text=True)
    if "let y[i] = sum[k](A[i, k] * x[k]) + b[i];" not in done.stdout:
        return f"ein fix wrote:\n{done.stdout}{done.stderr}"
    again = subprocess.run([ein, "check", "-"], input=done.stdout, capture_output=True, text=True)
    return None if again.returncode == 0 else f"the fixed program is wrong:\n{again.stderr}"


def main(argv):
    ein, update = str(pathlib.Path(argv[0]).resolve()), "--update" in argv
    programs = sorted(HERE.glob("*.ein"))
    problems = [p for p in [check(ein, f, update) for f in programs] + [check_fix(ein)] if p]
    print("\n".join(problems + [f"{len(programs)} messages, {len(problems)} wrong"]))
    return 1 if problems or not programs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
