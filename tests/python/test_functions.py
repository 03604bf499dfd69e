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


def test_numbers_take_the_float_type_of_the_other_arguments():
    p = einlang.compile("type Line = { a: f64, x: [f64; n] };\npub fn scaled(x, by) { by * x }\n"
                        "pub fn total(line: Line) -> f64 { line.a * sum[n](line.x[n]) }")
    assert p.scaled(np.ones(2), 1.5).dtype == np.float64 and p.scaled(np.ones(2, F32), by=1.5).dtype == F32
    assert p.scaled([1.0, 2.0], np.float64(0.1)).dtype == np.float64
    assert p.scaled(2.0, 1.5).dtype == F32
    assert float(p.total({"a": 0.1, "x": np.ones(3)})) == 0.1 * 3


def test_functions_are_listed(p):
    assert repr(p.fn).splitlines()[0] == repr(p.linear)[len("<einlang function "):-1]
    assert repr(p.fn).count("\n") == len(dir(p.fn)) - 1
    assert repr(einlang.compile("let x: f32; let y = x;").fn) == "no public functions"


# ---- gradients of functions


ROSENBROCK = "fn rosen(x: [f64; n]) -> f64 { sum[i](100.0 * (x[i + 1] - x[i] ** 2.0) ** 2.0 + (1.0 - x[i]) ** 2.0) }"


def test_a_function_and_its_gradient(rng):
    f = einlang.compile("pub " + ROSENBROCK).rosen
    x = rng.normal(size=5)
    made = f.grad("x")(x)
    by_hand = np.zeros(5)
    by_hand[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    by_hand[1:] += 200 * (x[1:] - x[:-1] ** 2)
    np.testing.assert_allclose(made.grads.x.numpy(), by_hand, rtol=1e-12)
    assert float(made.value) == float(f(x)) and list(made.grads) == ["x"]
    value, grads = f.grad()(x=x)
    np.testing.assert_array_equal(grads["x"].numpy(), made.grads["x"].numpy())
    assert f.grad("x").program(x) is f.grad("x").program(x + 1)  # compiled once


def test_gradients_by_some_parameters(rng):
    p = einlang.compile("type Net = { w: [f64; i], b: f64 };\n"
                        "pub fn loss(net: Net, x: [f64; n, i], k: i32, rate = 2.0) -> f64 {\n"
                        "    rate * mean[n]((sum[i](net.w[i] * x[n, i]) + net.b + k as f64) ** 2.0)\n}")
    net, x = {"w": rng.normal(size=3), "b": np.array(0.5)}, rng.normal(size=(4, 3))
    made = p.loss.grad()(net, x, 1)
    error = x @ net["w"] + 1.5
    np.testing.assert_allclose(made.grads.net.w.numpy(), 4 * (error @ x) / 4, rtol=1e-12)
    np.testing.assert_allclose(float(made.grads.net.b), 4 * error.mean(), rtol=1e-12)
    np.testing.assert_allclose(made.grads.x.numpy(), np.outer(error, net["w"]), rtol=1e-12)
    assert set(made.grads) == {"net", "x"}  # no float: k; not given: rate
    assert set(p.loss.grad(["net", "rate"])(net, x, 1, rate=3.0).grads) == {"net", "rate"}


def test_wrong_gradients_of_functions(p):
    with pytest.raises(TypeError, match="has no parameter `w`; did you mean `W`"):
        p.linear.grad("w")
    with pytest.raises(TypeError, match="gives an array over .*, but a gradient is taken of a single number"):
        p.linear.grad("W")(np.ones((2, 3), F32), np.ones((2, 3), F32))
    with pytest.raises(TypeError, match="gives several values"):
        p.both.grad()(np.ones(3, F32))
    q = einlang.compile("pub " + ROSENBROCK)
    with pytest.raises(AttributeError, match="no gradient by `y`: there are those by `x`"):
        q.rosen.grad("x")(np.ones(3)).grads.y
    for wrt in (None, "x"):
        with pytest.raises(TypeError, match=r"`rosen` is a function: differentiate it with p\.rosen\.grad\(wrt\)"):
            q.grad("rosen", wrt)


def test_names_that_are_meant():
    """What a newcomer asks a program for."""
    p = einlang.compile(ROSENBROCK + "\nlet x: [f64; n];\nlet k: i32;\nlet f = rosen(x) * k as f64;")
    for name, message in [("rosen", "The function `rosen` is not public: write `pub fn rosen`"),
                          ("f", r"`f` is a value, which a call gives: p\(x=…, k=…\)\.f"),
                          ("x", r"`x` is an input, which a call is given: p\(x=…\)")]:
        with pytest.raises(AttributeError, match=message):
            getattr(p, name)
    with pytest.raises(AttributeError, match=r"einlang\.grad does not exist: derivatives belong to programs"):
        einlang.grad
    with pytest.raises(einlang.CompileError, match="defines no value `nothing`") as found:
        p.grad("nothing", "x")
    assert found.value.__notes__ == ["The values of the program are `x`, `k`, `f`."]
    assert "The values of" in "\n".join(found.value._render_traceback_())
    with pytest.raises(TypeError, match="no inputs that hold floats"):
        einlang.compile("let k: i32; let y = 2.0 * k as f32;").grad("y")
