"""The programs of examples/ run natively and end in the figures that they promise, and examples/README.md names
each of them. Usage: examples.py ROOT EIN

A program's last line of output holds its figure: a word, then a number (the last number where the line shows a change,
`loss 1.0 → 0.1`). The programs assert a bound of their own; this asserts the number, so that a change of the
arithmetic or of a derivative shows even where the bound still holds. Where the figure can be worked out without
Einlang (examples_outside.py: closed forms, other methods, derivatives by hand), it is. The other figures come from a
run whose results somebody has checked by eye.

They run in a folder of their own, where the digits are drawn first. A program whose training takes long runs with
fewer steps: its `const steps = …;` is replaced."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import examples_outside  # noqa: E402

os.environ.setdefault("EINLANG_CACHE", "off")  # not the cache of whoever runs this

DIGITS = "digits/generate.ein"  # writes the files that the other programs of that folder read

MODULES = ("letters.ein",)  # used by programs
# They need weights that `transformers` makes: tests/python/test_models.py runs them.
WITH_WEIGHTS = ("models/decoder.ein", "models/gpt2.ein", "models/llama.ein")

# program: (the word of its last line, the number or OUTSIDE, by how much it may differ: half of the last digit that is
# shown, and rounding, which grows in long runs), and the number of steps where it is shortened
OUTSIDE = "worked out by examples_outside.py"
FIGURES = {
    "checkpoint.ein": ("loss", OUTSIDE, 0.0001),
    "conjugate_gradients.ein": ("middle", OUTSIDE, 0.001),
    "diffusion.ein": ("distance", 0.0344, 0.008),
    "digits/cnn.ein": ("accuracy", 0.802, 0.02, 60),
    "digits/generate.ein": ("ink", 0.196, 0.001),
    "digits/layer.ein": ("loss", OUTSIDE, 0.0001),
    "digits/linear.ein": ("accuracy", 0.8055, 0.005),
    "digits/mlp.ein": ("accuracy", 0.956, 0.005),
    "digits/resnet.ein": ("accuracy", 0.762, 0.03, 40),
    "gaussian_mixture.ein": ("nll", OUTSIDE, 0.0002),
    "gpt.ein": ("validation", 1.962, 0.1),
    "heat_source.ein": ("inside", 0.996, 0.002),
    "kalman.ein": ("loss", OUTSIDE, 0.0001),
    "linear_regression.ein": ("loss", OUTSIDE, 0.00006),
    "logistic_regression.ein": ("loss", OUTSIDE, 0.0001),
    "lorenz.ein": ("exponent", OUTSIDE, 0.04),  # chaos: the last digits of a step decide where the path goes
    "lorenz_fit.ein": ("error", 0.0038, 0.001),
    "lotka_volterra.ein": ("error", 0.0031, 0.0005),
    "lstm.ein": ("loss", 0.0072, 0.0005),
    "mixed_precision.ein": ("error", 0.00414, 0.0003),
    "mlp.ein": ("loss", 0.0121, 0.0005),
    "newton.ein": ("value", OUTSIDE, 0.06e-20),
    "newton_cg.ein": ("norm", OUTSIDE, 0.2e-11),
    "pinn.ein": ("error", 0.0057, 0.004),
    "planning.ein": ("divergence", 0.0098, 0.001),
    "policy_gradient.ein": ("length", 500.0, 25.0),
    "power_iteration.ein": ("eigenvalue", OUTSIDE, 0.000002),
    "routing.ein": ("border", 0.387, 0.01),
    "train.ein": ("loss", 0.0005, 0.0002),
    "transformer.ein": ("loss", 1.429, 0.03, 100),
    "value_iteration.ein": ("value", OUTSIDE, 0.0001),
    "vae.ein": ("loss", 6.54, 0.4),
    "wave.ein": ("error", 0.0009, 0.0003),
}


STEPS = re.compile(r"^const steps = \d+;$", re.M)


def problem_of(ein, path, folder, word, number, tolerance, steps=None):
    text = path.read_text()
    program = path
    if steps is not None:
        text, found = STEPS.subn(f"const steps = {steps};", text)
        if found != 1:
            return "has no line `const steps = …;`"
        program = pathlib.Path(folder) / path.name
        program.write_text(text)
        for beside in [*path.parent.glob("*.idx"), *(path.parent / name for name in MODULES)]:
            if beside.exists():
                shutil.copy(beside, folder)
    done = subprocess.run([ein, "run", str(program.resolve())], capture_output=True, text=True, timeout=300, cwd=folder)
    if done.returncode:
        return f"status {done.returncode}: {done.stderr}"
    if done.stderr:
        return f"says {done.stderr}"
    last = done.stdout.rstrip("\n").rpartition("\n")[2]
    found = re.fullmatch(re.escape(word) + r" (?:\S+ → )?(-?\d\S*)", last)
    if not found:
        return f"ends in `{last}`, not in `{word}` and a number"
    if not abs(float(found.group(1)) - number) <= tolerance:
        return f"ends in `{last}`, expected {number} ± {tolerance}"
    if "assert(" not in text:
        return "asserts nothing"
    return None


def self_test(ein, folder):
    path = pathlib.Path(folder) / "p.ein"
    path.write_text('print("first");\nprint("loss 2.0 → {0.25}");\nassert(true);\n')
    assert problem_of(ein, path, folder, "loss", 0.25, 0.0) is None, problem_of(ein, path, folder, "loss", 0.25, 0.0)
    assert problem_of(ein, path, folder, "loss", 0.3, 0.01)
    assert problem_of(ein, path, folder, "error", 0.25, 0.0)
    assert problem_of(ein, path, folder, "loss", 0.25, 0.0, 2)
    for bad in ('print("loss {0.25}");\n', 'print("loss {0.25}");\nassert(false);\n',
                'print("loss {0.0 / 0.0}");\nassert(true);\n'):
        path.write_text(bad)
        assert problem_of(ein, path, folder, "loss", 0.25, 0.0), bad
    path.write_text('const steps = 9;\nprint("loss {steps}");\nassert(true);\n')
    assert problem_of(ein, path, folder, "loss", 2, 0.0, 2) is None


def main(root, ein):
    ein = str(pathlib.Path(ein).resolve())  # programs run in another folder
    folder = root.resolve() / "examples"
    readme = (folder / "README.md").read_text()
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.ein"))
    problems = [(name, "has no figure in tests/examples.py") for name in names if name not in (*FIGURES, *MODULES, *WITH_WEIGHTS)]
    problems += [(name, "does not exist") for name in FIGURES if name not in names]
    figures = {name: (word, examples_outside.FIGURES[name]() if number is OUTSIDE else number, *rest)
               for name, (word, number, *rest) in FIGURES.items()}
    problems += [(name, f"{number} ± {tolerance} may be nothing at all")
                 for name, (_, number, tolerance, *_) in figures.items() if tolerance >= abs(number)]
    problems += [(name, "is worked out outside, and that is not asserted")
                 for name in examples_outside.FIGURES if FIGURES.get(name, (0, 0))[1] is not OUTSIDE]
    problems += [(name, "is not in examples/README.md") for name in names if f"({name})" not in readme]
    with tempfile.TemporaryDirectory() as current:
        self_test(ein, current)
        for name in sorted(set(FIGURES) & set(names), key=lambda name: (name != DIGITS, name)):
            problem = problem_of(ein, folder / name, current, *figures[name])
            if problem:
                problems.append((name, problem))
    for name, problem in problems:
        print(f"{name}: {problem}")
    print(f"{len(FIGURES)} programs, {len(problems)} problems")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
