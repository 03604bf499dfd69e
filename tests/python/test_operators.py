"""What PyTorch's and JAX's functions share: extents as formulas, and derivatives of derivatives."""

import random

import numpy as np
import pytest

import einlang
from einlang.extents import Formula, Shapes
from einlang.operators import choose


def test_formulas_are_what_a_call_computes():
    """The package evaluates the text of an extent; a call computes it natively."""
    formulas = ["n / 2 + 1", "(n - 3) / 2 + 1", "max(n - 2, 1)", "min(n, m) * 2", "n * m % 5 + 1", "if n > m { n } else { m + 1 }",
                "if n > 2 && m < 4 { 1 } else { n }", "if n == m || n < 2 { 3 } else { m }", "(m - n) / 2 + 9", "(m - n) % 3 + 3",
                "2 * (n + 3 * m) - 1"]
    source = "let x: [f32; n]; let y: [f32; m];" + "".join(f"let z{k}[i in 0..{f}] = 1.0;" for k, f in enumerate(formulas))
    p = einlang.compile(source)
    shapes = Shapes({v.name: v.shape for v in p.inputs.values()}, {v.name: v.shape for v in p.outputs.values()})
    for n in range(1, 8):
        for m in range(1, 6):
            made = p(x=np.zeros(n, np.float32), y=np.zeros(m, np.float32))
            names = shapes.names({"x": (n,), "y": (m,)}, {})
            assert names == {"n": n, "m": m}
            for name, value in made.items():
                assert tuple(f(names) for f in shapes.outputs[name]) == value.shape, (name, n, m)


def test_division_goes_towards_zero():
    rng = random.Random(1)
    for _ in range(200):
        a, b = rng.randint(-20, 20), rng.choice([-3, -2, -1, 1, 2, 3])
        quotient = int(a / b)
        assert Formula(f"({a}) / ({b})")({}) == quotient and Formula(f"({a}) % ({b})")({}) == a - quotient * b


def test_what_is_no_formula():
    for text in ["f(n)", "n +", "n ! m", "n ** 2", "(n", "max(n)", ""]:
        with pytest.raises(ValueError, match="not a formula that this version of the package can evaluate"):
            Formula(text)
    with pytest.raises(ValueError, match="nothing among the shapes of the inputs says what `m` is"):
        Shapes({"x": ("n",)}, {"y": ("m",)})


def test_extents_without_a_name():
    p = einlang.compile("let x: [f32; 2 * n]; let y[i in 0..n] = x[2 * i]; let c: {k: i64}; let z[i in 0..c.k] = 1.0;")
    callee = choose(p, [])
    assert [callee.inputs[k].name for k in callee.numbers] == ["c.k"]
    names = callee.shapes.names({"x": (8,)}, {"c.k": 3})
    assert [f(names) for f in callee.shapes.outputs["y"]] == [4] and [f(names) for f in callee.shapes.outputs["z"]] == [3]


def test_products_of_products():
    """y = W x is linear in W: its second derivative by W alone is zero, which the compiler notes as a warning at a
    derivative that no text asks for."""
    p = einlang.compile("let x: [f64; i]; let W: [f64; o, i]; let y[o] = sum[i](W[o, i] * x[i]);")
    callee = choose(p, None)
    first = callee.product((0,), (0, 1))
    assert [v.name for v in first.inputs] == ["x", "W", "y_bar"] and [v.name for v in first.outputs] == ["x_bar", "W_bar"]
    second = first.product((1,), first.wrt)
    assert [v.name for v in second.inputs] == ["x", "W", "y_bar", "W_bar_bar"]
    rng = np.random.default_rng(2)
    given = {v.name: rng.normal(size=(3,) if v.name == "x" else (2,) if v.name == "y_bar" else (2, 3)) for v in second.inputs}
    made = list(second.program(**given).values())
    np.testing.assert_allclose(made[0], given["W_bar_bar"].T @ given["y_bar"])
    np.testing.assert_array_equal(made[1], np.zeros((2, 3)))
    np.testing.assert_allclose(made[2], given["W_bar_bar"] @ given["x"])
    assert any("does not depend on" in w.message for w in second.program.warnings)
    third = second.product((1,), second.wrt)
    given["W_bar_1_bar"] = np.ones((2, 3))
    for name, value in third.program(**{v.name: given.get(v.name, np.ones((2, 3))) for v in third.inputs}).items():
        np.testing.assert_array_equal(value, 0 * np.asarray(value), name)


def test_digests():
    text = "let x: [f32; i]; let y[i] = x[i];"
    p = einlang.compile(text)
    digest = choose(p, None).digest
    assert digest == choose(einlang.compile(text), None).digest
    assert digest != choose(einlang.compile(text.replace("= x", "= 2.0 * x")), None).digest
    assert digest != choose(p, []).digest
    assert digest != choose(einlang.compile(text, opt_level=1), None).digest
