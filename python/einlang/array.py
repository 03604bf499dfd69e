"""The methods of `Array` that are not in the extension module. They are attached to its class, because it makes the
arrays: objects of a subclass would have to be made a second time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._native import Array
from . import _native

# By the numbers of `ein_dtype`; bfloat16 is ml_dtypes'.
NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64")
EIN_NAMES = ("bool", "i8", "i16", "i32", "i64", "u8", "f16", "bf16", "f32", "f64")
BF16 = NAMES.index("bfloat16")


def numpy_dtype(number: int) -> np.dtype[Any]:
    if number != BF16:
        return np.dtype(NAMES[number])
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("NumPy has no bfloat16 of its own: install ml_dtypes") from None
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def _numpy(self: Array) -> Any:
    """The array as NumPy's, without a copy."""
    if self._dtype == BF16:
        # The same bytes under a type that the buffer protocol has.
        return np.asarray(_native.retyped(self, NAMES.index("int16"))).view(numpy_dtype(BF16))
    return np.asarray(memoryview(self))


def _array(self: Array, dtype: Any = None, copy: bool | None = None) -> Any:
    own = _numpy(self)
    wanted = own.dtype if dtype is None else np.dtype(dtype)
    if wanted != own.dtype:
        if copy is False:
            raise ValueError(f"an array of {own.dtype} cannot be given as {wanted} without a copy")
        return own.astype(wanted)
    return own.copy() if copy else own


def _scalar(self: Array, what: str) -> Any:
    if self.size != 1:
        raise TypeError(f"only an array of one number can become {what}; this one has the shape {self.shape}")
    return _numpy(self).reshape(())[()]


def _rename(self: Array, names: dict[str, str] | None = None, **more: str) -> Array:
    """The same memory with other names.

    >>> import einlang
    >>> einlang.compile("let x: [f32; i]; let y[i] = x[i];")(x=[1.0]).y.rename(i="row").dims
    ('row',)
    """
    new = {**(names or {}), **more}
    dims = self.dims or (None,) * self.ndim
    unknown = [name for name in new if name not in dims]
    if unknown:
        raise ValueError(f"the array has no coordinate `{unknown[0]}`: its dims are {dims}")
    labels = {new.get(dim, dim): value for dim, value in (self._labels or {}).items()}
    return self._renamed(tuple(new.get(dim, dim) if dim is not None else None for dim in dims), labels or None)


def _to_xarray(self: Array, name: str | None = None) -> Any:
    """The array as xarray's DataArray, with labels where the inputs had some."""
    import xarray

    dims = [dim if dim is not None else f"dim_{k}" for k, dim in enumerate(self.dims or (None,) * self.ndim)]
    return xarray.DataArray(_numpy(self), dims=dims, coords=dict(self._labels or {}), name=name)


def _advice(self: Array, *_: Any) -> Any:
    __tracebackhide__ = True  # notebooks show the caller's line alone
    raise TypeError("einlang.Array has no arithmetic and no comparisons: compute in the program, in NumPy with "
                    "np.asarray(a), or with float(a) if it is one number")


def _format(self: Array, spec: str) -> str:
    if self.ndim > 0:
        if spec:
            raise TypeError(f"a format is for one number; this array has the shape {self.shape}")
        return _text(self)
    return format(_scalar(self, "text").item(), spec) if spec else _text(self)


def _text(self: Array) -> str:
    return (self if self._dense else _dense(self))._text()


def _dense(self: Array) -> Array:
    return _rebuild(*_reduce_ex(self, 5)[1])


def _repr_html(self: Array) -> str:
    from .show import array_html

    return array_html(self)


def _reduce_ex(self: Array, protocol: Any) -> Any:
    """Pickled as a NumPy array, which protocol 5 moves out of band."""
    values = np.ascontiguousarray(_numpy(self)).reshape(self.shape)
    if self._dtype == BF16:
        values = values.view(np.uint16)
    return _rebuild, (values, self._dtype, self.dims, self._labels)


def _rebuild(values: Any, dtype: int, dims: Any, labels: Any) -> Array:
    return _native.wrap(values, dtype, dims, labels)


_ADVISED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_METHODS: dict[str, Any] = {
    "dtype": property(lambda self: numpy_dtype(self._dtype), doc="The element type, as NumPy's."),
    "numpy": _numpy,
    "item": lambda self: _scalar(self, "a number").item(),
    "rename": _rename,
    "to_xarray": _to_xarray,
    "__array__": _array,
    "__float__": lambda self: float(_scalar(self, "a float")),
    "__int__": lambda self: int(_scalar(self, "an int")),
    "__bool__": lambda self: bool(_scalar(self, "a bool")),
    "__index__": lambda self: _scalar(self, "an index").__index__(),
    "__round__": lambda self, digits=None: round(_scalar(self, "a number").item(), digits),
    "__format__": _format,
    "__repr__": _text,
    "__str__": _text,
    "__len__": lambda self: self.shape[0] if self.ndim else _scalar_len(self),
    "__getitem__": lambda self, key: _numpy(self)[key],
    "__iter__": lambda self: iter(_numpy(self)),
    "_repr_html_": _repr_html,
    "__reduce_ex__": _reduce_ex,
    "__array_priority__": 1000,  # NumPy's operators leave `array + Array` to the advice
    **{f"__{side}{name}__": _advice for name in _ADVISED for side in ("", "r")},
    **{f"__{name}__": _advice for name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne")},
}


def _scalar_len(self: Array) -> int:
    raise TypeError("a single number has no len()")


for _name, _method in _METHODS.items():
    setattr(Array, _name, _method)
