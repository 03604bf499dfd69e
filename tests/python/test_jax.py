"""Section 9 of the page, JAX: every transformation beside the same in jax.numpy."""

import pathlib
import pickle
import re
import subprocess

import numpy as np
import pytest

import conftest
import einlang

jax = conftest.optional("jax")

import jax.numpy as jnp  # noqa: E402

import einlang.jax  # noqa: E402

MLP = """
let x: [f32; batch, in];
let W: [f32; hidden, in];
let V: [f32; out, hidden];
let h[batch, hidden] = tanh(sum[in](x[batch, in] * W[hidden, in]));
let y[batch, out] = sum[hidden](h[batch, hidden] * V[out, hidden]);
let loss = mean[batch, out](y[batch, out] ** 2.0);
"""


def mlp(x, W, V):
    y = jnp.tanh(x @ W.T) @ V.T
    return y, (y**2).mean()


def drawn(*shapes):
    keys = jax.random.split(jax.random.PRNGKey(5), len(shapes))
    return [jax.random.normal(key, shape, jnp.float32) for key, shape in zip(keys, shapes)]


ARGS = drawn((4, 3), (5, 3), (2, 5))
BATCH, = drawn((6, 4, 3))


def same(a, b, tolerance=3e-5):
    ours, theirs = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(ours) == len(theirs) > 0
    for u, v in zip(ours, theirs):
        assert u.dtype == v.dtype
        np.testing.assert_allclose(u, v, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def f():
    return einlang.jax.function(einlang.compile(MLP, outputs=["y", "loss"]))


def loss(g):
    return lambda *args: g(*args)[1]


def mixed(g):
    """Both outputs of one call, and one output of another."""
    def of(*args):
        y, value = g(*args)
        return jnp.sin(y).sum() + value * g(*args)[1]
    return of


def test_values(f):
    made = f(*ARGS)
    same(made, mlp(*ARGS))
    assert made._fields == ("y", "loss") and isinstance(made.y, jax.Array)
    same(f(V=ARGS[2], x=ARGS[0], W=ARGS[1]), mlp(*ARGS))
    same(f(*(np.asarray(a) for a in ARGS)), mlp(*ARGS))


def transformations(g):
    """Everything section 13.4 names, as functions of a function."""
    yield "jit", lambda f: jax.jit(g(f))
    yield "grad", lambda f: jax.grad(g(f), (0, 1, 2))
    yield "grad by one", lambda f: jax.grad(g(f), 1)
    yield "jit(grad)", lambda f: jax.jit(jax.grad(g(f), 2))
    yield "value_and_grad", lambda f: jax.value_and_grad(g(f), (1, 2))
    yield "jacrev(grad)", lambda f: jax.jacrev(jax.grad(g(f), 1), 1)
    yield "jacrev(grad), mixed", lambda f: jax.jit(jax.jacrev(jax.grad(g(f), 1), (0, 2)))
    yield "checkpoint", lambda f: jax.grad(jax.checkpoint(g(f)), 1)


KINDS = {"loss": loss, "mixed": mixed}
NAMES = [(kind, name) for kind in KINDS for name, _ in transformations(KINDS[kind])]


@pytest.mark.parametrize("kind, name", NAMES)
def test_transformations(f, kind, name):
    transform = dict(transformations(KINDS[kind]))[name]
    same(transform(f)(*ARGS), transform(mlp)(*ARGS))


def test_gradients_by_other_inputs_do_not_mix(f):
    """One function under jit, differentiated by different inputs in turn."""
    ours, theirs = jax.jit(loss(f)), jax.jit(loss(mlp))
    for by in [(0, 1, 2), (0,), (1, 2), (2,), (0, 1, 2), (1,)]:
        same(jax.grad(ours, by)(*ARGS), jax.grad(theirs, by)(*ARGS))
    for ours, theirs in [(f, mlp)]:
        for k in (0, 1, 0):
            same(jax.grad(lambda *a: ours(*a)[k].sum(), (0, 1))(*ARGS), jax.grad(lambda *a: theirs(*a)[k].sum(), (0, 1))(*ARGS))


def test_a_third_derivative(f):
    def third(g):
        return jax.jacrev(jax.jacrev(jax.grad(loss(g), 2), 1), 2)

    same(third(f)(*ARGS), third(mlp)(*ARGS))


@pytest.mark.parametrize("in_axes", [(0, None, None), (0, 0, None), (2, None, 1)])
def test_vmap(f, in_axes):
    x, W, V = ARGS
    stacks = [jnp.stack([a * (k + 1) for k in range(6)], axis=axis) if axis is not None else a
              for a, axis in zip((x, W, V), in_axes)]
    for transform in (lambda g: jax.vmap(g, in_axes), lambda g: jax.jit(jax.vmap(g, in_axes)),
                      lambda g: jax.vmap(jax.grad(loss(g), (0, 1, 2)), in_axes),
                      lambda g: jax.grad(lambda *a: jax.vmap(loss(g), in_axes)(*a).sum(), (0, 1, 2)),
                      lambda g: jax.vmap(jax.jacrev(jax.grad(loss(g), 2), 2), in_axes)):
        same(transform(f)(*stacks), transform(mlp)(*stacks), 2e-4)


def test_nested_and_empty_batches(f):
    x, W, V = ARGS
    Ws = jnp.stack([W, -W, 2 * W])

    def nested(g):
        return jax.vmap(jax.vmap(lambda x, W: g(x, W, V), (0, None)), (None, 0))(BATCH, Ws)

    same(nested(f), nested(mlp))
    assert jax.vmap(lambda x: f(x, W, V).loss)(BATCH[:0]).shape == (0,)
    assert f(x[:0], W, V).y.shape == (0, 2)


def test_scan(f):
    def run(g):
        def step(carry, x):
            W, V = carry
            value, (dW, dV) = jax.value_and_grad(lambda W, V: g(x, W, V)[1], (0, 1))(W, V)
            return (W - 0.1 * dW, V - 0.1 * dV), value

        return lambda W, V: jax.lax.scan(step, (W, V), BATCH)

    same(run(f)(*ARGS[1:]), run(mlp)(*ARGS[1:]))
    same(jax.jit(run(f))(*ARGS[1:]), run(mlp)(*ARGS[1:]))

    def total(g):
        def step(x, _):
            y, _ = g(x, *ARGS[1:])
            return x + 0.1 * jnp.tanh(y @ jnp.ones((2, 3))), y.sum()

        return lambda x: jax.lax.scan(step, x, None, length=5)[1].sum()

    same(jax.grad(total(f))(ARGS[0]), jax.grad(total(mlp))(ARGS[0]))


def test_training(f):
    def train(g):
        x, W, V = ARGS

        @jax.jit
        def step(W, V):
            value, (dW, dV) = jax.value_and_grad(lambda W, V: g(x, W, V)[1], (0, 1))(W, V)
            return W - 0.2 * dW, V - 0.2 * dV, value

        values = []
        for _ in range(20):
            W, V, value = step(W, V)
            values.append(float(value))
        return values

    ours, theirs = train(f), train(mlp)
    assert ours[-1] < 0.5 * ours[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_other_shapes_and_programs(f):
    for n in (1, 2, 7):
        args = drawn((n, 2), (3, 2), (n, 3))
        same(jax.jit(f)(*args), mlp(*args))


def test_integer_outputs_and_inputs():
    f = einlang.jax.function(einlang.compile("let x: [f32; i]; let k: [i32; j]; let y[j] = x[k[j]]; "
                                             "let n[j] = k[j] + 1;"))
    x, k = jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0, 2], jnp.int32)
    made = f(x, k)
    assert made.y.tolist() == [3, 1, 3] and made.n.tolist() == [3, 1, 3] and made.n.dtype == jnp.int32
    assert jax.grad(lambda x: f(x, k).y.sum())(x).tolist() == [1, 0, 2]
    assert jax.jit(jax.grad(lambda x, k: (f(x, k).y ** 2).sum()))(x, k).tolist() == [2, 0, 12]
    only = einlang.compile("let x: [f32; i]; let n[i] = x[i] as i32;")
    assert einlang.jax.function(only)(x).tolist() == [1, 2, 3]
    with pytest.raises(einlang.InputError, match="wrt names `x`, but no output is a float"):
        einlang.jax.function(only, wrt="x")
    with pytest.raises(einlang.InputError, match="wrt names `k`, which holds i32: only floats have gradients"):
        einlang.jax.function(f.program, wrt=["k"])


@pytest.mark.parametrize("ein, name", [("f16", "float16"), ("bf16", "bfloat16"), ("f32", "float32"), ("i8", "int8"),
                                       ("i16", "int16"), ("i32", "int32"), ("u8", "uint8")])
def test_types(ein, name):
    f = einlang.jax.function(einlang.compile(f"let x: [{ein}; i]; let y[i] = x[i] + x[i];"))
    made = f(jnp.array([1, 2, 3], name))
    assert made.dtype == name and made.tolist() == [2, 4, 6]


def test_bools():
    f = einlang.jax.function(einlang.compile("let m: [bool; i]; let n[i] = !m[i];"))
    assert f(jnp.array([True, False])).tolist() == [False, True]


def test_an_extent_is_static():
    f = einlang.jax.function(einlang.compile("let a: f32; let n: i64; let y[i in 0..n] = a * (i as f32);"))
    assert f(2.0, 4).tolist() == [0, 2, 4, 6] and f(a=jnp.float32(3), n=2).tolist() == [0, 3]
    assert jax.grad(lambda a: f(a, 4).sum())(1.0) == 6
    assert jax.jit(f, static_argnums=1)(2.0, 3).tolist() == [0, 2, 4]
    assert jax.vmap(lambda a: f(a, 3))(jnp.arange(2.0)).tolist() == [[0, 0, 0], [0, 1, 2]]
    with pytest.raises(einlang.InputError, match="`n` is an extent of an output, so its value must be known while JAX traces"):
        jax.jit(f)(2.0, 3)


def test_records():
    p = einlang.compile("let net: {w: [f32; o, i], b: [f32; o]}; let x: [f32; i]; "
                        "let y[o] = sum[i](net.w[o, i] * x[i]) + net.b[o];")
    f = einlang.jax.function(p)
    net = {"w": ARGS[1], "b": jnp.ones(5)}
    x = ARGS[0][0]
    same(f(net=net, x=x), net["w"] @ x + 1)
    same(jax.grad(lambda net: (f(net=net, x=x) ** 2).sum())(net), jax.grad(lambda n: ((n["w"] @ x + n["b"]) ** 2).sum())(net))


def test_bad_input(f):
    x, W, V = ARGS

    def refused(match, *args, **given):
        with pytest.raises(einlang.InputError, match=match):
            f(*args, **given)
        with pytest.raises(einlang.InputError, match=match):
            jax.jit(lambda: f(*args, **given))()

    refused(r"input `x` holds f32, but the array given holds float16: pass `x.astype\(jnp.float32\)`", x.astype("float16"), W, V)
    refused("input `x` holds f32, but the array given holds float64", np.zeros((4, 3)), W, V)
    refused(r"input `x` has 2 coordinates, \('batch', 'in'\), but the array given has the shape \(1, 4, 3\)", x[None], W, V)
    refused("input `W` has extent 2 along `in`, but 3 is needed there", x, W[:, :2], V)
    refused(r"input `V` \(\[f32; out, hidden\]\) is missing", x, W)
    refused("input `x` is given twice", x, W, V, x=x)
    refused("input `x` is None: a function of einlang.jax takes arrays", None, W, V)


def test_a_gradient_that_was_not_foreseen_is_an_error(f):
    narrow = einlang.jax.function(f.program, wrt=["W"])
    same(jax.grad(loss(narrow), 1)(*ARGS), jax.grad(loss(mlp), 1)(*ARGS))
    for transform in (lambda g: g, jax.jit):
        with pytest.raises(einlang.InputError, match="the gradient by input `x` is needed, but this function was made to be "
                                                     "differentiated by `W`"):
            jax.grad(transform(loss(narrow)))(*ARGS)


def test_forward_mode_ends_with_the_message_of_jax(f):
    with pytest.raises(TypeError, match="can't apply forward-mode"):
        jax.jacfwd(loss(f))(*ARGS)


def test_64_bits():
    p = einlang.compile("let x: [f64; i]; let y[i] = x[i] * x[i]; let s = sum[i](y[i]);")
    f = einlang.jax.function(p)
    assert not jax.config.jax_enable_x64
    with pytest.raises(einlang.InputError, match=r'output `y` holds f64, and JAX has types of 64 bits only after '
                                                 r'jax.config.update\("jax_enable_x64", True\)'):
        f(jnp.ones(3))
    g = einlang.jax.function(einlang.compile("let x: [f64; i]; let n = sum[i](x[i] as f32);"), wrt=[])
    with pytest.raises(einlang.InputError, match="input `x` holds f64, and JAX has types of 64 bits only after"):
        g(jnp.ones(3))
    with jax.enable_x64(True):
        x = jnp.array([1.0, 2.0, 3.0], jnp.float64)
        assert f(x).y.dtype == jnp.float64
        same(jax.grad(lambda x: f(x).s)(x), 2 * x)
        same(jax.jacrev(jax.grad(lambda x: f(x).s))(x), 2 * jnp.eye(3))
        with pytest.raises(einlang.InputError, match="input `x` holds f64, but the array given holds float32"):
            f(jnp.ones(3, jnp.float32))


def test_a_failure_in_the_program():
    f = einlang.jax.function(einlang.compile("let x: [f32; i]; assert(x[0] > 0.0); let y[i] = sqrt(x[i]);"))
    assert f(jnp.array([4.0])).tolist() == [2]
    with pytest.raises((ValueError, RuntimeError), match="E0804"):
        jax.block_until_ready(f(jnp.array([-4.0])))
    with pytest.raises((ValueError, RuntimeError), match="assertion failed"):
        jax.block_until_ready(jax.jit(jax.vmap(f))(jnp.array([[4.0], [-4.0]])))


def test_structures_are_those_of_jaxlib(tmp_path):
    root = pathlib.Path(conftest.__file__).parents[2]
    made = tmp_path / "layout"
    done = subprocess.run(["c++", "-std=c++20", "-Wno-invalid-offsetof", f"-I{root}/python/src", f"-I{jax.ffi.include_dir()}",
                           f"{root}/tests/python/xla_layout.cc", "-o", str(made)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([made], capture_output=True, text=True).stdout.startswith("0.")


def test_a_computation_without_its_program():
    target = jax.ffi.ffi_call("einlang_call", jax.ShapeDtypeStruct((2,), jnp.float32))
    with pytest.raises((ValueError, RuntimeError), match="calls an Einlang program that this process has not compiled"):
        jax.block_until_ready(target(jnp.ones(2), program=np.int64(1), numbers=np.array([], np.int64)))


def test_pickles(f):
    made = pickle.loads(pickle.dumps(einlang.jax.function(f.program, wrt=["W"])))
    same(jax.grad(loss(made), 1)(*ARGS), jax.grad(loss(mlp), 1)(*ARGS))


def test_nothing_is_said_at_exit():
    code = """
import einlang, jax
f = einlang.jax.function(einlang.compile("let x: [f32; i]; let s = sum[i](x[i] * x[i]);"))
print(jax.grad(f)(jax.numpy.ones(2)).tolist())
"""
    assert conftest.run_python(code) == "[2.0, 2.0]\n"


def test_threads(f):
    from concurrent.futures import ThreadPoolExecutor

    grad = jax.jit(jax.grad(loss(f), (0, 1, 2)))
    expected = jax.grad(loss(mlp), (0, 1, 2))(*ARGS)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: grad(*ARGS), range(200)):
            same(found, expected)


# ---- arrays of JAX as arguments of a program itself


@pytest.mark.parametrize("name", ["bool", "int8", "int16", "int32", "uint8", "float16", "bfloat16", "float32"])
def test_arrays_in_and_out_of_a_program(name):
    ein = {"bool": "bool", "uint8": "u8", "bfloat16": "bf16"}.get(name) or name.replace("int", "i").replace("float", "f")
    p = einlang.compile(f"let x: [{ein}; i, j]; let y[i, j] = x[i, j];")
    x = jnp.array([[0, 1, 1], [1, 0, 1]]).astype(name)
    r = p(x=x)
    back = jnp.from_dlpack(r.y)
    assert back.dtype == x.dtype and jnp.array_equal(back, x)
    assert back.unsafe_buffer_pointer() == r.y._address or r.y._address % 64  # JAX copies what is not aligned to its taste
    assert jnp.array_equal(jnp.from_dlpack(p(x=back).y), x)
    assert p.copies == 0


def test_arrays_that_have_no_values_are_refused():
    p = einlang.compile("let x: [f32; i]; let y[i] = x[i];")
    message = r"^input `x` is being traced by JAX .*: use einlang.jax.function, which JAX can trace$"

    def call(x):
        with pytest.raises(einlang.InputError, match=message):
            p(x=x)
        return x.sum()

    for transform in (jax.jit, jax.grad):
        transform(call)(jnp.ones(3))
    jax.vmap(call)(jnp.ones((2, 3)))
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(einlang.InputError, match="^input `x` is an array that JAX has deleted"):
        p(x=gone)
    with pytest.raises(einlang.InputError, match=r"^input `x` holds f32, but the array given holds bfloat16: pass "
                                                 r"`x.astype\(jnp.float32\)`$"):
        p(x=jnp.ones(3, jnp.bfloat16))


def test_example():
    path = pathlib.Path(conftest.__file__).parents[2] / "examples/python/jax_simulator.py"
    assert "found" in conftest.run_python(path.read_text())


def test_page():
    page = (pathlib.Path(conftest.__file__).parents[2] / "docs/jax.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) >= 2
    said = conftest.run_python("\n".join(blocks))
    assert said.startswith("[1."), said
