"""Programs as JAX functions: `f = einlang.jax.function(p)` works under `jit`, `vmap`, `grad` and `lax.scan`, and
differentiates in reverse mode to any order."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from .array import EIN_NAMES, NAMES
from .errors import InputError
from .inputs import _described, _framework, _number, quoted
from .operators import Callee, bundle, by_position, choose, making
from .program import _FLOATS, Program

try:
    _jax: Any = importlib.import_module("jax")
    _jnp: Any = importlib.import_module("jax.numpy")
    _derivatives: Any = importlib.import_module("jax.custom_derivatives")
except ImportError as _error:
    raise ImportError("einlang.jax needs JAX, which is not installed: pip install jax") from _error

_TARGET = "einlang_call"
_jax.ffi.register_ffi_target(_TARGET, _native.xla_target(), platform="cpu", api_version=1)
_operators: dict[int, _Operator] = {}


def _dtype(ein_dtype: str) -> Any:
    return _jnp.dtype(NAMES[EIN_NAMES.index(ein_dtype)])


def _is_wide(ein_dtype: str) -> bool:
    return ein_dtype in ("f64", "i64")


def _enable_x64(what: str) -> InputError:
    return InputError(f"{what}, and JAX has types of 64 bits only after jax.config.update(\"jax_enable_x64\", True), which is "
                      f"best called before arrays are made")


class _Operator:
    """A callee as a function of arrays that JAX can transform. `numbers` are the values of inputs that are extents, which
    are part of what is compiled; `arrays` are all others."""

    def __init__(self, callee: Callee) -> None:
        self.callee = callee
        self.arrays = [k for k in range(len(callee.inputs)) if k not in callee.numbers]
        _native.xla_add(callee.digest, callee.program, set(callee.numbers))
        differentiable = _derivatives.custom_vjp(self.compute, nondiff_argnums=(0,))
        differentiable.defvjp(self.forward, self.backward, symbolic_zeros=True)
        # Outside of a jit of the user this makes calls quick; inside of one it makes no difference.
        self.call = _jax.jit(differentiable, static_argnums=(0,))

    def compute(self, numbers: tuple[int, ...], *arrays: Any) -> tuple[Any, ...]:
        callee = self.callee
        shapes = {callee.inputs[k].name: array.shape for k, array in zip(self.arrays, arrays)}
        values = {callee.inputs[k].name: number for k, number in zip(callee.numbers, numbers)}
        found = callee.program.extents({**shapes, **{name: () for name in values}}, values)
        results = [_jax.ShapeDtypeStruct(found[v.name], _dtype(v.ein_dtype)) for v in callee.outputs]
        # What is not batched has the extent 1 there, and is not copied for each slice.
        call = _jax.ffi.ffi_call(_TARGET, results, vmap_method="expand_dims")
        made = call(*arrays, program=np.int64(callee.digest), numbers=np.array(numbers, np.int64))
        return tuple(made)

    def forward(self, numbers: tuple[int, ...], *primals: Any) -> Any:
        for k, primal in zip(self.arrays, primals):
            if primal.perturbed and k not in self.callee.wrt and self.callee.inputs[k].ein_dtype in _FLOATS:
                raise self.callee.refuse_gradient(k)
        arrays = tuple(primal.value for primal in primals)
        return self.call(numbers, *arrays), arrays

    def backward(self, numbers: tuple[int, ...], arrays: tuple[Any, ...], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients by all of `wrt`, whether they are asked for or not. Which ones are is known in `forward` alone, and
        cannot be handed on: JAX keeps one structure of what it saves for all uses of a function under jit."""
        of = tuple(k for k in self.callee.of() if not isinstance(cotangents[k], _derivatives.SymbolicZero))
        gradients: dict[int, Any] = {}
        if of and self.callee.wrt:
            product = _registered(self.callee.product(of, self.callee.wrt))
            made = product.call(numbers, *arrays, *(cotangents[k] for k in of))
            gradients = dict(zip(self.callee.wrt, made))
        return tuple(gradients.get(k) for k in self.arrays)


def _registered(callee: Callee) -> _Operator:
    with making:
        if callee.digest not in _operators:
            _operators[callee.digest] = _Operator(callee)
        return _operators[callee.digest]


class Function:
    """A program as a function of JAX's arrays: by position in the order of its inputs, or by name. One output is returned
    by itself, several as a named tuple."""

    def __init__(self, program: Program, wrt: str | Sequence[str] | None = None) -> None:
        self.program = program
        self._callee = choose(program, wrt)
        self._operator = _registered(self._callee)
        self._bundle = bundle(self._callee)
        self._dtypes = [_dtype(v.ein_dtype) for v in self._callee.inputs]
        self._ranks = [len(v.dims) for v in self._callee.inputs]
        self._wide = [v for v in self._callee.outputs if _is_wide(v.ein_dtype)]
        self._wide_inputs = any(_is_wide(self._callee.inputs[k].ein_dtype) for k in self._operator.arrays)
        self._plain = not self._callee.numbers and all("." not in v.name for v in self._callee.inputs)

    def __call__(self, *args: Any, **given: Any) -> Any:
        values: Sequence[Any] = args
        if given or not self._plain or len(args) != len(self._dtypes):
            values = by_position(self._callee, args, given)
        if (self._wide or self._wide_inputs) and not _jax.config.jax_enable_x64:
            raise self._narrow()
        arrays = []
        for k in self._operator.arrays:
            value = values[k]
            fits = getattr(value, "dtype", None) == self._dtypes[k] and len(value.shape) == self._ranks[k]
            arrays.append(value if fits else self._argument(k, value))
        numbers = tuple([self._number(k, values[k]) for k in self._callee.numbers])
        made = self._operator.call(numbers, *arrays)
        return made[0] if self._bundle is None else self._bundle(made)

    def _narrow(self) -> InputError:
        if self._wide:
            return _enable_x64(f"output `{self._wide[0].name}` holds {self._wide[0].ein_dtype}")
        wide = next(v for k, v in enumerate(self._callee.inputs) if k in self._operator.arrays and _is_wide(v.ein_dtype))
        return _enable_x64(f"input `{wide.name}` holds {wide.ein_dtype}")

    def _number(self, k: int, given: Any) -> int:
        wanted = self._callee.inputs[k]
        if isinstance(given, _jax.core.Tracer):
            raise InputError(f"input `{wanted.name}` is an extent of an output, so its value must be known while JAX traces: "
                             f"pass a Python int, through static_argnames of jax.jit if need be")
        number = given.item() if hasattr(given, "item") else given
        return int(_number(number, wanted.ein_dtype, wanted.name))

    def _argument(self, k: int, given: Any) -> Any:
        """A number as a literal of the program would be taken; an exception for anything else, which does not fit."""
        wanted, dtype = self._callee.inputs[k], self._dtypes[k]
        name = wanted.name
        if isinstance(given, (bool, int, float)) and not wanted.dims and _framework(given) == "builtins":
            return _jnp.asarray(_number(given, wanted.ein_dtype, name), dtype)
        array: Any = given
        if not hasattr(array, "dtype") or not hasattr(array, "shape"):
            raise InputError(f"input `{name}` is {_described(given)}: a function of einlang.jax takes arrays of JAX and NumPy")
        if array.dtype != dtype:
            raise InputError(f"input `{name}` holds {wanted.ein_dtype}, but the array given holds {array.dtype}: pass "
                             f"`{name}.astype(jnp.{dtype.name})`")
        raise InputError(f"input `{name}` has {len(wanted.dims)} coordinates, {wanted.dims}, but the array given has the shape "
                         f"{tuple(array.shape)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return function, (self.program, [self._callee.inputs[k].name for k in self._callee.wrt])

    def __repr__(self) -> str:
        by = quoted([self._callee.inputs[k].name for k in self._callee.wrt])
        return f"<einlang.jax.Function {self.program.name!r}, differentiable by {by}>"


def function(program: Program, wrt: str | Sequence[str] | None = None) -> Function:
    """The program as a differentiable function of arrays on the CPU.

    `wrt`: the inputs or records that gradients may be taken by, all floats by default. A gradient by another input is an
    error, never a zero."""
    return Function(program, wrt)
