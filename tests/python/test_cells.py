"""Cells of notebooks: sessions, `%%ein` in IPython, `einlang.cell` and marimo."""

import io
import re
from base64 import b64decode
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import einlang
from einlang.cells import Session

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Notebook:
    """A session with numbered cells, and what they print."""

    def __init__(self):
        self.session, self.count = Session(), 0

    def __call__(self, text, *outputs, grad=None, key=None, **given):
        self.count += 1
        out, err, self.pictures = io.StringIO(), io.StringIO(), []
        with redirect_stdout(out), redirect_stderr(err):
            ran = self.session.run(text, f"In[{self.count}]", given=given, outputs=list(outputs), grad=grad, key=key,
                                   picture=lambda path, svg: self.pictures.append((path, svg)))
        self.printed, self.warned = out.getvalue(), err.getvalue()
        self.forgotten = ran.forgotten
        return ran


@pytest.fixture
def cell():
    return Notebook()


# ---- definitions stay


def test_later_cells_have_definitions_and_values(cell):
    cell("let x: [f32; i];\nlet y[i] = 2.0 * x[i];\nconst k = 3;", x=np.array([1, 2], np.float32))
    cell("fn twice(v: f32) -> f32 { 2.0 * v }\ntype Pair = { a: f32, b: f32 };")
    ran = cell("let z[i] = twice(y[i]) + (k as f32);\nlet s = sum[i](z[i] * z[i]);", "z", "s", grad=("s", ["x"]))
    np.testing.assert_array_equal(ran.result["z"], [7, 11])
    # d/dx of (4x + 3)² is 8 (4x + 3)
    np.testing.assert_allclose(ran.gradients.grads.x, [56, 88])


def test_earlier_effects_are_not_repeated(cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell('let a = 1.0;\nprint("first {a}");\nsave("a.npy", [1.0]);\nassert(a > 0.0);')
    assert cell.printed == "first 1.0\n"
    (tmp_path / "a.npy").unlink()
    cell('print("second {a + 1.0}");')
    assert cell.printed == "second 2.0\n"
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_asked_is_computed(cell):
    cell("let x = [1.0, 2.0];\nlet at: i32;\nlet bad = x[at];", at=5)
    with pytest.raises(einlang.CallError, match="`x` has no cell at"):
        cell("", "bad")
    assert float(cell("let good = x[0];", "good").result["good"]) == 1.0


def test_to_define_again_replaces(cell):
    cell("let a = 1.0;")
    cell("let b = a + 1.0;")
    assert float(cell("let a = 10.0;\nlet c = b;", "c").result["c"]) == 11.0  # b goes by the new a
    assert float(cell("let a = 20.0;", "b").result["b"]) == 21.0
    # A recurrence is replaced with all its clauses.
    cell("let h[0] = 1.0;\nlet h[t in 1..4] = 2.0 * h[t - 1];")
    np.testing.assert_array_equal(cell("let h[0] = 1.0;\nlet h[t in 1..3] = 3.0 * h[t - 1];", "h").result["h"], [1, 3, 9])
    # Imports and functions may be repeated.
    cell("use std::math::{sinh, cosh};\nfn f(x: f32) -> f32 { x }")
    cell("use std::math::sinh;\nfn f(x: f32) -> f32 { 2.0 * x }")
    assert float(cell("let v = f(cosh(0.0)) + sinh(0.0);", "v").result["v"]) == 2.0


def test_a_function_takes_its_rule_along(cell):
    cell("fn f(x: f32) -> f32 { x * x }\n@fn f(x: f32) { 100.0 * @x }\nlet a: f32;\nlet y = f(a);", a=3.0)
    assert float(cell("", "y", grad=("y", ["a"])).gradients.grads.a) == 100.0
    ran = cell("fn f(x: f32) -> f32 { x * x * x }", "y", grad=("y", ["a"]))
    assert float(ran.gradients.grads.a) == 27.0


def test_running_a_cell_again_replaces_its_text(cell):
    cell("let a = 1.0;\nlet gone = 2.0;", key="one")
    cell("let a = 5.0;", key="one")
    assert [part.text for part in cell.session.parts] == ["let a = 5.0;"]
    with pytest.raises(einlang.CompileError, match="unknown name `gone`"):
        cell("let b = gone;", "b")


def test_running_the_same_text_again_keeps_one(cell):
    for _ in range(3):
        cell("let a = 1.0;")
    assert len(cell.session.parts) == 1 and float(cell("let b = a;", "b").result["b"]) == 1.0


def test_a_cell_that_does_not_compile_is_not_kept(cell):
    cell("let a = 1.0;")
    with pytest.raises(einlang.CompileError):
        cell("let a = 2.0;\nlet b = nothing;")
    assert float(cell("let c = a;", "c").result["c"]) == 1.0


def test_definitions_that_no_longer_fit_are_forgotten(cell):
    cell("let W = [[1.0, 2.0], [3.0, 4.0]];\nlet u = 7.0;")
    cell("let z[i] = sum[j](W[i, j]);")
    cell("let W = [1.0, 2.0];", "W")
    assert len(cell.forgotten) == 1 and "the definitions of In[2] do not fit this cell" in cell.forgotten[0]
    assert "In[2]:1" in cell.forgotten[0]
    ran = cell("let z[i] = 2.0 * W[i] + u;", "z")
    np.testing.assert_array_equal(ran.result["z"], [9, 11])
    assert cell.forgotten == []


def test_what_was_replaced_does_not_come_back(cell):
    cell("let W = [1.0, 2.0];\nlet z = 1.0;")
    cell("let z[i] = 2.0 * W[i];")
    cell("let W = [[1.0], [2.0]];")
    assert "In[2]" in cell.forgotten[0]
    with pytest.raises(einlang.CompileError, match="unknown name `z`"):
        cell("let y = z;", "y")


def test_when_both_disagree_both_are_shown(cell):
    cell("let x = [1.0, 2.0, 3.0];")
    with pytest.raises(einlang.CompileError) as caught:
        cell("\nlet w = [1.0, 2.0];\nlet s = sum[k](x[k] * w[k]);", "s")
    said = str(caught.value)
    assert "In[2]:3" in said and caught.value.diagnostics[0].file == "In[2]"
    assert caught.value.diagnostics[0].labels[0]["line"] == 3


# ---- inputs


def test_values_are_replaced_by_newer_ones(cell):
    cell("let x: [f32; i];\nlet s = sum[i](x[i]);", x=[1.0, 2.0])
    assert float(cell("", "s").result["s"]) == 3.0
    assert float(cell("", "s", x=[5.0]).result["s"]) == 5.0


def test_records(cell):
    cell("let net: { w: [f32; i], b: f32 };\nlet y[i] = net.w[i] + net.b;", net={"w": [1.0, 2.0], "b": 10.0})
    np.testing.assert_array_equal(cell("let z[i] = 2.0 * y[i];", "z").result["z"], [22, 24])


def test_a_definition_alone_needs_no_value(cell):
    cell("let x: [f32; i];\nlet y[i] = 2.0 * x[i];")
    with pytest.raises(einlang.InputError, match=r"the input `x` \(\[f32; i\]\) has no value: write `--in x`"):
        cell("", "y")
    with pytest.raises(einlang.InputError, match="was not given a value(.|\n)*%%ein --in"):
        cell("print(y);")
    cell("print(y);", x=[1.0])
    assert cell.printed == "[i: 1] [2.0]\n"


@pytest.mark.parametrize("value, declared", [
    (np.zeros((2, 3), np.float32), "let x: [f32; d0, d1];"), (np.zeros(2, np.int64), "let x: [i64; d0];"), (1.5, "let x: f32;"),
    (3, "let x: i32;"), ([True], "let x: [bool; d0];"), ({"a": 1.0, "b": [2.0]}, "let x: { a: f32, b: [f32; d0] };")])
def test_an_input_that_is_not_declared(cell, value, declared):
    with pytest.raises(einlang.InputError, match="no cell declares an input `x`") as caught:
        cell("let y = 1.0;", x=value)
    assert f"`{declared}`" in str(caught.value)
    # The declaration that the message suggests works.
    cell(declared, x=value)


def test_an_input_with_names_is_declared_with_them(cell):
    xr = pytest.importorskip("xarray")
    with pytest.raises(einlang.InputError, match=re.escape("`let x: [f64; lat, lon];`")):
        cell("", x=xr.DataArray(np.zeros((2, 2)), dims=("lat", "lon")))


def test_a_name_that_is_given_but_not_declared(cell):
    with pytest.raises(einlang.CompileError, match="unknown name `y`") as caught:
        cell("let z[i] = 2.0 * y[i];", "z", y=np.zeros((3,), np.float32))
    assert str(caught.value).endswith("    let y: [f32; d0];")
    cell("let y: [f32; d0];\nlet z[i] = 2.0 * y[i];", "z", y=np.zeros((3,), np.float32))


def test_values_that_do_not_fit_are_not_kept(cell):
    with pytest.raises(einlang.InputError, match="holds f32, but the array given holds int64"):
        cell("let y: [f32; i];\nlet s = sum[i](y[i]);", y=np.zeros(3, np.int64))
    cell("print(1);")  # does not stumble over y
    cell("", "s", y=[1.0, 2.0])
    cell("let y: [f32; i, j];\nlet t = sum[i, j](y[i, j]);\nlet s = 1.0;")  # another type: the old value is none of it
    with pytest.raises(einlang.InputError, match="the input `y` .* has no value"):
        cell("", "t")
    assert float(cell("", "t", y=[[1.0, 2.0]]).result["t"]) == 3.0
    assert float(cell("let u = 2.0 * t;", "u").result["u"]) == 6.0


# ---- pictures and warnings


def test_pictures_are_shown_and_not_saved(cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell('use std::plot::plot;\nlet v = [1.0, 4.0, 9.0];\nplot("a.svg", v);\nprint("drawn");')
    assert [path for path, _ in cell.pictures] == ["a.svg"]
    assert cell.pictures[0][1].startswith("<svg") and cell.printed == "drawn\n"
    assert list(tmp_path.iterdir()) == []
    cell('save("b.txt", "text");')
    assert (tmp_path / "b.txt").read_text() == "text"


def test_warnings_are_shown_once(cell):
    cell("let a = 1.0;\na + 1.0;")
    assert "W0201" in cell.warned and "In[1]:2" in cell.warned
    cell("let b = a;")
    assert cell.warned == ""


# ---- IPython


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "einlang")
    return shell


def magic(shell, line, text):
    return shell.run_cell_magic("ein", line, text)


def test_magic(shell, capsys):
    shell.user_ns.update(x=np.array([[1, 2], [3, 4]], np.float32), weights=np.array([1, -1], np.float32))
    magic(shell, "--in x, W=weights --out z,loss --grad loss:W --as p",
          'let x: [f32; n, i];\nlet W: [f32; i];\nlet z[n] = sum[i](x[n, i] * W[i]);\nlet loss = sum[n](z[n] ** 2.0);\n'
          'print("loss {loss}");')
    assert capsys.readouterr().out == "loss 2.0\n"
    ns = shell.user_ns
    np.testing.assert_array_equal(ns["z"], [-1, -1])
    np.testing.assert_array_equal(ns["grads"].W, [-8, -12])
    assert float(ns["loss"]) == 2.0 and isinstance(ns["p"], einlang.Program)
    assert "W" in str(ns["p"].explain("loss", "W")) and "z" in str(ns["p"].audit())
    magic(shell, "--out double", "let double = 2.0 * loss;")
    assert float(ns["double"]) == 4.0
    with pytest.raises(einlang.CompileError, match="unknown name `loss`"):
        magic(shell, "--new --out double", "let double = 2.0 * loss;")


def test_numbers_as_inputs(shell):
    magic(shell, "--in rate=-2.5e1,n=3 --out y", "let rate: f32;\nlet n: i32;\nlet y = rate * n as f32;")
    assert float(shell.user_ns["y"]) == -75.0


def test_a_variable_that_was_not_handed_over(shell):
    """Programs do not see the notebook's variables; the answer says how they do."""
    shell.user_ns.update(x=np.ones((2, 3)), name="text", k=2)
    with pytest.raises(einlang.CompileError, match="unknown name `x`") as found:
        magic(shell, "--out y", "let y = sum[i, j](x[i, j]) * k;")
    assert found.value.__notes__ == [
        "The notebook has a variable `x`, which a cell of Einlang gets with `--in x`, as an input that it declares: let x: [f64; d0, d1];",
        "The notebook has a variable `k`, which a cell of Einlang gets with `--in k`, as an input that it declares: let k: i32;"]
    assert "The notebook has" in "\n".join(found.value._render_traceback_())
    with pytest.raises(einlang.CompileError) as found:
        magic(shell, "", "let y = name;")
    assert not hasattr(found.value, "__notes__")


def test_options_may_be_repeated(shell):
    shell.user_ns.update(x=np.ones(2), W=np.full(2, 3.0))
    magic(shell, "--in x --in W --out y --out z", "let x: [f64; i];\nlet W: [f64; i];\nlet y = sum[i](x[i] * W[i]);\nlet z = 2.0 * y;")
    assert (float(shell.user_ns["y"]), float(shell.user_ns["z"])) == (6.0, 12.0)


def test_line_magic(shell):
    magic(shell, "", "let a = 3.0;")
    shell.run_line_magic("ein", "--out a")
    assert float(shell.user_ns["a"]) == 3.0


def test_the_notebooks_name_of_a_cell(shell):
    shell.get_parent = lambda: {"metadata": {"cellId": "one"}}
    magic(shell, "", "let a = 1.0;\nlet gone = 1.0;")
    magic(shell, "", "let a = 2.0;")
    shell.get_parent = lambda: {"metadata": {"cellId": "two"}}
    with pytest.raises(einlang.CompileError, match="unknown name `gone`"):
        magic(shell, "", "let b = a + gone;")


@pytest.mark.parametrize("line, message", [
    ("--in nothing", "the notebook has no variable `nothing`"), ("--in x.y", "--in takes names"),
    ("--in q=0.5.1", "`0.5.1` is not a number"), ("--in q=x.nothing", "a ndarray has no attribute `nothing`"), ("--out 1+1", "--out takes names"), ("--out z=x", "--out takes names"), ("--as 1", "--as takes names"),
    ("--grad loss", "--grad takes a value and what to differentiate it by, such as `--grad loss:W,b`, not 'loss'"),
    ("--frob", "unrecognized arguments: --frob")])
def test_wrong_options(shell, line, message):
    from IPython.core.error import UsageError

    shell.user_ns["x"] = np.zeros(2)
    with pytest.raises(UsageError, match=re.escape(message)):
        magic(shell, line, "let a = 1.0;")


def test_unknown_output(shell):
    with pytest.raises(einlang.CompileError, match="defines no value `b`"):
        magic(shell, "--out b", "let a = 1.0;")


def test_the_traceback_of_a_cell_is_the_message_alone(shell):
    with pytest.raises(einlang.CompileError) as caught:
        magic(shell, "", "let a = 1.0;\nlet b = unknown;")
    lines = caught.value._render_traceback_()
    assert len(lines) == 1 and "\x1b[" in lines[0]
    said = ANSI.sub("", lines[0])
    assert said.startswith("CompileError: error[E0201]: unknown name `unknown`") and "In[1]:2:9" in said


def test_the_magic_has_a_help(shell):
    assert "--grad" in shell.find_cell_magic("ein").__doc__


# ---- einlang.cell


def test_cell():
    data = einlang.cell("let x: [f32; i];\nlet s = sum[i](x[i] ** 2.0);", x=[1.0, 2.0])
    assert float(data.s) == 5.0 and list(data) == ["s"] and len(data) == 1
    more = einlang.cell("let t = s + 1.0;", data)
    assert float(more["t"]) == 6.0 and list(more) == ["t"]
    np.testing.assert_array_equal(more.grad("t", "x").grads.x, [2, 4])
    other = einlang.cell("let u = s + t;", data, more, x=[3.0])
    assert float(other.u) == 19.0
    with pytest.raises(einlang.CompileError, match="unknown name `s`"):
        einlang.cell("let u = s;")
    with pytest.raises(einlang.CompileError) as caught:
        einlang.cell("\nlet u = t + nothing;", more)
    assert "<cell 3>:2" in str(caught.value)


def test_cell_shows_pictures_and_values(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drawn = einlang.cell('use std::plot::plot;\nlet v = [1.0, 4.0];\nplot("<a>.svg", v);\nprint("hello");')
    assert capsys.readouterr().out == "hello\n" and list(tmp_path.iterdir()) == []
    shown = drawn._repr_html_()
    assert b64decode(re.search("base64,([^\"]+)", shown)[1]).startswith(b"<svg") and "&lt;a&gt;.svg" in shown and "v = [2] [1.0, 4.0]" in shown


@pytest.mark.parametrize("wrong, message", [
    (lambda: einlang.cell(3), "cell takes the text of a program, not int"),
    (lambda: einlang.cell("let a = 1.0;", 3), "inputs are given by name"),
    (lambda: einlang.cell("let a = 1.0;", b=[1.0]), "the program has no input `b`: its inputs are none. Declare it, as in "
     "`let b: [f32; d0];`"),
    (lambda: einlang.cell("let a: f32;\nlet b = a;"), r"input `a` (f32) is missing")])
def test_wrong_cells(wrong, message):
    with pytest.raises((TypeError, einlang.InputError), match=re.escape(message)):
        wrong()


def test_marimo():
    import marimo

    app = marimo.App()

    @app.cell
    def _():
        import einlang as ein
        return (ein,)

    @app.cell
    def _(ein):
        data = ein.cell("let x: [f32; i];\nlet s = sum[i](x[i]);", x=[1.0, 2.0])
        return (data,)

    @app.cell
    def _(data, ein):
        drawn = ein.cell('use std::plot::plot;\nlet y[i] = x[i] / s;\nplot("y.svg", y);', data)
        drawn
        return (drawn,)

    outputs, names = app.run()
    np.testing.assert_allclose(names["drawn"].y, [1 / 3, 2 / 3], rtol=1e-6)
    from marimo._output.formatting import try_format

    shown = try_format(names["drawn"])
    assert shown.mimetype == "text/html" and "data:image/svg+xml" in shown.data
