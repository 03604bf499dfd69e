"""Random programs called from Python: every value and derivative against the oracle of fuzz/, which shares nothing with the
compiler. It prints programs, inputs, answers and how far rounding may move each cell (fuzz/oracle_cases.cc)."""

import json
import os
import pathlib
import subprocess
import time

import numpy as np
import pytest

import einlang

SECONDS = 15  # new programs are begun for so long
LEAST = 10  # on a busy machine too
SLACK = 4  # the oracle measures rounding by a few runs, which may all be lucky
FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
SCALARS = {"float": float, "int": int, "bool": bool}


def cases(count):
    tool = pathlib.Path(os.environ.get("EIN_ORACLE_CASES", "tests/oracle_cases"))  # tests run in the build folder
    if not tool.is_file():
        pytest.fail(f"{tool.resolve()} is not there: build the target oracle_cases (cmake -DEIN_TESTS=ON), "
                    "or say in EIN_ORACLE_CASES where it is")
    shown = subprocess.run([tool, "--seed", "1", "--count", str(count)], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in shown.splitlines()]


def float_type(name):
    if name == "bf16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return FLOATS[name]


def cells_of(part):
    return np.array([float(text) for text in part["cells"]]).reshape(part["shape"])


def inputs_of(case, as_scalars):
    """The inputs as a user has them: arrays, numbers for what has no axes, nested mappings for records."""
    given = {}
    for part in case["inputs"]:
        kind = {"float": float_type(case["dtype"]), "int": np.int32, "bool": np.bool_}[part["kind"]]
        cells = cells_of(part)
        value = SCALARS[part["kind"]](cells) if as_scalars and not part["shape"] else cells.astype(kind)
        *path, last = part["name"].split(".")
        inner = given
        for name in path:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return given


def differences(case, result):
    """What differs from the oracle's answers, in words."""
    for part in case["answers"]:
        name, want = part["name"], cells_of(part)
        got = result[name].numpy()
        if got.shape != want.shape:
            yield f"{name} has shape {got.shape}, expected {want.shape}"
            continue
        got = got.astype(float)
        room = SLACK * np.array([float(text) for text in part["tolerance"]]).reshape(want.shape)
        with np.errstate(invalid="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            if part["kind"] == "float":
                same |= np.abs(got - want) <= room
        if not same.all():
            yield f"{name} is {got}, expected {want} ± {room}"


def test_random_programs():
    begin, done, derivatives, wrong = time.monotonic(), 0, 0, []
    for case in cases(400):
        if done >= LEAST and time.monotonic() - begin > SECONDS:
            break
        where = f"seed {case['seed']}\n{case['source']}"
        try:
            program = einlang.compile(case["source"], opt_level=case["seed"] % 3)
            result = program(**inputs_of(case, as_scalars=case["seed"] % 2 == 0))
        except einlang.Error as error:
            wrong.append(f"{where}{type(error).__name__}: {error}")
            continue
        wrong += [f"{where}{text}" for text in differences(case, result)]
        done += 1
        derivatives += sum(part["derivative"] for part in case["answers"])
    assert not wrong, f"{len(wrong)} failures, the first:\n{wrong[0]}"
    assert done >= LEAST and derivatives >= LEAST
    print(f"{done} programs, {derivatives} derivatives")


def test_a_wrong_answer_is_noticed():
    """One cell of one answer, moved by a thousandth."""
    case = next(c for c in cases(20) if c["dtype"] == "f64" and any(p["derivative"] and p["cells"] for p in c["answers"]))
    result = einlang.compile(case["source"])(**inputs_of(case, as_scalars=False))
    assert not list(differences(case, result))
    part = next(p for p in case["answers"] if p["derivative"] and p["cells"])
    part["cells"][-1] = str(float(part["cells"][-1]) * 1.001 + 1e-3)
    assert [text.split()[0] for text in differences(case, result)] == [part["name"]]
