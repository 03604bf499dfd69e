"""Section 6 of the page: exceptions and what they carry."""

import pickle
import re

import numpy as np
import pytest

import einlang

F32 = np.float32
WRONG = "let x: [f32; i];\nlet y[i] = x[j];\n"


def compile_error(source):
    with pytest.raises(einlang.CompileError) as found:
        einlang.compile(source, name="wrong.ein")
    return found.value


def test_a_wrong_program():
    error = compile_error(WRONG)
    assert isinstance(error, ValueError) and isinstance(error, einlang.Error)
    assert error.code == "E0303"
    text = str(error)
    assert text.startswith("error[E0303]: index `j` is neither on the left nor reduced\n --> wrong.ein:2:14")
    (d,) = error.diagnostics
    assert (d.code, d.severity) == ("E0303", "error") and d.message == "index `j` is neither on the left nor reduced"
    assert d.help.startswith("sum over it") and d.labels[0]["line"] == 2 and d.fixes[0]["title"] == "sum over `j`"
    assert d.rendered.startswith("error[E0303]")


def test_all_diagnostics_are_there():
    error = compile_error("let a = b;\nlet c = d;\n")
    assert [d.labels[0]["line"] for d in error.diagnostics if d.severity == "error"] == [1, 2]


def test_fixed():
    error = compile_error("let a = 1.0;\nlet b = lenght(a);\n")
    assert isinstance(error.fixed(), str)
    safe = compile_error("let x: [f32; i];\nlet y[i] == 2.0 * x[i];\n")
    assert safe.fixed() == "let x: [f32; i];\nlet y[i] = 2.0 * x[i];\n"
    assert einlang.compile(safe.fixed()).outputs.keys() == {"y"}


def test_colours_and_frames_in_notebooks():
    def caller():
        einlang.compile(WRONG)

    with pytest.raises(einlang.CompileError) as found:
        caller()
    lines = found.value._render_traceback_()
    text = "\n".join(lines)
    assert "test_errors.py" in lines[0] and "einlang.compile(WRONG)" in text and "program.py" not in text
    assert "\x1b[" in text and "neither on the left nor reduced" in text


def test_failures_have_their_place():
    p = einlang.compile("let x: [f32; i];\nlet k: i64;\nlet y = x[k];\n", name="pick.ein")
    with pytest.raises(einlang.CallError) as found:
        p(x=np.ones(3, F32), k=5)
    error = found.value
    assert isinstance(error, RuntimeError) and error.code == "E0803"
    assert "`x` has no cell at [5]: its extents are [3]" in str(error) and "--> pick.ein:3:" in str(error)
    assert error.diagnostics[0].labels[0]["line"] == 3
    assert float(p(x=np.ones(3, F32), k=2).y) == 1


def test_assertions():
    p = einlang.compile('let x: f32;\nassert(x > 0.0, "x must be positive, got {x}");\nlet y = sqrt(x);\n')
    assert float(p(x=4.0).y) == 2
    with pytest.raises(einlang.CallError, match="x must be positive, got -1.0") as found:
        p(x=-1.0)
    assert found.value.code == "E0804"


def test_kinds():
    assert issubclass(einlang.InputError, TypeError) and issubclass(einlang.InputError, ValueError)
    for kind in (einlang.DimsError, einlang.LabelError, einlang.CopyError):
        assert issubclass(kind, einlang.InputError)
    assert issubclass(einlang.InternalError, RuntimeError)
    for name in einlang.__all__:
        assert hasattr(einlang, name)


def test_errors_pickle():
    error = compile_error(WRONG)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is einlang.CompileError and str(again) == str(error) and again.diagnostics == error.diagnostics
    assert again.code == "E0303"


def test_an_internal_fault_says_how_to_report_it():
    from einlang.errors import call_failure, compile_failure

    for made in (compile_failure(70, ("", "a bug in the compiler: x"), ("", ""), ""),
                 call_failure(70, ("", "a bug in the compiler: x"), "", "")):
        assert isinstance(made, einlang.InternalError) and re.search("a bug in the compiler: x\n.*Please report", str(made))


def test_a_missing_file_is_a_call_error(tmp_path):
    with pytest.raises(einlang.Error, match="none.npy"):
        einlang.compile('let x = load("none.npy") as [f32; i]; let y[i] = x[i];')
