"""Section 3 of the page: compile, call, inputs and outputs, every derivative, texts."""

import doctest
import pathlib

import numpy as np
import pytest

import einlang

F32 = np.float32


def close(a, b, tolerance=2e-5):
    np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance)


def test_examples_in_docstrings():
    assert doctest.testmod(einlang).attempted >= 5 and doctest.testmod(einlang).failed == 0


def test_the_example(layer, data):
    r = layer(**data)
    z = data["x"] @ data["W"].T
    assert r.z.dims == ("batch", "out")
    close(r["z"], z)
    close(r.loss, np.mean(z**2))
    assert f"{r.loss:.4f}" == f"{np.mean(z**2):.4f}"
    g = layer.grad("loss", wrt=["W"])
    close(g(**data).loss, np.mean(z**2))
    close(g(**data).grads.W, 2 * z.T @ data["x"] / z.size)
    assert g(**data).grads.W.dims == ("out", "in")
    assert "let d_loss_d_W[" in g.source


def test_another_shape_is_the_same_code(layer, rng):
    for batch, n, out in [(1, 1, 1), (5, 2, 7), (0, 3, 2), (3, 0, 2)]:
        x, W = rng.normal(size=(batch, n)).astype(F32), rng.normal(size=(out, n)).astype(F32)
        close(layer(x=x, W=W).z, x @ W.T)


def test_values(layer):
    assert list(layer.inputs) == ["x", "W"]
    x = layer.inputs["x"]
    assert (x.name, x.dtype, x.dims, x.shape) == ("x", np.dtype("float32"), ("batch", "in"), ("batch", "in"))
    assert list(layer.outputs) == ["z", "loss"]
    assert layer.outputs["loss"].shape == ()
    p = einlang.compile("let x: [f64; n]; let y[i in 0..n + 1] = if i < n { x[i] } else { 0.0 }; "
                        "let c: [i32; 3]; let d[k] = c[k] * 2;")
    assert p.outputs["y"].shape == ("n + 1",) and p.outputs["d"].shape == (3,)
    assert p.extents({"x": (4,), "c": (3,)}) == {"y": (5,), "d": (3,)}
    with pytest.raises(TypeError):
        layer.inputs["y"] = 1


def test_extents_of_an_extent():
    p = einlang.compile("let n: i64; let y[i in 0..n] = i as f32;")
    assert p.extents({"n": ()}, {"n": 5}) == {"y": (5,)}
    with pytest.raises(einlang.InputError, match="`n` is an extent, so its value is needed"):
        p.extents({"n": ()})
    close(p(n=3).y, [0, 1, 2])


def test_outputs_are_chosen(data):
    p = einlang.compile("let x: [f32; i]; let a[i] = x[i] + 1.0; let b[i] = a[i] * 2.0;", outputs=["b"])
    assert list(p.outputs) == ["b"] and list(p(x=np.ones(2, F32))) == ["b"]
    with pytest.raises(einlang.CompileError, match="defines no value `c`"):
        einlang.compile("let x: [f32; i]; let a[i] = x[i];", outputs=["c"])


def test_files_and_text(tmp_path):
    (tmp_path / "half.ein").write_text("pub fn half(x: f32) -> f32 { x / 2.0 }\n")
    path = tmp_path / "main.ein"
    path.write_text("use half::half;\nlet x: [f32; i];\nlet y[i] = half(x[i]);\n")
    p = einlang.compile(pathlib.Path(path))
    close(p(x=np.ones(3, F32)).y, [0.5] * 3)
    assert p.name == str(path)
    with pytest.raises(TypeError, match="pass pathlib.Path\\('main.ein'\\)"):
        einlang.compile("main.ein")
    with pytest.raises(TypeError, match="not int"):
        einlang.compile(3)
    with pytest.raises(FileNotFoundError):
        einlang.compile(tmp_path / "none.ein")


@pytest.mark.parametrize("options, message", [
    ({"precision": "f8"}, "precision is"), ({"opt_level": 4}, "opt_level is"), ({"threads": 0}, "threads is")])
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        einlang.compile("let x: f32; let y = x;", **options)


def test_options_compute_the_same(data):
    z = data["x"] @ data["W"].T
    source = "let x: [f32; b, i]; let W: [f32; o, i]; let z[b, o] = sum[i](x[b, i] * W[o, i]);"
    for level in range(4):
        close(einlang.compile(source, opt_level=level, threads=1)(**data).z, z)
    mixed = einlang.compile(source, precision="bf16-mixed")(**data).z
    close(mixed, z, 0.1)
    assert not np.array_equal(mixed.numpy(), z)


RECURRENCE = """
let x: [f64; n];
let w: f64;
let h[0, i in 0..n] = x[i];
let h[t in 1..400, i in 0..n] = sin(w * h[t - 1, i]) + 0.5 * h[t - 1, i];
let s = sum[i in 0..n](h[399, i]);
"""


def test_grad_memory():
    """Steps that are computed again give the same derivatives, for every shape."""
    whole = einlang.compile(RECURRENCE).grad("s", ["w", "x"])
    small = einlang.compile(RECURRENCE, grad_memory="64kB").grad("s", ["w", "x"])
    for n in (300, 7, 300):
        x = np.linspace(0.1, 1, n)
        a, b = whole(x=x, w=0.7), small(x=x, w=0.7)
        close(b.grads.x, a.grads.x, 1e-9)
        close(b.grads.w, a.grads.w, 1e-9)
        step = 1e-6
        up, down = (einlang.compile(RECURRENCE)(x=x, w=0.7 + d).s for d in (step, -step))
        close(b.grads.w, (float(up) - float(down)) / (2 * step), 1e-4)
    for wrong in ("much", -1, "0"):
        with pytest.raises(ValueError, match="grad_memory is a number of bytes"):
            einlang.compile(RECURRENCE, grad_memory=wrong)


def test_sizes():
    from einlang.program import _bytes

    assert [_bytes(s) for s in (None, 4096, "4096", "64kB", "64 KiB", "2GB", "1.5MiB")] == [
        0, 4096, 4096, 64_000, 65_536, 2_000_000_000, 1_572_864]


# ---- derivatives, against closed forms of NumPy


def test_vjp(layer, data, rng):
    seed = rng.normal(size=(4, 2)).astype(F32)
    r = layer.vjp("z", ["x", "W"])(**data, z_bar=seed)
    close(r.x_bar, seed @ data["W"])
    close(r.W_bar, seed.T @ data["x"])
    close(r.z, data["x"] @ data["W"].T)


def test_vjp_of_several_values(layer, data, rng):
    seed = rng.normal(size=(4, 2)).astype(F32)
    z = data["x"] @ data["W"].T
    r = layer.vjp(["z", "loss"], "W")(**data, z_bar=seed, loss_bar=3.0)
    close(r.W_bar, seed.T @ data["x"] + 3 * 2 * z.T @ data["x"] / z.size)


def test_jvp(layer, data, rng):
    dx, dW = rng.normal(size=(4, 3)).astype(F32), rng.normal(size=(2, 3)).astype(F32)
    r = layer.jvp(["z", "loss"], ["x", "W"])(**data, x_dot=dx, W_dot=dW)
    z = data["x"] @ data["W"].T
    dz = dx @ data["W"].T + data["x"] @ dW.T
    close(r.z_dot, dz)
    close(r.loss_dot, np.mean(2 * z * dz))


def test_a_tangent_that_is_not_finite_leaves_the_value_alone():
    p = einlang.compile("let x: [f32; i]; let y[i] = x[i] * x[i]; let s = sum[i](y[i]);")
    r = p.jvp("s", "x")(x=np.array([1, 2], F32), x_dot=np.array([np.inf, 0], F32))
    assert float(r.s) == 5.0 and np.isinf(float(r.s_dot))
    r = p.jvp("s", "y")(x=np.array([1, 2], F32), y_dot=np.array([np.nan, 0], F32))
    assert float(r.s) == 5.0 and np.isnan(float(r.s_dot))


def test_jvp_along_a_value_that_is_computed():
    p = einlang.compile("let x: [f64; i]; let y[i] = sin(x[i]); let s = sum[i](y[i] * y[i] * y[i]);")
    x, dy = np.linspace(0, 1, 5), np.linspace(1, 2, 5)
    r = p.jvp("s", "y")(x=x, y_dot=dy)
    close(r.s_dot, np.sum(3 * np.sin(x) ** 2 * dy), 1e-12)
    close(r.s, np.sum(np.sin(x) ** 3), 1e-12)


def test_hvp_and_hessian():
    p = einlang.compile("let a: [f64; i]; let b: [f64; i]; let s = sum[i](a[i] ** 3.0 * b[i]) * sum[i](b[i]);")
    a, b = np.array([1.0, 2.0, -1.0]), np.array([0.5, 1.5, 2.0])
    da, db = np.array([1.0, 0.0, 2.0]), np.array([-1.0, 3.0, 0.5])

    def gradient(a, b):
        return 3 * a**2 * b * b.sum(), a**3 * b.sum() + (a**3 * b).sum()

    step = 1e-6
    up, down = gradient(a + step * da, b + step * db), gradient(a - step * da, b - step * db)
    r = p.hvp("s", ["a", "b"])(a=a, b=b, a_dot=da, b_dot=db)
    close(r.a_hv, (up[0] - down[0]) / (2 * step), 1e-6)
    close(r.b_hv, (up[1] - down[1]) / (2 * step), 1e-6)
    h = p.hessian("s", ["a", "b"])(a=a, b=b).hessian
    close(h.a.a, np.diag(6 * a * b * b.sum()), 1e-9)
    close(h.a.b, np.diag(3 * a**2 * b.sum()) + (3 * a**2 * b)[:, None], 1e-9)
    close(np.einsum("ij,j->i", h.b.a, da) + np.einsum("ij,j->i", h.b.b, db), r.b_hv, 1e-9)


def test_jacobian(layer, data):
    r = layer.jacobian("z", ["x", "W"])(**data)
    full = np.einsum("bi,po->bpoi", data["x"], np.eye(2))
    close(r.jacobian.W, full)
    assert r.jacobian.W.shape == (4, 2, 2, 3)
    close(r.jacobian.x, np.einsum("bc,oi->boci", np.eye(4), data["W"]))
    several = layer.jacobian(["z", "loss"], "W")(**data)
    close(several.jacobian.z.W, full)
    assert several.jacobian.loss.W.dims == ("out", "in")


def test_derivatives_of_derivatives(layer, data, rng):
    seed = rng.normal(size=(4, 2)).astype(F32)
    again = rng.normal(size=(2, 3)).astype(F32)
    r = layer.vjp("z", ["W"]).vjp("W_bar", ["x", "z_bar"])(**data, z_bar=seed, W_bar_bar=again)
    close(r.x_bar, seed @ again)  # of <again, seedᵀ x>
    close(r.z_bar_bar, data["x"] @ again.T)
    p = einlang.compile("let x: f64; let y = x ** 5.0;")
    twice = p.grad("y", "x").grad("grads.x", "x")(x=2.0)
    assert float(twice.grads.x) == 5 * 16 and float(twice.grads_1.x) == 20 * 8
    twice = p.jvp("y", "x").jvp("y_dot", "x")(x=2.0, x_dot=1.0, x_dot_1=1.0)
    assert float(twice.y_dot_dot) == 20 * 8


def test_all_float_inputs_by_default(layer, data):
    assert list(layer.grad("loss")(**data).grads) == ["x", "W"]


@pytest.mark.parametrize("ask, message", [
    (lambda p: p.grad("z", "W"), "`z` is an array over \\[batch, out\\], and a gradient is taken of a single number"),
    (lambda p: p.hvp("z", "W"), "a second derivative is taken of a single number"),
    (lambda p: p.grad("los", "W"), "did you mean `loss`"),
    (lambda p: p.vjp("z", "V"), "the program defines no value `V`"),
    (lambda p: p.grad("loss", []), None)])
def test_wrong_derivatives(layer, ask, message):
    with pytest.raises((einlang.CompileError, TypeError), match=message):
        ask(layer)


def test_derivatives_have_one_type():
    p = einlang.compile("let x: [f32; i]; let k: [f64; i]; let y = sum[i](x[i] as f64 * k[i]);")
    with pytest.raises(einlang.CompileError, match="`y` is f64 and `x` is f32: the values of a derivative must have the same type"):
        p.grad("y", "x")


def test_integers_have_no_derivative():
    p = einlang.compile("let k: [i32; i]; let y = sum[i](k[i] as f32);")
    with pytest.raises(einlang.CompileError, match="only floats have derivatives"):
        p.grad("y", "k")


# ---- texts


def test_source_compiles_to_the_same(layer, data, rng):
    seed = rng.normal(size=(4, 2)).astype(F32)
    v = layer.vjp("z", ["x", "W"])
    again = einlang.compile(str(v.source))
    close(again(**data, z_bar=seed).W_bar, v(**data, z_bar=seed).W_bar, 1e-6)
    assert str(layer.source) == "\n".join(layer.source.splitlines()) + "\n"


def test_texts(layer):
    assert "W is not" not in str(layer.facts()) and "z: f32" in layer.facts()
    assert {f["name"] for f in layer.facts().json["families"]} >= {"x", "W", "z", "loss"}
    assert "x[batch, in] is repeated along out" in layer.audit()
    assert layer.audit().json[0]["along"] == ["out"]
    explained = layer.explain("loss", "W")
    assert "sum               batch" in explained
    assert explained.json[0]["of"] == "loss"
    assert explained._repr_html_().startswith("<iframe") and "```" in explained._repr_markdown_()
    assert '<span style="color' in layer.source._repr_html_()
    with pytest.raises(einlang.CompileError, match="did you mean `loss`"):
        layer.explain("los", "W")
    with pytest.raises(einlang.CompileError, match="contains no derivative"):
        layer.explain()


def test_warnings_are_diagnostics():
    with pytest.warns(einlang.CompileWarning, match="W0601") as seen:
        p = einlang.compile("let x: [f32; i]; let y[j in 0..3] = 1.0; let d = @y / @x;")
    assert seen[0].filename == __file__
    assert "W0601" in p.diagnostics
    assert p.diagnostics.json[0]["code"] == "W0601"
    assert p.warnings[0].severity == "warning"


def test_backend_and_copies(layer, data):
    assert layer.backend == "native"
    before = layer.copies
    layer(**data)
    assert layer.copies == before
    layer(x=np.asfortranarray(data["x"]), W=data["W"])
    assert layer.copies == before + 1


def test_positions_are_refused(layer, data):
    with pytest.raises(TypeError, match="inputs are given by name"):
        layer(data["x"], data["W"])


def test_a_gradient_has_the_names_of_its_input():
    p = einlang.compile("let x: [f64; n, n]; let y = sum[i, j](x[i, j] ** 2.0);")
    gradient = p.grad("y", wrt="x")(x=np.ones((2, 2))).grads.x
    assert gradient.dims == p.inputs["x"].dims == ("n", "n")
    np.testing.assert_array_equal(gradient.numpy(), np.full((2, 2), 2.0))


def test_a_gradient_explains_itself():
    p = einlang.compile("let x: [f32; i]; let y = sum[i](x[i] ** 2.0);")
    assert str(p.grad("y", "x").explain()) == str(p.explain("y", "x"))
    assert p.grad("y", "x").explain().json == p.explain("y", "x").json
    with pytest.raises(einlang.CompileError, match="contains no derivative"):
        p.explain()


def test_audit_is_a_page():
    p = einlang.compile("let x: [f32; b, f]; let bias: [f32; f]; let y[b, f] = x[b, f] + bias[f];")
    assert "is repeated along" in p.audit()._repr_html_()
