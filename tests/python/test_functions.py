"""Public functions as callables, and runs with effects (section 3)."""

import numpy as np
import pytest
import xarray

import einlang

F32 = np.float32
LIBRARY = """
const two = 2.0;
let unrelated: [f32; n];
let scaled[n] = two * unrelated[n];

/// A linear layer.
pub fn linear(x: [f32; n, in], W: [f32; out, in], scale: f32 = 1.0) -> [f32; n, out] {
    let y[n, out] = scale * sum[in](x[n, in] * W[out, in]);
    y
}
pub fn softmax[c](x: [f32; ..b, c]) -> [f32; ..b, c] {
    let e[..b, c] = exp(x[..b, c]);
    let y[..b, c] = e[..b, c] / sum[c](e[..b, c]);
    y
}
pub fn both(x: [f32; n]) { (sum[n](x[n]), x) }
pub fn named(x: [f32; n]) { { total: sum[n](x[n]), half: { x: two * x[0] } } }
pub fn square(x) { x * x }
pub fn apply(net: { w: [f32; in], b: f32 }, x: [f32; in]) -> f32 { sum[in](net.w[in] * x[in]) + net.b }
fn hidden(x: f32) -> f32 { x }
"""


@pytest.fixture(scope="module")
def p():
    return einlang.compile(LIBRARY)


def test_by_position_and_by_name(p, data):
    expected = data["x"] @ data["W"].T
    for y in [p.fn.linear(data["x"], data["W"]), p.linear(data["x"], W=data["W"]), p.linear(W=data["W"], x=data["x"])]:
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
        assert y.dims == ("n", "out")
    np.testing.assert_allclose(p.linear(data["x"], data["W"], 3.0).numpy(), 3 * expected, rtol=1e-5)
    np.testing.assert_allclose(p.linear(data["x"], data["W"], scale=2).numpy(), 2 * expected, rtol=1e-5)


def test_names_of_arguments_win(p, data):
    x = xarray.DataArray(data["x"], dims=["row", "feature"])
    W = xarray.DataArray(data["W"], dims=["class", "feature"])
    assert p.linear(x, W).dims == ("row", "class")


def test_compiled_once_for_each_kind(p, data):
    p.fn.square._programs.clear()
    for size in (2, 3):
        np.testing.assert_array_equal(p.square(np.full(size, 3, F32)).numpy(), np.full(size, 9))
    assert len(p.fn.square._programs) == 1
    assert p.square(np.full((2, 2), 3, np.int32)).dtype == np.int32
    assert float(p.square(1.5)) == 2.25
    assert len(p.fn.square._programs) == 3


def test_brackets(p):
    x = xarray.DataArray(np.arange(6, dtype=F32).reshape(2, 3), dims=["row", "class"])
    e = np.exp(x.values)
    np.testing.assert_allclose(p.softmax(x, coords="class").numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(p.softmax(x.T, coords=["row"]).numpy(), (e / e.sum(0, keepdims=True)).T, rtol=1e-5)


def test_tuples_and_records(p):
    total, same = p.both(np.array([1, 2], F32))
    assert float(total) == 3 and same.numpy().tolist() == [1, 2]
    r = p.named(np.array([1, 2], F32))
    assert float(r.total) == 3 and float(r.half.x) == 2
    assert float(p.apply({"w": np.array([1, 2], F32), "b": 0.5}, np.array([3, 4], F32))) == 11.5


def test_derivatives_of_a_function(p, data):
    q = p.fn.linear.program(data["x"], data["W"])
    seed = np.ones((4, 2), F32)
    r = q.vjp("linear_result", "linear_W")(linear_x=data["x"], linear_W=data["W"], linear_result_bar=seed)
    np.testing.assert_allclose(r.linear_W_bar.numpy(), seed.T @ data["x"], rtol=1e-5)


def test_wrong_calls(p, data):
    with pytest.raises(TypeError, match="needs `W`"):
        p.linear(data["x"])
    with pytest.raises(TypeError, match="has no parameter `w`"):
        p.linear(data["x"], w=data["W"])
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        p.square(1.0, 2.0)
    with pytest.raises(TypeError, match="got two values for `x`"):
        p.square(1.0, x=2.0)
    with pytest.raises(AttributeError, match="no public function `hidden`"):
        p.fn.hidden
    with pytest.raises(AttributeError, match="did you mean `linear`"):
        p.liner
    with pytest.raises(einlang.CompileError):
        p.linear(data["x"].astype(np.float64), data["W"])
    assert "linear" in dir(p.fn) and "linear" in dir(p) and "n, in" in repr(p.fn.linear)


def test_a_function_that_reads_the_program():
    p = einlang.compile("let w: [f32; n]; let twice[n] = 2.0 * w[n];\n"
                        "pub fn reads(x: [f32; n]) -> f32 { sum[n](x[n]) + twice[0] }")
    q = p.fn.reads.program(np.ones(5, F32))
    assert float(q(w=np.ones(3, F32), reads_x=np.ones(5, F32)).reads_result) == 7
    with pytest.raises(einlang.InputError, match="input `w`"):
        p.reads(np.ones(5, F32))


def test_inputs_that_nothing_needs_may_be_left_out():
    p = einlang.compile("let a: [f32; i]; let b: [f32; i]; let y[i] = a[i]; let z[i] = b[i];", outputs=["y"])
    assert not p.inputs["b"].needed and p(a=[1.0]).y.numpy() == 1
    assert p(a=[1.0], b=[2.0]).y.numpy() == 1
    with pytest.raises(einlang.InputError, match="input `a`"):
        p(b=[1.0])


# ---- run


def test_run_prints_and_gives_values(capsys):
    p = einlang.compile('let x: [f32; i]; let s = sum[i](x[i]); print("sum {s:.1f}"); print(x);')
    r = p.run(x=np.array([1, 2], F32))
    assert capsys.readouterr().out == "sum 3.0\n[i: 2] [1.0, 2.0]\n"
    assert float(r.s) == 3
    p(x=np.array([1, 2], F32))
    assert capsys.readouterr().out == ""


def test_run_saves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = einlang.compile('let x: [f32; i]; let y[i] = 2.0 * x[i]; save("y.npy", y);')
    p.run(x=np.array([1, 2], F32))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [2, 4])


def test_text_files_may_be_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = einlang.compile('let x: f32; save("a.txt", "x is {x}"); save("b.txt", "no");')
    seen = []

    def file(path, text):
        seen.append((path, text))
        return path == "a.txt"

    p._run({"x": 2.0}, file)
    assert seen == [("a.txt", "x is 2.0"), ("b.txt", "no")]
    assert [f.name for f in tmp_path.iterdir()] == ["b.txt"]


def test_dbg_goes_to_standard_error(capsys):
    p = einlang.compile("let x: [f32; i]; let y[i] = dbg(x[i] * 2.0); print(y);")
    p.run(x=np.array([1, 2], F32))
    out, err = capsys.readouterr()
    assert out == "[i: 2] [2.0, 4.0]\n" and "4" in err


def test_failures_of_a_run():
    p = einlang.compile('let x: f32; assert(x > 0.0, "not {x}"); print(x);')
    with pytest.raises(einlang.CallError, match="(?s)not -1.0.*-->"):
        p.run(x=-1.0)
    with pytest.raises(einlang.InputError, match="missing"):
        p.run()


def test_an_exception_while_printing(monkeypatch):
    class Broken:
        def write(self, text):
            raise OSError("no room")

    p = einlang.compile("let x: f32; print(x);")
    monkeypatch.setattr("sys.stdout", Broken())
    with pytest.raises(OSError, match="no room"):
        p.run(x=1.0)
