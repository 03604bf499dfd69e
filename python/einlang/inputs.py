"""Arguments that the extension module does not take as they are: converted here, or refused with a message that says
what to do. One call comes here once, with all its arguments."""

from __future__ import annotations

import dataclasses
import difflib
import math
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._native import Array
from .array import BF16, EIN_NAMES, NAMES
from .errors import CopyError, DimsError, InputError, LabelError

if TYPE_CHECKING:
    from .program import Program, Value

_RANGES = {"i8": (-(2**7), 2**7 - 1), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1),
           "i64": (-(2**63), 2**63 - 1), "u8": (0, 255)}
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": sys.float_info.max}
_TYPES = "bool, int8, int16, int32, int64, uint8, float16, bfloat16, float32 and float64"


def nearest(name: str, known: list[str]) -> str:
    found = [other for other in known if other.lower() == name.lower()] or difflib.get_close_matches(name, known, 1)
    return f"; did you mean `{found[0]}`?" if found else ""


def quoted(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


# ---- records


def _is_record(given: Any) -> bool:
    return isinstance(given, Mapping) or hasattr(given, "keys") and hasattr(given, "__getitem__")


def _fields(given: Any, parts: list[str], prefix: str) -> Iterator[tuple[str, Any]]:
    """The parts of a nested value: a mapping, a dataclass, a named tuple, a registered pytree, an object with attributes; a list
    or a tuple has its parts in the order of the record's."""
    if _is_record(given):
        for key in given.keys():
            yield str(key), given[key]
    elif dataclasses.is_dataclass(given):
        for field in dataclasses.fields(given):
            yield field.name, getattr(given, field.name)
    elif hasattr(given, "_fields"):
        yield from zip(given._fields, given)
    elif isinstance(given, (list, tuple)):
        if len(given) != len(parts):
            raise InputError(f"`{prefix}` is a record of {len(parts)} parts ({quoted(parts)}), "
                             f"but the {type(given).__name__} given has {len(given)}")
        yield from zip(parts, given)
    elif all(hasattr(given, part) for part in parts):
        for part in parts:
            yield part, getattr(given, part)
    elif (flat := _registered(given)) is not None:
        yield from flat
    else:
        raise InputError(f"`{prefix}` is a record with the parts {quoted(parts)}: give a mapping, such as "
                         f"{{{', '.join(f'{p!r}: …' for p in parts)}}}, not {_described(given)}")


def _registered(given: Any) -> list[tuple[str, Any]] | None:
    """The children of a pytree that is registered with JAX, by their keys."""
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    leaves, _ = jax.tree_util.tree_flatten_with_path(given, is_leaf=lambda x: x is not given)
    if len(leaves) == 1 and leaves[0][1] is given:
        return None
    return [(str(getattr(path[0], "name", getattr(path[0], "key", getattr(path[0], "idx", "")))), leaf)
            for path, leaf in leaves]


def flatten(given: Any, paths: list[str], what: str) -> dict[str, Any]:
    """Arguments by the paths of the program's inputs (`net.w1`). `what`: input or output."""
    out: dict[str, Any] = {}

    def walk(items: Iterator[tuple[str, Any]], prefix: str) -> None:
        for name, value in items:
            path = prefix + name
            if path in paths:
                out[path] = value
                continue
            below = [p[len(path) + 1:] for p in paths if p.startswith(path + ".")]
            if not below:
                known = sorted({p.split(".")[0] for p in paths}, key=paths_order(paths))
                inside = [p[len(prefix):] for p in paths if p.startswith(prefix)]
                whole = f"the program has no {what} `{path}`" if not prefix else f"`{prefix[:-1]}` has no part `{name}`"
                listed = f"its {what}s are {quoted(known)}" if not prefix else f"its parts are {quoted(inside)}"
                raise InputError(f"{whole}: {listed}{nearest(name, inside if prefix else known)}")
            parts = list(dict.fromkeys(p.split(".")[0] for p in below))
            walk(_fields(value, parts, path), path + ".")

    if not _is_record(given):
        raise InputError(f"{what}s are given as a mapping from names to arrays, not as {_described(given)}")
    walk(((str(key), given[key]) for key in given.keys()), "")
    return out


def paths_order(paths: list[str]) -> Any:
    first = [p.split(".")[0] for p in paths]
    return first.index


# ---- one argument


def _described(given: Any) -> str:
    kind = type(given)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return "None" if given is None else f"an object of type {name}"


def _framework(given: Any) -> str:
    return type(given).__module__.split(".")[0]


def _is_xarray(given: Any) -> bool:
    """A DataArray, or a Variable, which has no labels."""
    return hasattr(given, "dims") and hasattr(given, "data") and hasattr(given, "sizes") and not isinstance(given, Array)


def _labels_of(given: Any) -> dict[str, Any]:
    return {str(dim): given.coords[dim].values for dim in given.dims if dim in getattr(given, "indexes", ())}


def _convert_advice(given: Any, dtype: str) -> str:
    framework = _framework(given)
    if framework == "torch":
        return f"`{{name}}.to(torch.{dtype})`"
    if framework == "jax" or framework == "jaxlib":
        return f"`{{name}}.astype(jnp.{dtype})`"
    kind = dtype if dtype == "bool" else f"{'ml_dtypes' if dtype == 'bfloat16' else 'np'}.{dtype}"
    whole = "{name}" if hasattr(given, "astype") else "np.asarray({name})"
    return f"`{whole}.astype({kind})`"


def _memory(given: Any, name: str) -> Any:
    """An Array or a NumPy array over the memory of `given`; None when it is a number or a list of numbers."""
    if isinstance(given, Array):
        return given
    if _is_tensor(given):
        _refuse_tensor(given, name)
        given = given.resolve_neg()  # PyTorch changes signs without touching the memory
    elif getattr(given, "requires_grad", False) is True:
        raise _loses(name, "requires a gradient", "einlang.torch.function, which differentiates")
    elif _framework(given) == "cupy":
        raise InputError(f"input `{name}` is on the device {given.device}, but programs run on the CPU: pass `{name}.get()`")
    if isinstance(given, np.ma.MaskedArray):
        raise InputError(f"input `{name}` is a masked array, but programs have no masks: pass `{name}.filled(0)` and, "
                         f"if the program needs it, the mask as an input of its own")
    if isinstance(given, np.generic):
        given = np.asarray(given)
    if isinstance(given, np.ndarray):
        return _from_numpy(given, name)
    if isinstance(given, (bool, int, float, complex, str, list, tuple)) or given is None:
        return None
    if _is_tracer(given):
        raise InputError(f"input `{name}` is being traced by JAX (under jit, grad, vmap or the like), so it has no values yet: "
                         f"use einlang.jax.function, which JAX can trace")
    if getattr(given, "is_deleted", bool)():
        raise InputError(f"input `{name}` is an array that JAX has deleted, or has given away (donate_argnums)")
    try:
        view = memoryview(given)
    except (TypeError, BufferError):
        pass  # JAX says the latter for bfloat16
    else:
        return _from_numpy(np.asarray(view), name)
    if hasattr(given, "__dlpack__"):
        return _from_dlpack(given, name)
    if hasattr(given, "to_numpy"):
        raise InputError(f"input `{name}` is {_described(given)}: pass `{name}.to_numpy()`")
    raise InputError(f"input `{name}` is {_described(given)}, which offers neither the buffer protocol nor DLPack: "
                     f"pass a NumPy array")


def _is_tracer(given: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(given, jax.core.Tracer)


def _is_tensor(given: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.Tensor)


def _loses(name: str, what: str, instead: str) -> InputError:
    return InputError(f"input `{name}` is a tensor that {what}, which a call would lose: pass `{name}.detach()`, or use {instead}")


def _refuse_tensor(given: Any, name: str) -> None:
    """An exception for a tensor of PyTorch with which something would be lost, or that has no dense memory."""
    torch: Any = sys.modules["torch"]
    if torch._C._functorch.is_functorch_wrapped_tensor(given):
        raise InputError(f"input `{name}` is a tensor that torch.func transforms (under grad, vmap or the like): use "
                         f"einlang.torch.function, which PyTorch can differentiate and batch")
    forward = torch.autograd.forward_ad
    has_tangent = forward._current_level >= 0 and forward.unpack_dual(given).tangent is not None
    if has_tangent:
        raise _loses(name, "carries a tangent", "p.jvp")
    if given.requires_grad:
        raise _loses(name, "requires a gradient", "einlang.torch.function, which differentiates")
    if given.device.type == "meta" or isinstance(given, torch._subclasses.FakeTensor):
        raise InputError(f"input `{name}` is a tensor with a shape but no values: use einlang.torch.function, which takes such tensors")
    if given.device.type != "cpu":
        raise InputError(f"input `{name}` is on the device {given.device}, but programs run on the CPU: pass `{name}.cpu()`")
    if given.is_nested:
        raise InputError(f"input `{name}` is a nested tensor: pass `{name}.to_padded_tensor(0.0)`")
    if given.layout != torch.strided:
        raise InputError(f"input `{name}` is a tensor of the layout {given.layout}: pass `{name}.to_dense()`")
    if given.is_quantized:
        raise InputError(f"input `{name}` is a quantized tensor: pass `{name}.dequantize()`")


def _from_numpy(given: Any, name: str) -> Any:
    dtype = given.dtype
    if dtype.name == "bfloat16":
        return _native.wrap(given.view(np.uint16), BF16)
    if not dtype.isnative:
        raise InputError(f"input `{name}` is a NumPy array in another byte order ({dtype.str}): pass "
                         f"`{name}.astype({name}.dtype.newbyteorder(\"=\"))`")
    if dtype.name not in NAMES:
        raise InputError(f"input `{name}` is a NumPy array of {dtype.name}, which the language does not have: its types "
                         f"are {_TYPES}")
    return np.asarray(given)  # a subclass by its memory


def _from_dlpack(given: Any, name: str) -> Any:
    device = given.__dlpack_device__()
    if int(device[0]) != 1:
        raise InputError(f"input `{name}` is on another device than the CPU, but programs run on the CPU: copy it there "
                         f"first, with `{name}.cpu()` or its like")
    try:
        capsule = given.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = given.__dlpack__()
    try:
        return _native.from_capsule(capsule)
    except ValueError as error:
        if str(error) != "dtype":
            raise InputError(f"input `{name}` ({_described(given)}) cannot be read through DLPack: {error}") from None
        kind = getattr(given, "dtype", "a type")
        raise InputError(f"input `{name}` holds {kind}, which the language does not have: its types are {_TYPES}") from None


def _number(given: Any, dtype: str, name: str) -> Any:
    """A Python number as a literal of the program would be taken."""
    if isinstance(given, complex) and not isinstance(given, float):
        raise InputError(f"input `{name}` got the complex number {given}, but the language has no complex numbers: its types are {_TYPES}")
    if isinstance(given, bool) != (dtype == "bool"):
        raise InputError(f"input `{name}` holds {dtype}, but was given {given!r}, a {type(given).__name__}")
    if dtype in _RANGES:
        if not isinstance(given, int):
            raise InputError(f"input `{name}` holds {dtype}, but was given {given!r}, which is not an integer")
        low, high = _RANGES[dtype]
        if not low <= given <= high:
            raise InputError(f"input `{name}` holds {dtype}, whose range is {low} to {high}, but was given {given}")
    if dtype in _LARGEST:
        value = float(given) if abs(given) <= 1e308 or isinstance(given, float) else math.inf * (1 if given > 0 else -1)
        if abs(value) > _LARGEST[dtype] and not (isinstance(given, float) and math.isinf(given)):
            raise InputError(f"input `{name}` holds {dtype}, whose largest number is {_LARGEST[dtype]:.6g}, "
                             f"but was given {given!r}")
        return value
    return given


def _literal(given: Any, wanted: Value, name: str) -> Any:
    """Numbers and nested lists of numbers."""
    dtype = wanted.ein_dtype
    if isinstance(given, str) or given is None:
        raise InputError(f"input `{name}` holds {dtype}, but was given {given!r}")

    def shape_of(item: Any) -> tuple[int, ...]:
        if not isinstance(item, (list, tuple)):
            return ()
        shapes = [shape_of(part) for part in item]
        for k, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise InputError(f"the list for input `{name}` is ragged: element 0 has the shape {shapes[0]}, "
                                 f"element {k} the shape {shape}")
        return (len(item), *(shapes[0] if shapes else ()))

    def numbers(item: Any) -> Iterator[Any]:
        if isinstance(item, (list, tuple)):
            for part in item:
                yield from numbers(part)
        elif isinstance(item, (bool, int, float, complex)) and not isinstance(item, np.generic):
            yield _number(item, dtype, name)
        else:
            raise InputError(f"the list for input `{name}` holds {_described(item)}; lists hold Python's numbers, "
                             f"other arrays are passed as they are or through np.stack")

    shape = shape_of(given)
    if math.prod(shape) == 0 and len(shape) < len(wanted.dims):
        shape = shape + (0,) * (len(wanted.dims) - len(shape))
    flat = list(numbers(given))
    if dtype == "bf16":
        import ml_dtypes

        return _native.wrap(np.array(flat, dtype=ml_dtypes.bfloat16).reshape(shape).view(np.uint16), BF16)
    return np.array(flat, dtype=wanted.dtype).reshape(shape)


def _is_negated(given: Any) -> bool:
    return _is_tensor(given) and bool(given.is_neg())


def _dtype_number(array: Any) -> int:
    return array._dtype if isinstance(array, Array) else NAMES.index(array.dtype.name)


def _check_dims(name: str, wanted: Value, dims: tuple[Any, ...], align: bool) -> tuple[int, ...] | None:
    """None, or the order in which the dims of the argument are those of the program."""
    if all(own is None or other is None or own == other for own, other in zip(wanted.dims, dims)):
        return None
    both = f"input `{name}` has the coordinates {wanted.dims}, but the array given has the dims {dims}"
    if set(wanted.dims) == set(dims) and len(set(dims)) == len(dims):
        if align:
            return tuple(dims.index(dim) for dim in wanted.dims)
        order = ", ".join(repr(dim) for dim in wanted.dims)
        raise DimsError(f"{both}: transpose it, `{name}.transpose({order})`, or let `p.call(…, align=True)` do so")
    missing = [dim for dim in wanted.dims if dim is not None and dim not in dims]
    spare = [dim for dim in dims if dim is not None and dim not in wanted.dims]
    if not missing or not spare:
        raise DimsError(f"{both}: each coordinate of the program is one dim of the array")
    # The one at the same place is the likeliest; otherwise the one whose name is nearest.
    there = dims[wanted.dims.index(missing[0])]
    close = there if there in spare else difflib.get_close_matches(missing[0], spare, 1, 0.0)[0]
    new = f'{close}="{missing[0]}"' if close.isidentifier() else f'{{{close!r}: "{missing[0]}"}}'
    raise DimsError(f"{both}: none of them is called `{missing[0]}`. If `{close}` is meant, rename it: "
                    f"`{name}.rename({new})`")


def _plain(program: Program, name: str, wanted: Value, given: Any, copy: bool | None, align: bool) -> tuple[Any, Any]:
    """The argument as something that the extension module takes, and its labels."""
    dims, labels = None, None
    original = given
    if isinstance(given, Array):
        dims, labels = given.dims, given._labels
    elif _is_xarray(given):
        dims, labels = tuple(str(dim) for dim in given.dims), _labels_of(given)
        given = given.data
    if _is_negated(given):
        if copy is False:
            raise CopyError(f"input `{name}` would have to be copied, because PyTorch changes its sign on reading "
                            f"(`{name}.is_neg()`), and copy=False forbids it")
        program._count_copy()
    array = _memory(given, name)
    if array is None:
        array = _literal(given, wanted, name)
    held = _dtype_number(array)
    if EIN_NAMES[held] != wanted.ein_dtype:
        advice = _convert_advice(original, NAMES[EIN_NAMES.index(wanted.ein_dtype)]).format(name=name)
        raise InputError(f"input `{name}` holds {wanted.ein_dtype}, but the array given holds {NAMES[held]}: pass {advice}")
    if array.ndim != len(wanted.dims):
        raise InputError(f"input `{name}` has {len(wanted.dims)} coordinates, {wanted.dims}, but the array given has the "
                         f"shape {tuple(array.shape)}")
    order = None if dims is None else _check_dims(name, wanted, dims, align)
    if order is None and _is_plain(array):
        return array if not isinstance(array, Array) else array._renamed(None, None), labels
    if copy is False:
        why = "its dims are in another order" if order is not None else "it is not dense and row-major"
        raise CopyError(f"input `{name}` would have to be copied, because {why}, and copy=False forbids it")
    program._count_copy()
    return _copied(array, order), labels


def _is_plain(array: Any) -> bool:
    if isinstance(array, Array):
        return array._dense and array._address % _native.dtype_size(array._dtype) == 0
    return bool(array.flags.c_contiguous and array.flags.aligned) and type(array) is np.ndarray


def _copied(array: Any, order: tuple[int, ...] | None) -> Any:
    bf16 = isinstance(array, Array) and array._dtype == BF16
    values = np.asarray(_native.retyped(array, NAMES.index("int16")) if bf16 else array)
    values = np.array(values if order is None else values.transpose(order), order="C", copy=True, subok=False)
    return _native.wrap(values, BF16) if bf16 else values


# ---- all arguments


def _join_labels(all_labels: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Labels by coordinate. Inputs that share a coordinate must have the same ones: nothing is joined."""
    joined: dict[str, tuple[str, Any]] = {}
    for name, labels in all_labels.items():
        for dim, values in labels.items():
            if dim not in joined:
                joined[dim] = (name, values)
                continue
            first, others = joined[dim]
            if len(values) == len(others) and np.array_equal(values, others):
                continue
            differ = [k for k in range(min(len(values), len(others))) if values[k] != others[k]]
            where = (f"at position {differ[0]} it is {others[differ[0]]} in `{first}` and {values[differ[0]]} in `{name}`"
                     if differ else f"`{first}` has {len(others)} labels and `{name}` has {len(values)}")
            raise LabelError(f"the labels along `{dim}` differ: {where}. Programs match cells by position, not by label: select "
                             f"the same labels first, for example with xarray.align({first}, {name}, join=\"inner\")")
    return {dim: values for dim, (_, values) in joined.items()}


def prepare(program: Program, given: Any, copy: bool | None, align: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """All inputs of a call, converted, and the labels of the coordinates."""
    wanted = program.inputs
    leaves = flatten(given, list(wanted), "input")
    missing = [path for path in wanted if path not in leaves and wanted[path].needed]
    if missing:
        listed = ", ".join(f"`{path}` ({wanted[path].type_text})" for path in missing)
        many = len(missing) > 1
        raise InputError(f"{'inputs' if many else 'input'} {listed} {'are' if many else 'is'} missing: the inputs are "
                         f"{quoted(list(wanted))}")
    return prepare_some(program, leaves, copy, align)


def prepare_some(program: Program, leaves: dict[str, Any], copy: bool | None,
                 align: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """These inputs, by path, converted, and the labels of the coordinates."""
    plain, labels = {}, {}
    for path, value in leaves.items():
        plain[path], own = _plain(program, path, program.inputs[path], value, copy, align)
        if own:
            labels[path] = own
    return plain, _join_labels(labels) or None


def prepare_out(program: Program, out: Any) -> dict[str, Any] | None:
    """Memory for outputs, checked as far as it can be before the extents are known."""
    if out is None:
        return None
    wanted = program.outputs
    plain = {}
    for path, given in flatten(out, list(wanted), "output").items():
        value = wanted[path]
        if isinstance(given, (int, float, list, tuple, np.generic)) or given is None:
            raise InputError(f"out[{path!r}] is {_described(given)}: values are written to arrays")
        if _is_xarray(given):
            _check_dims(path, value, tuple(str(dim) for dim in given.dims), False)
            given = given.data
        if _is_negated(given):
            raise InputError(f"out[{path!r}] is a tensor whose sign PyTorch changes on reading (is_neg): give a new one")
        array = _memory(given, path)
        held = _dtype_number(array)
        if EIN_NAMES[held] != value.ein_dtype:
            raise InputError(f"out[{path!r}] holds {NAMES[held]}, but `{path}` is {value.ein_dtype}")
        if array.ndim != len(value.dims):
            raise InputError(f"out[{path!r}] has the shape {tuple(array.shape)}, but `{path}` has {len(value.dims)} "
                             f"coordinates, {value.dims}")
        writable = array._writable if isinstance(array, Array) else array.flags.writeable
        if not writable:
            raise InputError(f"out[{path!r}] is read-only")
        if not _is_plain(array):
            raise InputError(f"out[{path!r}] is not dense and row-major, and is not copied: give np.empty(shape, "
                             f"{NAMES[held]}) or its like")
        plain[path] = array if not isinstance(array, Array) else array._renamed(None, None)
    return plain
