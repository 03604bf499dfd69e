"""Section 5 of the page: what comes out."""

import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest
import xarray

import einlang

F32 = np.float32


@pytest.fixture(scope="module")
def p():
    return einlang.compile("let x: [f32; i, j]; let y[i, j] = 2.0 * x[i, j]; let s = sum[i, j](y[i, j]); "
                           "let n = 3 as i32; let b = s > 0.0;")


@pytest.fixture
def r(p):
    return p(x=np.arange(6, dtype=F32).reshape(2, 3))


def test_attributes(r):
    y = r.y
    assert (y.dims, y.coords, y.shape, y.ndim, y.size, y.dtype) == (("i", "j"), ("i", "j"), (2, 3), 2, 6, np.dtype("float32"))
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(6).reshape(2, 3))
    assert y[1, 2] == 10 and [row.tolist() for row in y] == [[0, 2, 4], [6, 8, 10]] and len(y) == 2


def test_the_same_memory(r):
    y = r.y
    a, b = np.asarray(y), np.from_dlpack(y)
    assert a.ctypes.data == b.ctypes.data == y.numpy().ctypes.data == np.asarray(r["y"]).ctypes.data
    a[0, 0] = 7
    assert b[0, 0] == 7 == memoryview(y)[0, 0]
    assert np.array(y, copy=True).ctypes.data != a.ctypes.data
    assert np.asarray(y, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.array(y, dtype=np.float64, copy=False)


def test_views_keep_the_memory(p):
    a = np.asarray(p(x=np.ones((300, 300), F32)).y)
    d = np.from_dlpack(p(x=np.ones((300, 300), F32)).y)
    for _ in range(20):
        gc.collect()
        p(x=np.zeros((300, 300), F32))
    assert (a == 2).all() and (d == 2).all()


def test_memory_is_given_back(p):
    y = p(x=np.ones((2, 2), F32)).y
    seen = weakref.ref(y)
    view = np.asarray(y)
    del y
    gc.collect()
    assert seen() is not None
    del view
    gc.collect()
    assert seen() is None


def test_scalars(r):
    assert float(r.s) == 30 and int(r.n) == 3 and bool(r.b) is True
    assert r.s.item() == 30 and type(r.s.item()) is float and type(r.n.item()) is int
    assert f"{r.s:.2f}" == "30.00" and f"{r.s}" == "30.0" and str(r.n) == "3"
    assert list(range(r.n)) == [0, 1, 2]
    assert r.s.shape == () and r.s.dims == ()
    with pytest.raises(TypeError, match="only an array of one number can become a float; this one has the shape \\(2, 3\\)"):
        float(r.y)
    with pytest.raises(TypeError, match="a format is for one number"):
        f"{r.y:.2f}"
    with pytest.raises(TypeError):
        len(r.s)


def test_text(r):
    assert repr(r.y) == "[i: 2, j: 3]\n[[0.0, 2.0, 4.0],\n [6.0, 8.0, 10.0]]"
    assert "<th>i \\ j</th>" in r.y._repr_html_() and "<td>10</td>" in r.y._repr_html_()
    assert repr(r).splitlines()[-3:] == ["s = 30.0", "n = 3", "b = true"]


def test_html_of_large_arrays(p):
    page = p(x=np.zeros((21, 2), F32)).y._repr_html_()
    assert page.startswith("<pre>") and "<table>" in p(x=np.zeros((20, 20), F32)).y._repr_html_()


def test_no_arithmetic(r):
    for wrong in [lambda: r.y + r.y, lambda: r.y * 2, lambda: 2 * r.y, lambda: np.ones((2, 3)) + r.y, lambda: -r.y,
                  lambda: r.y @ r.y, lambda: r.s < 3, lambda: r.s == 30.0]:
        with pytest.raises(TypeError, match="has no arithmetic"):
            wrong()
    np.testing.assert_array_equal(np.sqrt(r.y), np.sqrt(np.asarray(r.y)))


def test_rename(r):
    y = r.y.rename(i="row")
    assert y.dims == ("row", "j") and y.numpy().ctypes.data == r.y.numpy().ctypes.data
    assert r.y.rename({"j": "k"}).dims == ("i", "k")
    with pytest.raises(ValueError, match="the array has no coordinate `q`"):
        r.y.rename(q="z")


def test_result_is_a_mapping(r):
    assert list(r) == r.keys() == ["y", "s", "n", "b"] and len(r) == 4 and "y" in r and "z" not in r
    assert dict(r.items())["n"].item() == 3 and r.get("zz") is None and r.get("s").item() == 30
    assert [v.size for v in r.values()] == [6, 1, 1, 1]
    assert "s" in dir(r)
    with pytest.raises(AttributeError, match="the result has no value `yy`: it has `y`, `s`, `n`, `b`"):
        r.yy
    with pytest.raises(KeyError, match="the result has no value `yy`"):
        r["yy"]
    from collections.abc import Mapping

    assert isinstance(r, Mapping)


def test_values_named_like_methods():
    r = einlang.compile("let x: f32; let keys = x + 1.0; let items = x + 2.0;")(x=1.0)
    assert float(r.keys) == 2 and float(r["items"]) == 3


def test_coordinates_without_names():
    r = einlang.compile("let a = [[1.0, 2.0], [3.0, 4.0]]; let x: f32; let y = x;")(x=1.0)
    assert r.a.dims == (None, None)
    assert r.a.to_xarray().dims == ("dim_0", "dim_1")


def test_bfloat16():
    p = einlang.compile("let x: [bf16; i]; let y[i] = x[i] + x[i];")
    x = np.array([1, 2.5], ml_dtypes.bfloat16)
    y = p(x=x).y
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.numpy(), x + x)
    np.testing.assert_array_equal(np.asarray(y), x + x)
    with pytest.raises(BufferError, match="no bfloat16"):
        memoryview(y)
    assert repr(y) == "[i: 2] [2.0, 5.0]"


def test_to_xarray(r):
    y = r.y.to_xarray()
    assert isinstance(y, xarray.DataArray) and y.dims == ("i", "j") and y.values.ctypes.data == r.y.numpy().ctypes.data
    everything = r.to_xarray()
    assert isinstance(everything, xarray.Dataset) and set(everything) == {"y", "s", "n", "b"}
    assert float(everything["s"]) == 30


def test_pickles_out_of_band(r):
    buffers = []
    data = pickle.dumps(r.y, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    again = pickle.loads(data, buffers=buffers)
    assert again.dims == ("i", "j")
    np.testing.assert_array_equal(again.numpy(), r.y.numpy())
    bf16 = einlang.compile("let x: [bf16; i]; let y[i] = x[i];")(x=[1.5]).y
    assert repr(pickle.loads(pickle.dumps(bf16))) == "[i: 1] [1.5]"


def test_dlpack_protocol(r):
    assert r.y.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(r.y), r.y.numpy())
    with pytest.raises(BufferError, match="memory of the CPU"):
        r.y.__dlpack__(dl_device=(2, 0))
    capsule = r.y.__dlpack__()
    assert "dltensor" in repr(capsule)
    del capsule  # never taken: freed without a fault
    gc.collect()
