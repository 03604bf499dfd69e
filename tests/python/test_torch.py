"""Section 9 of the page, PyTorch: values and gradients beside PyTorch's own, and what PyTorch's own checkers say."""

import copy
import pathlib
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import conftest
import einlang

torch = conftest.optional("torch")

import einlang.torch  # noqa: E402

MLP = """
let x: [f64; batch, in];
let W: [f64; hidden, in];
let V: [f64; out, hidden];
let h[batch, hidden] = tanh(sum[in](x[batch, in] * W[hidden, in]));
let y[batch, out] = sum[hidden](h[batch, hidden] * V[out, hidden]);
let loss = mean[batch, out](y[batch, out] ** 2.0);
"""
CLASSES = """
let x: [f32; batch, class];
let best[batch] = argmax[class](x[batch, class]);
let top[batch] = max[class](x[batch, class]);
"""


def mlp(x, W, V):
    y = torch.tanh(x @ W.T) @ V.T
    return y, (y**2).mean()


def drawn(*shapes, dtype=torch.float64, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes]


@pytest.fixture(scope="module")
def f():
    return einlang.torch.function(einlang.compile(MLP, outputs=["y", "loss"]))


@pytest.fixture(scope="module")
def scalar():
    return einlang.torch.function(einlang.compile(MLP, outputs=["loss"]))


SHAPES = [(4, 3), (5, 3), (2, 5)]


def test_values(f):
    args = drawn(*SHAPES)
    made = f(*args)
    y, loss = mlp(*args)
    torch.testing.assert_close(made.y, y)
    torch.testing.assert_close(made.loss, loss)
    assert made._fields == ("y", "loss") and made.y.is_contiguous() and made.y.requires_grad
    by_name = f(V=args[2], x=args[0], W=args[1])
    assert torch.equal(by_name.y, made.y)
    assert torch.equal(f(args[0], V=args[2], W=args[1]).loss, made.loss)


def test_first_and_second_derivatives(f, scalar):
    args = drawn(*SHAPES)
    assert torch.autograd.gradcheck(f, args)
    assert torch.autograd.gradgradcheck(f, args)
    assert torch.autograd.gradgradcheck(scalar, args)


PROGRAMS = {
    "recurrence": ("let x: [f64; t]; let a: f64; let s[0] = x[0]; let s[t in 1..t] = a * s[t - 1] + sin(x[t]);", [(5,), ()]),
    "convolution": ("let x: [f64; c, n]; let k: [f64; o, c, w]; "
                    "let y[o, i in 0..n - w + 1] = sum[c, w](x[c, i + w] * k[o, c, w]);", [(2, 6), (3, 2, 3)]),
    "softmax": ("let z: [f64; b, k]; let m[b] = max[k](z[b, k]); let e[b, k] = exp(z[b, k] - m[b]); "
                "let p[b, k] = e[b, k] / sum[j](e[b, j]);", [(3, 4)]),
    "gather": ("let x: [f64; n]; let y[i in 0..3] = x[(i * 2) % n] ** 3.0;", [(4,)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of(name):
    source, shapes = PROGRAMS[name]
    f = einlang.torch.function(einlang.compile(source))
    args = drawn(*shapes)
    assert torch.autograd.gradcheck(f, args) and torch.autograd.gradgradcheck(f, args)
    assert set(torch.library.opcheck(f._operator.call, (*args, 0)).values()) == {"SUCCESS"}


def test_a_third_derivative():
    f = einlang.torch.function(einlang.compile("let x: [f64; i]; let y = sum[i](x[i] ** 4.0);"))
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    first, = torch.autograd.grad(f(x), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x, create_graph=True)
    third, = torch.autograd.grad(second.sum(), x)
    torch.testing.assert_close(third, 24 * x.detach())


def test_opcheck(f):
    args = drawn(*SHAPES)
    operator = f._operator
    found = torch.library.opcheck(operator.call, (*args, 0))
    assert set(found.values()) == {"SUCCESS"} and len(found) == 4
    f(*args).loss.backward()
    products = [o for o in einlang.torch._operators.values() if o.stem == f"{operator.stem}_vjp"
                and o.callee.program._derivations[0][1] == ["loss"] and len(o.callee.program._derivations) == 1]
    assert products
    seed = torch.ones((), dtype=torch.float64)
    for product in products:
        found = torch.library.opcheck(product.call, (*args, seed, 0))
        assert set(found.values()) == {"SUCCESS"}
    batched = [a.detach().unsqueeze(0).expand(6, *a.shape) for a in args]
    found = torch.library.opcheck(operator.call, (*batched, 1))
    assert set(found.values()) == {"SUCCESS"}


def test_only_what_is_asked_for_is_computed(f):
    x, W, V = drawn(*SHAPES)
    before = set(einlang.torch._operators)
    f(x.detach(), W, V.detach()).loss.backward()
    made = [einlang.torch._operators[key] for key in set(einlang.torch._operators) - before]
    for operator in made:
        assert [v.name for v in operator.callee.outputs] == ["W_bar"]
    x2, W2, V2 = drawn(*SHAPES)
    mlp(x2.detach(), W2, V2.detach())[1].backward()
    torch.testing.assert_close(W.grad, W2.grad)
    assert x.grad is None and V.grad is None


def test_compile_once_for_three_shapes(f):
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    def model(function):
        return lambda x, W, V: torch.sin(function(2 * x, W, V)[0]).sum()

    for compiled in (torch.compile(model(f), fullgraph=True, dynamic=True, backend=backend),
                     torch.compile(model(f), fullgraph=True, dynamic=True)):
        for n in (3, 5, 8):
            args, others = drawn((n + 1, n), (6, n), (2, 6)), drawn((n + 1, n), (6, n), (2, 6))
            value, expected = compiled(*args), model(mlp)(*others)
            torch.testing.assert_close(value, expected)
            value.backward(), expected.backward()
            for a, b in zip(args, others):
                torch.testing.assert_close(a.grad, b.grad)
    assert len(graphs) == 1


def test_sizes_that_are_formulas():
    p = einlang.compile("""
let x: [f32; n];
let half[i in 0..(n - 3) / 2 + 1] = 3.0 * x[2 * i];
let most[i in 0..max(n - 4, 2)] = x[i];
let some[i in 0..if n > 6 { n } else { 2 * n % 5 }] = x[i % n];
let wide: [f32; n + 2];
let difference[i in 0..n] = wide[i + 2] - wide[i];
""")
    f = einlang.torch.function(p)
    compiled = torch.compile(lambda x, wide: f(x + 1, wide), fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (5, 7, 9, 12):
        x, wide = drawn((n,), (n + 2,), dtype=torch.float32, seed=n)
        made, direct = compiled(x, wide), f(x + 1, wide)
        for a, b in zip(made, direct):
            torch.testing.assert_close(a, b)
        torch.testing.assert_close(made.half, 3 * (x + 1)[: 2 * ((n - 3) // 2) + 1: 2])
        torch.testing.assert_close(made.difference, wide[2:] - wide[:-2])


def test_an_extent_is_an_int():
    f = einlang.torch.function(einlang.compile("let a: f32; let n: i64; let y[i in 0..n] = a * (i as f32);"))
    a = torch.tensor(2.0, requires_grad=True)
    made = f(a, 4)
    assert made.tolist() == [0, 2, 4, 6]
    made.sum().backward()
    assert a.grad == 6
    assert f(a=3.0, n=torch.tensor(2)).tolist() == [0, 3]
    compiled = torch.compile(lambda a, x: f(a, x.shape[0] + 1), fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (2, 4, 7):
        assert compiled(a, torch.zeros(n)).tolist() == [2.0 * i for i in range(n + 1)]
    with pytest.raises(einlang.InputError, match="`n` is -1, but it bounds a range"):
        f(a, -1)


def test_vmap(f):
    x, W, V = (a.detach() for a in drawn((6, 4, 3), (5, 3), (2, 5)))
    for in_dims, first in [((0, None, None), x), ((2, None, None), x.movedim(0, 2).contiguous()),
                           ((1, None, None), x.movedim(0, 1))]:
        made = torch.vmap(f, in_dims)(first, W, V)
        expected = torch.vmap(mlp, in_dims)(first, W, V)
        torch.testing.assert_close(made.y, expected[0])
        torch.testing.assert_close(made.loss, expected[1])
    Ws = torch.stack([W, 2 * W, -W])
    nested = torch.vmap(torch.vmap(lambda x, W: f(x, W, V).loss, (0, None)), (None, 0))(x, Ws)
    expected = torch.vmap(torch.vmap(lambda x, W: mlp(x, W, V)[1], (0, None)), (None, 0))(x, Ws)
    torch.testing.assert_close(nested, expected)
    assert torch.vmap(lambda x: f(x, W, V).loss)(x[:0]).shape == (0,)
    compiled = torch.compile(torch.vmap(lambda x: f(x, W, V).loss), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), torch.vmap(lambda x: mlp(x, W, V)[1])(x))
    direct = torch.vmap(lambda x: f._operator.call(x, W, V, 0)[1])(x)
    torch.testing.assert_close(direct, torch.vmap(lambda x: mlp(x, W, V)[1])(x))


def test_transformations_of_torch_func(f):
    x, W, V = (a.detach() for a in drawn(*SHAPES))
    xs = torch.stack([x, 2 * x, -x])

    def both(transform, *args):
        torch.testing.assert_close(transform(f)(*args), transform(mlp)(*args))

    both(lambda g: torch.func.grad(lambda *a: g(*a)[1], argnums=(0, 1, 2)), x, W, V)
    both(lambda g: torch.func.vmap(torch.func.grad(lambda *a: g(*a)[1], argnums=1), (0, None, None)), xs, W, V)
    both(lambda g: torch.func.grad(lambda W: torch.func.vmap(lambda x: g(x, W, V)[1])(xs).sum()), W)
    both(lambda g: torch.func.jacrev(torch.func.grad(lambda W: g(x, W, V)[1])), W)
    both(lambda g: torch.func.jacrev(lambda W: g(x, W, V)[0]), W)
    value, pull = torch.func.vjp(lambda W: f(x, W, V).loss, W)
    torch.testing.assert_close(pull(torch.tensor(2.0, dtype=torch.float64))[0],
                               2 * torch.func.grad(lambda W: mlp(x, W, V)[1])(W))


def test_training_is_that_of_pytorch(f):
    def train(function):
        x, W, V = drawn(*SHAPES)
        optimiser = torch.optim.Adam([W, V], lr=0.05)
        losses = []
        for _ in range(30):
            optimiser.zero_grad()
            loss = function(x.detach(), W, V)[1] + 0.01 * (W**2).sum()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses, W.detach(), V.detach()

    ours, theirs = train(f), train(mlp)
    assert ours[0][-1] < 0.5 * ours[0][0]
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    torch.testing.assert_close(ours[1:], theirs[1:], rtol=1e-10, atol=1e-12)


def test_memory_is_shared_where_it_can_be(f):
    x, W, V = (a.detach() for a in drawn(*SHAPES))
    p = f.program
    before = p.copies
    f(x, W, V)
    assert p.copies == before
    made = f(x.T.contiguous().T, W[:, [0, 1, 2]], V)
    torch.testing.assert_close(made.y, mlp(x, W, V)[0])
    assert p.copies > before
    big = torch.zeros(9, 3, dtype=torch.float64)
    big[5:] = x
    torch.testing.assert_close(f(big[5:], W, V).y, mlp(x, W, V)[0])


def test_views_that_negate():
    f = einlang.torch.function(einlang.compile("let x: [f32; i]; let y[i] = 2.0 * x[i];"))
    z = torch.tensor([1 + 2j, 3 - 4j])
    imaginary = z.conj().imag
    assert imaginary.is_neg()
    assert f(imaginary).tolist() == [-4, 8]
    assert f(z.real).tolist() == [2, 6]


def test_empty_tensors(f):
    x, W, V = drawn((0, 3), (5, 3), (2, 5))
    assert f(x, W, V).y.shape == (0, 2)
    f(x, W, V).y.sum().backward()
    assert torch.equal(W.grad, torch.zeros(5, 3, dtype=torch.float64))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"])
def test_types(name):
    ein = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}.get(name, name[0] + name[-2:].lstrip("t"))
    f = einlang.torch.function(einlang.compile(f"let x: [{ein}; i]; let y[i] = x[i] + x[i];"))
    x = torch.tensor([1, 2, 3], dtype=getattr(torch, name))
    made = f(x)
    assert made.dtype == x.dtype and made.tolist() == [2, 4, 6]


def test_bools():
    f = einlang.torch.function(einlang.compile("let m: [bool; i]; let x: [f32; i]; "
                                               "let y[i] = if m[i] { x[i] } else { 0.0 }; let n[i] = !m[i];"))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    made = f(torch.tensor([True, False]), x)
    assert made.y.tolist() == [1, 0] and made.n.tolist() == [False, True]
    made.y.sum().backward()
    assert x.grad.tolist() == [1, 0]


def test_integer_outputs():
    f = einlang.torch.function(einlang.compile(CLASSES))
    x = torch.tensor([[1.0, 5.0, 2.0], [7.0, 1.0, 3.0]], requires_grad=True)
    made = f(x)
    assert made.best.tolist() == [1, 0] and not made.best.requires_grad and made.top.requires_grad
    made.top.sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]
    only = einlang.compile(CLASSES, outputs=["best"])
    assert einlang.torch.function(only)(x).tolist() == [1, 0]
    assert not einlang.torch.function(only)(x).requires_grad
    with pytest.raises(einlang.InputError, match="wrt names `x`, but no output is a float.*the outputs are `best`"):
        einlang.torch.function(only, wrt="x")


def test_records():
    p = einlang.compile("let net: {w: [f64; o, i], b: [f64; o]}; let x: [f64; i]; "
                        "let y[o] = sum[i](net.w[o, i] * x[i]) + net.b[o]; let n = {y: y, s: sum[o](y[o])};", outputs=["n"])
    f = einlang.torch.function(p, wrt="net")
    w, b, x = drawn((2, 3), (2,), (3,))
    made = f(net={"w": w, "b": b}, x=x.detach())
    torch.testing.assert_close(made.n.y, w @ x + b)
    made.n.s.backward()
    torch.testing.assert_close(b.grad, torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(w.grad, x.detach().expand(2, 3))


def test_a_gradient_that_was_not_foreseen_is_an_error(f):
    x, W, V = drawn(*SHAPES)
    narrow = einlang.torch.function(f.program, wrt=["W", "V"])
    narrow(x.detach(), W, V).loss.backward()
    with pytest.raises(einlang.InputError, match="the gradient by input `x` is needed, but this function was made to be "
                                                 "differentiated by `W`, `V`: name `x` in `wrt=`"):
        narrow(x, W, V).loss.backward()


def test_bad_input(f):
    x, W, V = (a.detach() for a in drawn(*SHAPES))

    def refused(match, *args, **given):
        with pytest.raises(einlang.InputError, match=match):
            f(*args, **given)

    refused(r"input `x` holds f64, but the tensor given holds torch.float32: pass `x.to\(torch.float64\)`", x.float(), W, V)
    refused(r"input `x` has 2 coordinates, \('batch', 'in'\), but the tensor given has the shape \(1, 4, 3\)", x[None], W, V)
    refused(r"input `W` has extent 2 along `in`, but 3 is needed there", x, W[:, :2], V)
    refused(r"input `V` \(\[f64; out, hidden\]\) is missing: the inputs are `x`, `W`, `V`", x, W)
    refused("4 arguments are given, but the inputs are `x`, `W`, `V`", x, W, V, V)
    refused("input `x` is given twice, by position and by name", x, W, V, x=x)
    refused("has no input `U`", x, W, V, U=x)
    refused(r"input `x` is an array of NumPy: pass `torch.from_numpy\(x\)`", x.numpy(), W, V)
    refused("input `x` is None: a function of einlang.torch takes tensors", None, W, V)
    refused(r"input `x` is a tensor of the layout torch.sparse_coo: pass `x.to_dense\(\)`", x.to_sparse(), W, V)
    for dynamic, match in [(False, "has extent 2 along `in`"), (True, "input `W` has the extent .* along `in`, but `x` has .* there")]:
        compiled = torch.compile(f, fullgraph=True, backend="eager", dynamic=dynamic)
        with pytest.raises(Exception) as raised:
            compiled(x, W[:, :2], V)
        assert re.search(match, f"{raised.value} {raised.value.__cause__}"), raised.value


def test_another_device(f):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        args = [torch.empty(shape, dtype=torch.float64, device="cuda") for shape in SHAPES]
        with pytest.raises(Exception, match=r"input `x` is on the device cuda:0, but programs run on the CPU: pass `x.cpu\(\)`"):
            f(*args)
    meta = f(*(torch.empty(shape, dtype=torch.float64, device="meta") for shape in SHAPES))
    assert meta.y.shape == (4, 2) and meta.y.device.type == "meta"


def test_bad_wrt(f):
    p = einlang.compile("let x: [f32; i]; let k: [i64; j]; let y[j] = x[k[j]];")
    for wrt, match in [("k", "wrt names `k`, which holds i64: only floats have gradients"),
                       (["x", "y"], "wrt names `y`, which is not an input: the inputs are `x`, `k`"),
                       (["z"], "wrt names `z`, which is not an input")]:
        with pytest.raises(einlang.InputError, match=match):
            einlang.torch.function(p, wrt=wrt)
    mixed = einlang.compile("let x: [f32; i]; let y: [f64; i]; let z[i] = x[i] as f64 + y[i];")
    with pytest.raises(einlang.InputError, match="`x` holds f32 and `y` holds f64, and a gradient needs values of one type"):
        einlang.torch.function(mixed)
    made = einlang.torch.function(mixed, wrt=["y"])(torch.ones(2), torch.ones(2, dtype=torch.float64))
    assert made.tolist() == [2, 2]
    with pytest.raises(TypeError, match="takes a program that einlang.compile made, not str"):
        einlang.torch.function("let x: f32;")


def test_a_failure_in_the_program():
    f = einlang.torch.function(einlang.compile("let x: [f32; i]; assert(x[0] > 0.0); let y[i] = sqrt(x[i]);"))
    with pytest.raises(einlang.CallError, match="E0804"):
        f(torch.tensor([-1.0]))
    assert f(torch.tensor([4.0])).tolist() == [2]


def test_the_same_program_is_one_operator(f):
    again = einlang.torch.function(einlang.compile(MLP, outputs=["y", "loss"]))
    assert again._operator is f._operator
    other = einlang.torch.function(einlang.compile(MLP, outputs=["y"]))
    assert other._operator is not f._operator
    assert re.fullmatch(r"program_[0-9a-f]{16}", f._operator.name)


def test_copies_and_pickles(f):
    """A module that holds a function can be copied and saved."""
    narrow = einlang.torch.function(f.program, wrt=["W"])
    for made in (copy.deepcopy(narrow), pickle.loads(pickle.dumps(narrow))):
        assert made._operator is narrow._operator
    x, W, V = drawn(*SHAPES)
    made = pickle.loads(pickle.dumps(f))
    torch.testing.assert_close(made(x, W, V), f(x, W, V))


def test_nothing_is_said_at_exit():
    code = """
import einlang, torch
f = einlang.torch.function(einlang.compile("let x: [f32; i]; let y[i] = x[i] * x[i];"))
x = torch.ones(3, requires_grad=True)
f(x).sum().backward()
print(x.grad.tolist())
"""
    here = str(pathlib.Path(einlang.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": here}, timeout=120)
    assert done.stdout == "[2.0, 2.0, 2.0]\n" and "leaked" not in done.stderr, done.stderr


def test_threads(f):
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        x, W, V = drawn((40, 30), (50, 30), (20, 50), seed=seed)
        f(x, W, V).loss.backward()
        return x.grad

    f = einlang.torch.function(einlang.compile(MLP, outputs=["y", "loss"], name="threads"))  # nothing is compiled yet
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(32)))
    for seed in (0, 31):
        x, W, V = drawn((40, 30), (50, 30), (20, 50), seed=seed)
        mlp(x, W, V)[1].backward()
        torch.testing.assert_close(found[seed], x.grad)


# ---- tensors as arguments of a program itself


@pytest.mark.parametrize("name, dtype", [
    ("bool", torch.bool), ("i8", torch.int8), ("i16", torch.int16), ("i32", torch.int32), ("i64", torch.int64),
    ("u8", torch.uint8), ("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32), ("f64", torch.float64)])
def test_tensors_in_and_out_of_a_program(name, dtype):
    p = einlang.compile(f"let x: [{name}; i, j]; let y[i, j] = x[i, j];")
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    r = p(x=x)
    back = torch.from_dlpack(r.y)
    assert back.dtype == dtype and torch.equal(back, x)
    assert back.data_ptr() == r.y._address  # the same memory
    assert torch.equal(torch.from_dlpack(p(x=back).y), x)
    with torch.inference_mode():
        assert torch.equal(torch.from_dlpack(p(x=x).y), x)
    assert p.copies == 0
    assert torch.equal(torch.from_dlpack(p(x=x.T.contiguous().T).y), x)
    assert torch.equal(torch.from_dlpack(p(x=x.repeat(1, 2)[:, ::2]).y), x.repeat(1, 2)[:, ::2])
    assert p.copies == 2
    into = torch.empty_like(x)
    p.call({"x": x}, out={"y": into})
    assert torch.equal(into, x)


def test_a_tensor_is_read_where_it_lies():
    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    x = torch.ones(4)
    whole, part = p(x=x), x[1:3]
    assert float(whole.s) == 4 and float(p(x=part).s) == 2
    x[1] = 5
    assert float(p(x=part).s) == 6 and float(p(x=x[:0]).s) == 0 and p.copies == 0
    assert float(p(x=torch.nn.Parameter(x, requires_grad=False)).s) == 8


def test_a_sign_that_pytorch_changes_on_reading():
    p = einlang.compile("let x: [f32; i]; let y[i] = x[i];")
    z = torch.complex(torch.arange(3.0), torch.arange(3.0) + 1).conj()
    assert z.imag.is_neg() and not z.imag.is_contiguous()
    np.testing.assert_array_equal(p(x=z.imag).y.numpy(), [-1, -2, -3])
    dense = torch._neg_view(torch.arange(3.0))
    before = p.copies
    np.testing.assert_array_equal(p(x=dense).y.numpy(), [0, -1, -2])
    assert p.copies == before + 1
    with pytest.raises(einlang.CopyError, match="is_neg"):
        p.call({"x": dense}, copy=False)
    with pytest.raises(einlang.InputError, match="sign PyTorch changes"):
        p.call({"x": torch.ones(3)}, out={"y": dense})


def refused(make, message):
    p = einlang.compile("let x: [f32; i]; let y[i] = x[i];")
    with pytest.raises(einlang.InputError, match=f"^{re.escape(message)}"):
        p(x=make())


@pytest.mark.filterwarnings("ignore")  # PyTorch's, about prototypes
@pytest.mark.parametrize("make, message", [
    (lambda: torch.ones(3, requires_grad=True), "input `x` is a tensor that requires a gradient, which a call would lose: pass "
     "`x.detach()`, or use einlang.torch.function, which differentiates"),
    (lambda: torch.ones(3).to_sparse(), "input `x` is a tensor of the layout torch.sparse_coo: pass `x.to_dense()`"),
    (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "input `x` is a quantized tensor: pass "
     "`x.dequantize()`"),
    (lambda: torch.nested.nested_tensor([torch.ones(2)]), "input `x` is a nested tensor: pass `x.to_padded_tensor(0.0)`"),
    (lambda: torch.ones(3, device="meta"), "input `x` is a tensor with a shape but no values"),
    (lambda: torch.ones(3, dtype=torch.float64), "input `x` holds f32, but the array given holds float64: pass "
     "`x.to(torch.float32)`"),
    (lambda: torch.ones(3, 2), "input `x` has 1 coordinates, ('i',), but the array given has the shape (3, 2)"),
    (lambda: torch.ones(3, dtype=torch.complex64), "input `x` holds torch.complex64, which the language does not have")])
def test_refused_tensors(make, message):
    refused(make, message)


def test_tensors_that_pytorch_transforms_are_refused():
    """Their derivatives would be lost."""
    def call(x):
        refused(lambda: x, "input `x` is a tensor that torch.func transforms (under grad, vmap or the like): use "
                           "einlang.torch.function")
        return x.sum()

    torch.func.grad(call)(torch.ones(3))
    torch.func.grad(lambda x: (call(x.detach()), x.sum())[1])(torch.ones(3))
    torch.func.vmap(call)(torch.ones(2, 3))
    torch.func.jvp(call, (torch.ones(3),), (torch.ones(3),))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3))
        refused(lambda: dual, "input `x` is a tensor that carries a tangent, which a call would lose: pass `x.detach()`, or "
                              "use p.jvp")
        p = einlang.compile("let x: [f32; i]; let y[i] = x[i];")
        assert p(x=torch.ones(3)).y.shape == (3,)


def test_loops_take_tensors():
    loop = einlang.compile("let s: f32; let x: [f32; i]; let s_next = s + sum[i](x[i]);").loop(state={"s": "s_next"})
    loop.state(s=0.0)
    for k in range(3):
        loop(x=torch.full((2,), float(k)))
    assert float(loop.state()["s"]) == 6


class Scaled(torch.utils.data.Dataset):
    """Items that a program makes, by a plain call and as an operator; every seventh call fails, in the worker that makes it."""

    def __init__(self, program):
        self.program, self.function = program, einlang.torch.function(program)

    def __len__(self):
        return 40

    def __getitem__(self, k):
        x = torch.full((64, 48), float(k))
        if k % 7 == 0:
            with pytest.raises(einlang.InputError):
                self.program(x=x, W=torch.ones(2, 2))
        plain = torch.from_dlpack(self.program(x=x, W=torch.ones(32, 48)).z)
        return torch.stack([plain, self.function(x, torch.ones(32, 48))])


WORKER_PROGRAM = "let x: [f32; n, i];\nlet W: [f32; o, i];\nlet z[n, o] = sum[i](x[n, i] * W[o, i]);\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_data_loader(method):
    """No wrong value and no hang, while threads of the parent use the same program and its pool."""
    from concurrent.futures import ThreadPoolExecutor

    p = einlang.compile(WORKER_PROGRAM)
    big = np.ones((300, 400), np.float32)
    p(x=big, W=big)  # the pool runs in the parent
    data = Scaled(p)
    data[3]
    going = True

    def busy():
        while going:
            assert p(x=big, W=big).z[0, 0] == 400

    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(busy) for _ in range(2)]
        try:
            for _ in range(2):
                loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context=method, timeout=100)
                seen = [item for batch in loader for item in batch]
                assert len(seen) == 40
                for k, item in enumerate(seen):
                    assert item.shape == (2, 64, 32) and bool((item == 48 * k).all())
        finally:
            going = False
        for other in others:
            other.result()


def test_example():
    path = pathlib.Path(conftest.__file__).parents[2] / "examples/python/torch_layer.py"
    assert "equal to PyTorch" in conftest.run_python(path.read_text())


def test_page():
    page = (pathlib.Path(conftest.__file__).parents[2] / "docs/pytorch.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) >= 2
    said = conftest.run_python("\n".join(blocks))
    assert "loss " in said and "let x_bar" in said, said
