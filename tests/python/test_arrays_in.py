"""Section 4 of the page: what is taken, what is refused, and with which words."""

import array
import ctypes
import dataclasses
import re

import ml_dtypes
import numpy as np
import pytest
import xarray

import einlang
from einlang import CopyError, DimsError, InputError, LabelError

F32 = np.float32
DTYPES = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
          "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def says(text, *args, kind=InputError, **more):
    """A context in which exactly this must be said."""
    return pytest.raises(kind, match="^" + re.escape(text) + "$")


@pytest.fixture(scope="module")
def copy():
    """Programs that give back what they get."""
    return {name: einlang.compile(f"let x: [{name}; i, j]; let y[i, j] = x[i, j];") for name in DTYPES}


def sample(dtype):
    return np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_every_type(copy, name):
    x = sample(DTYPES[name])
    y = copy[name](x=x).y
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.numpy(), x)
    np.testing.assert_array_equal(copy[name](x=y).y.numpy(), x)  # an Array
    assert copy[name].copies == 0
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(copy[name](x=read_only).y.numpy(), x)
    np.testing.assert_array_equal(copy[name](x=xarray.DataArray(x, dims=["i", "j"])).y.numpy(), x)
    assert copy[name].copies == 0
    literals = x.tolist()
    np.testing.assert_array_equal(copy[name](x=literals).y.numpy(), x)
    np.testing.assert_array_equal(copy[name](x=np.asfortranarray(x)).y.numpy(), x)
    np.testing.assert_array_equal(copy[name](x=np.repeat(x, 2, axis=1)[:, ::2]).y.numpy(), x)
    assert copy[name].copies == 2


def test_nothing_is_copied_in():
    """A program that stops shows the address it reads: the value of the caller, changed, is seen by the next call."""
    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    x = np.ones(3, F32)
    assert float(p(x=x).s) == 3
    x[0] = 5
    assert float(p(x=x).s) == 7 and p.copies == 0


def test_other_buffers():
    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    for x in [array.array("f", [1, 2]), memoryview(np.array([1, 2], F32)), (ctypes.c_float * 2)(1, 2),
              np.array([1, 2], F32).view(type("Mine", (np.ndarray,), {}))]:
        assert float(p(x=x).s) == 3
    assert float(einlang.compile("let x: [u8; i]; let s = sum[i](x[i] as i32);")(x=b"\x01\x02").s) == 3


class OnlyDlpack:
    """An array of another library: DLPack, and nothing else."""

    def __init__(self, values, versioned=True):
        self.values, self.versioned = values, versioned

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and options:
            raise TypeError("no options")
        return self.values.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(versioned):
    p = einlang.compile("let x: [f32; i, j]; let y[i, j] = x[i, j];")
    x = np.arange(6, dtype=F32).reshape(2, 3)
    before = p.copies
    np.testing.assert_array_equal(p(x=OnlyDlpack(x, versioned)).y.numpy(), x)
    assert p.copies == before
    np.testing.assert_array_equal(p(x=OnlyDlpack(x.T.copy().T, versioned)).y.numpy(), x)
    assert p.copies == before + 1
    with says("input `x` holds uint32, which the language does not have: its types are bool, int8, int16, int32, int64, "
              "uint8, float16, bfloat16, float32 and float64"):
        class Typed(OnlyDlpack):
            dtype = "uint32"
        p(x=Typed(x.astype(np.uint32)))


def test_another_device():
    class OnDevice(OnlyDlpack):
        def __dlpack_device__(self):
            return (2, 0)

    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    with says("input `x` is on another device than the CPU, but programs run on the CPU: copy it there first, with "
              "`x.cpu()` or its like"):
        p(x=OnDevice(np.ones(2, F32)))


def test_a_tensor_that_requires_a_gradient():
    class Tensor(OnlyDlpack):
        requires_grad = True

    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    with says("input `x` is a tensor that requires a gradient, which a call would lose: pass `x.detach()`, or use "
              "einlang.torch.function, which differentiates"):
        p(x=Tensor(np.ones(2, F32)))


# ---- names


def test_dims_are_checked(layer, data):
    x = xarray.DataArray(data["x"], dims=["batch", "in"])
    z = data["x"] @ data["W"].T
    np.testing.assert_allclose(layer(x=x, W=data["W"]).z.numpy(), z, rtol=1e-5)
    with says("input `x` has the coordinates ('batch', 'in'), but the array given has the dims ('in', 'batch'): transpose "
              "it, `x.transpose('batch', 'in')`, or let `p.call(…, align=True)` do so", kind=DimsError):
        layer(x=x.T, W=data["W"])
    before = layer.copies
    np.testing.assert_allclose(layer.call({"x": x.T, "W": data["W"]}, align=True).z.numpy(), z, rtol=1e-5)
    assert layer.copies == before + 1
    with says("input `x` has the coordinates ('batch', 'in'), but the array given has the dims ('batch', 'features'): none "
              "of them is called `in`. If `features` is meant, rename it: `x.rename(features=\"in\")`", kind=DimsError):
        layer(x=x.rename({"in": "features"}), W=data["W"])
    with says("input `x` has the coordinates ('batch', 'in'), but the array given has the dims ('batch', 'my in'): none "
              "of them is called `in`. If `my in` is meant, rename it: `x.rename({'my in': \"in\"})`", kind=DimsError):
        layer(x=x.rename({"in": "my in"}), W=data["W"])
    with pytest.raises(DimsError):
        layer.call({"x": x.rename({"in": "features"}), "W": data["W"]}, align=True)


def test_square_arrays_are_checked_too():
    """Extents that agree by chance hide nothing."""
    p = einlang.compile("let x: [f32; i, j]; let y[i] = sum[j](x[i, j]);")
    x = xarray.DataArray(np.arange(4, dtype=F32).reshape(2, 2), dims=["j", "i"])
    with pytest.raises(DimsError):
        p(x=x)
    np.testing.assert_array_equal(p.call({"x": x}, align=True).y.numpy(), x.values.sum(axis=0))


def test_arrays_have_dims_too(layer, data):
    r = layer(**data)
    p = einlang.compile("let z: [f32; out, batch]; let s[out] = sum[batch](z[out, batch]);")
    with pytest.raises(DimsError, match="'out', 'batch'.*'batch', 'out'"):
        p(z=r.z)
    aligned = p.call({"z": r.z}, align=True)
    np.testing.assert_allclose(aligned.s.numpy(), (data["x"] @ data["W"].T).sum(axis=0), rtol=1e-5)
    q = einlang.compile("let z: [f32; n, class]; let s = sum[n, class](z[n, class]);")
    assert float(q(z=r.z.rename(batch="n", out="class")).s) == pytest.approx(float(np.sum(r.z.numpy())), rel=1e-5)


def test_a_variable_of_xarray_has_dims_without_labels(layer, data):
    x = xarray.Variable(("batch", "in"), data["x"])
    np.testing.assert_array_equal(layer(x=x, W=data["W"]).z.numpy(), layer(**data).z.numpy())
    with pytest.raises(DimsError, match="'batch', 'in'.*'in', 'batch'"):
        layer(x=x.transpose("in", "batch"), W=data["W"])


def test_align_and_copy_false(layer, data):
    x = xarray.DataArray(data["x"].T, dims=["in", "batch"])
    with says("input `x` would have to be copied, because its dims are in another order, and copy=False forbids it",
              kind=CopyError):
        layer.call({"x": x, "W": data["W"]}, align=True, copy=False)


def test_labels():
    p = einlang.compile("let x: [f32; batch, i]; let y: [f32; batch]; let s[batch] = y[batch] * sum[i](x[batch, i]);")
    x = xarray.DataArray(np.ones((3, 2), F32), dims=["batch", "i"], coords={"batch": [10, 20, 30], "i": ["a", "b"]})
    y = xarray.DataArray(np.ones(3, F32), dims=["batch"], coords={"batch": [10, 20, 30]})
    s = p(x=x, y=y).s.to_xarray()
    assert list(s["batch"].values) == [10, 20, 30] and "i" not in s.coords
    with says("the labels along `batch` differ: at position 1 it is 20 in `x` and 25 in `y`. Programs match cells by "
              "position, not by label: select the same labels first, for example with xarray.align(x, y, join=\"inner\")",
              kind=LabelError):
        p(x=x, y=y.assign_coords(batch=[10, 25, 30]))
    assert p(x=x, y=np.ones(3, F32)).s._labels is not None  # one side has labels, the other none
    assert p(x=x.values, y=y.values).s.to_xarray().coords.keys() == set()
    # Labels go on through an Array.
    again = einlang.compile("let s: [f32; batch]; let t[batch] = 2.0 * s[batch];")
    assert list(again(s=p(x=x, y=y).s).t.to_xarray()["batch"].values) == [10, 20, 30]


# ---- memory


@pytest.mark.parametrize("change", [np.asfortranarray, lambda x: np.repeat(x, 2, 0)[::2], lambda x: x[::-1].copy()[::-1]])
def test_strided(layer, data, change):
    x = change(data["x"])
    assert not x.flags.c_contiguous
    np.testing.assert_array_equal(layer(x=x, W=data["W"]).z.numpy(), layer(**data).z.numpy())
    with says("input `x` would have to be copied, because it is not dense and row-major, and copy=False forbids it",
              kind=CopyError):
        layer.call({"x": x, "W": data["W"]}, copy=False)


def test_unaligned(layer, data):
    room = np.zeros(data["x"].nbytes + 1, np.uint8)
    x = room[1:].view(F32).reshape(4, 3)
    x[...] = data["x"]
    before = layer.copies
    np.testing.assert_array_equal(layer(x=x, W=data["W"]).z.numpy(), layer(**data).z.numpy())
    assert layer.copies == before + 1


# ---- types


def test_another_type(layer, data):
    with says("input `x` holds f32, but the array given holds float64: pass `x.astype(np.float32)`"):
        layer(x=data["x"].astype(np.float64), W=data["W"])
    p = einlang.compile("let x: [bool; i]; let b: [bf16; i]; let y[i] = x[i];")
    with says("input `x` holds bool, but the array given holds uint8: pass `x.astype(bool)`"):
        p(x=np.ones(2, np.uint8), b=np.ones(2, ml_dtypes.bfloat16))
    with says("input `b` holds bf16, but the array given holds float32: pass `b.astype(ml_dtypes.bfloat16)`"):
        p(x=np.ones(2, bool), b=np.ones(2, F32))


TYPES = "bool, int8, int16, int32, int64, uint8, float16, bfloat16, float32 and float64"


@pytest.mark.parametrize("x, message", [
    (np.ones(2, np.uint16), f"input `x` is a NumPy array of uint16, which the language does not have: its types are {TYPES}"),
    (np.ones(2, np.uint64), f"input `x` is a NumPy array of uint64, which the language does not have: its types are {TYPES}"),
    (np.ones(2, complex), f"input `x` is a NumPy array of complex128, which the language does not have: its types are {TYPES}"),
    (np.array([1, None]), f"input `x` is a NumPy array of object, which the language does not have: its types are {TYPES}"),
    (np.array(["a"]), f"input `x` is a NumPy array of str32, which the language does not have: its types are {TYPES}"),
    (np.ones(2, ">f4"), "input `x` is a NumPy array in another byte order (>f4): pass "
                        "`x.astype(x.dtype.newbyteorder(\"=\"))`"),
    (np.ma.masked_array(np.ones(2, F32)), "input `x` is a masked array, but programs have no masks: pass `x.filled(0)` and, "
                                          "if the program needs it, the mask as an input of its own"),
    (b"text", "input `x` holds f32, but the array given holds uint8: pass `np.asarray(x).astype(np.float32)`"),
    ("text", "input `x` holds f32, but was given 'text'"),
    (None, "input `x` holds f32, but was given None"),
    (object(), "input `x` is an object of type object, which offers neither the buffer protocol nor DLPack: pass a NumPy "
               "array"),
    ([1, [2, 3]], "the list for input `x` is ragged: element 0 has the shape (), element 1 the shape (2,)"),
    ([np.float64(1)], "the list for input `x` holds an object of type numpy.float64; lists hold Python's numbers, other "
                      "arrays are passed as they are or through np.stack"),
    ([1j], f"input `x` got the complex number 1j, but the language has no complex numbers: its types are {TYPES}"),
    ([True], "input `x` holds f32, but was given True, a bool"),
    ([1e39], "input `x` holds f32, whose largest number is 3.40282e+38, but was given 1e+39"),
    ([10**400], f"input `x` holds f32, whose largest number is 3.40282e+38, but was given {10**400}"),
    (np.ones((2, 2), F32), "input `x` has 1 coordinates, ('i',), but the array given has the shape (2, 2)"),
    (1.0, "input `x` has 1 coordinates, ('i',), but the array given has the shape ()")])
def test_refused(x, message):
    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    with says(message):
        p(x=x)


def test_pandas():
    import pandas

    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i]);")
    with says("input `x` is an object of type pandas.Series: pass `x.to_numpy()`"):
        p(x=pandas.Series([1.0]))


@pytest.mark.parametrize("name, fine, refused", [
    ("f32", [1, 2.5, -3, float("inf"), 10**30], [True, 1e39, 10**40, 1j, "1"]),
    ("f64", [1, 1e300, 2**53], [False, 10**400]),
    ("f16", [1, 65504.0], [65536.0, 70000]),
    ("bf16", [1, 1e38], [3.4e38, 10**39]),
    ("i8", [127, -128], [128, -129, 1.0, True]), ("u8", [0, 255], [-1, 256]), ("i16", [-32768], [32768]),
    ("i32", [2**31 - 1], [2**31]), ("i64", [2**63 - 1, -(2**63)], [2**63]), ("bool", [True, False], [1, 0.0])])
def test_numbers_adapt_as_literals_do(name, fine, refused):
    p = einlang.compile(f"let x: {name}; let y = x;")
    for value in fine:
        expected = np.array(value).astype(DTYPES[name])
        assert p(x=value).y.numpy() == expected
    for value in refused:
        with pytest.raises(InputError):
            p(x=value)


def test_a_numpy_scalar_is_no_number():
    p = einlang.compile("let x: f32; let y = x;")
    with says("input `x` holds f32, but the array given holds float64: pass `x.astype(np.float32)`"):
        p(x=np.float64(1))
    assert float(p(x=np.float32(1.5)).y) == 1.5


# ---- which inputs


def test_unknown_and_missing(layer, data):
    with says("the program has no input `w`: its inputs are `x`, `W`; did you mean `W`?"):
        layer(x=data["x"], w=data["W"])
    with says("the program has no input `Ws`: its inputs are `x`, `W`; did you mean `W`?"):
        layer(**data, Ws=1)
    with says("input `W` ([f32; out, in]) is missing: the inputs are `x`, `W`"):
        layer(x=data["x"])
    with says("inputs `x` ([f32; batch, in]), `W` ([f32; out, in]) are missing: the inputs are `x`, `W`"):
        layer()
    with says("inputs are given as a mapping from names to arrays, not as an object of type list"):
        layer.call([data["x"]])


def test_extents_that_do_not_fit(layer, data):
    with pytest.raises(InputError, match="(?s)E0805|E0802") as found:
        layer(x=data["x"], W=np.ones((2, 4), F32))
    text = str(found.value)
    assert "`in`" in text and "3" in text and "4" in text and "-->" in text, text
    assert found.value.code in ("E0802", "E0805") and found.value.diagnostics[0].code == found.value.code
    assert isinstance(found.value, ValueError) and isinstance(found.value, TypeError)
    p = einlang.compile("let x: [f32; 3]; let s = sum[i](x[i]);")
    with pytest.raises(InputError, match="extent 4"):
        p(x=np.ones(4, F32))


# ---- out=


def test_out(layer, data):
    z, loss = np.empty((4, 2), F32), np.empty((), F32)
    r = layer.call(data, out={"z": z})
    np.testing.assert_allclose(z, data["x"] @ data["W"].T, rtol=1e-5)
    assert r.z.numpy().ctypes.data == z.ctypes.data
    layer.call(data, out={"z": z, "loss": loss})
    assert loss == pytest.approx(np.mean(z**2), rel=1e-5)
    into = xarray.DataArray(np.empty((4, 2), F32), dims=["batch", "out"])
    layer.call(data, out={"z": into})
    np.testing.assert_array_equal(into.values, z)
    r2 = layer(**data)
    layer.call({**data, "x": data["x"] * 2}, out={"z": r2.z})  # an Array
    np.testing.assert_allclose(r2.z.numpy(), 2 * z, rtol=1e-5)


def frozen(shape):
    out = np.zeros(shape, F32)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize("make, message", [
    (lambda: frozen((4, 2)), "out['z'] is read-only"),
    (lambda: np.zeros((2, 4), F32).T, "out['z'] is not dense and row-major, and is not copied: give np.empty(shape, float32) "
                                      "or its like"),
    (lambda: np.zeros((4, 2)), "out['z'] holds float64, but `z` is f32"),
    (lambda: np.zeros(8, F32), "out['z'] has the shape (8,), but `z` has 2 coordinates, ('batch', 'out')"),
    (lambda: np.zeros((4, 3), F32), "the memory for `z` has the extents [4, 3], but its value has [4, 2]"),
    (lambda: [0.0], "out['z'] is an object of type list: values are written to arrays")])
def test_wrong_out(layer, data, make, message):
    with says(message):
        layer.call(data, out={"z": make()})


def test_out_that_overlaps(data):
    p = einlang.compile("let x: [f32; i]; let y[i] = x[i] + 1.0; let z[i] = x[i] * 2.0;")
    room = np.ones(8, F32)
    for out in [{"y": room[:4]}, {"y": room[2:6]}]:
        with pytest.raises(InputError, match="the memory for `y` overlaps that of input `x`"):
            p.call({"x": room[:4]}, out=out)
    np.testing.assert_array_equal(room, 1)
    with pytest.raises(InputError, match="overlaps"):
        p.call({"x": np.ones(4, F32)}, out={"y": room[:4], "z": room[2:6]})
    with says("the program has no output `w`: its outputs are `y`, `z`"):
        p.call({"x": room[:4]}, out={"w": room[4:]})


# ---- records


NET = """
type Net = { w1: [f32; hidden, in], b1: [f32; hidden], w2: [f32; hidden] };
let net: Net;
let x: [f32; n, in];
let a[n, hidden] = tanh(sum[in](x[n, in] * net.w1[hidden, in]) + net.b1[hidden]);
let y[n] = sum[hidden](a[n, hidden] * net.w2[hidden]);
let loss = mean[n](y[n] ** 2.0);
let twice = { a: y, b: { c: loss } };
"""


@dataclasses.dataclass
class Net:
    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray


@pytest.fixture(scope="module")
def net():
    return einlang.compile(NET)


@pytest.fixture
def weights(rng):
    return {"w1": rng.normal(size=(5, 3)).astype(F32), "b1": rng.normal(size=5).astype(F32), "w2": rng.normal(size=5).astype(F32)}


def test_records(net, weights, rng):
    x = rng.normal(size=(4, 3)).astype(F32)
    y = np.tanh(x @ weights["w1"].T + weights["b1"]) @ weights["w2"]
    assert set(net.inputs) == {"net.w1", "net.b1", "net.w2", "x"}
    for given in [weights, Net(**weights), tuple(weights.values()), list(weights.values()),
                  type("Plain", (), weights)()]:
        np.testing.assert_allclose(net(net=given, x=x).y.numpy(), y, rtol=1e-4, atol=1e-5)
    r = net(net=weights, x=x)
    np.testing.assert_array_equal(r.twice.a.numpy(), r.y.numpy())
    assert float(r.twice.b.c) == float(r.loss) == float(r["twice"]["b"]["c"])
    assert net.call({"net.w1": weights["w1"], "net.b1": weights["b1"], "net.w2": weights["w2"], "x": x}).y.shape == (4,)
    assert net.copies == 0


def test_gradients_of_records(net, weights, rng):
    x = rng.normal(size=(4, 3)).astype(F32)
    r = net.grad("loss", wrt="net")(net=weights, x=x)
    a = np.tanh(x @ weights["w1"].T + weights["b1"])
    dy = 2 * (a @ weights["w2"]) / 4
    np.testing.assert_allclose(r.grads.net.w2.numpy(), a.T @ dy, rtol=1e-4, atol=1e-5)
    pre = dy[:, None] * weights["w2"] * (1 - a**2)
    np.testing.assert_allclose(r.grads.net.b1.numpy(), pre.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(r.grads.net.w1.numpy(), pre.T @ x, rtol=1e-4, atol=1e-5)
    assert list(r.grads.net) == ["w1", "b1", "w2"]
    # The gradient is such a nest itself.
    step = net.jvp("loss", wrt="net")(net=weights, x=x, net_dot=r.grads.net)
    assert float(step.loss_dot) == pytest.approx(sum(float(np.sum(g.numpy() ** 2)) for g in r.grads.net.values()), rel=1e-4)
    pulled = net.vjp("y", wrt="net")(net=weights, x=x, y_bar=dy.astype(F32))
    np.testing.assert_allclose(pulled.net_bar.w1.numpy(), pre.T @ x, rtol=1e-4, atol=1e-5)


def test_wrong_records(net, weights):
    x = np.ones((4, 3), F32)
    with says("`net` has no part `w3`: its parts are `w1`, `b1`, `w2`"):
        net(net={**weights, "w3": 1}, x=x)
    with says("input `net.b1` ([f32; hidden]) is missing: the inputs are `x`, `net.w1`, `net.b1`, `net.w2`"):
        net(net={"w1": weights["w1"], "w2": weights["w2"]}, x=x)
    with says("`net` is a record of 3 parts (`w1`, `b1`, `w2`), but the tuple given has 2"):
        net(net=(1, 2), x=x)
    with says("`net` is a record with the parts `w1`, `b1`, `w2`: give a mapping, such as {'w1': …, 'b1': …, 'w2': …}, not an "
              "object of type int"):
        net(net=3, x=x)
    with says("input `net.b1` holds f32, but the array given holds float64: pass `net.b1.astype(np.float32)`"):
        net(net={**weights, "b1": np.ones(5)}, x=x)
