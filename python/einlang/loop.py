"""`p.loop(state={"W": "W_next"})`: a step that Python calls again and again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._native import Array, Result
from .array import BF16, EIN_NAMES
from .errors import InputError
from .inputs import flatten, prepare_some, quoted

if TYPE_CHECKING:
    from .program import Program, Value


def _pairs(program: Program, state: Mapping[str, str]) -> dict[str, str]:
    """Inputs and the outputs that follow them; a pair of records part by part. Types, names and extents must agree."""
    pairs: dict[str, str] = {}
    for before, after in state.items():
        parts = [path for path in program.inputs if path == before or path.startswith(before + ".")]
        if not parts:
            raise InputError(f"the program has no input `{before}`: its inputs are {quoted(list(program.inputs))}")
        for path in parts:
            follows = after + path[len(before):]
            if follows not in program.outputs:
                raise InputError(f"the program has no value `{follows}` to follow the input `{path}`: its values are "
                                 f"{quoted(list(program.outputs))}")
            _compare(program.inputs[path], program.outputs[follows])
            pairs[path] = follows
    return pairs


def _compare(before: Value, after: Value) -> None:
    both = f"`{before.name}` is {before.type_text} with the coordinates {before.dims}, but `{after.name}`, which follows it, "
    if before.ein_dtype != after.ein_dtype or len(before.dims) != len(after.dims):
        raise InputError(f"{both}is {after.type_text}")
    if any(a is not None and b is not None and a != b for a, b in zip(before.dims, after.dims)):
        raise InputError(f"{both}has {after.dims}")
    for a, b in zip(before.shape, after.shape):
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise InputError(f"{both}has the extents {after.shape}")


class Loop(_native.Loop):
    """A step with state: `out = loop(x=x)` computes the next state from the last one and gives the other values."""

    def __init__(self, program: Program, state: Mapping[str, str]) -> None:
        self._program = program
        self._pairs = _pairs(program, state)
        inputs, outputs = list(program.inputs), list(program.outputs)
        super().__init__(program, [(inputs.index(a), outputs.index(b)) for a, b in self._pairs.items()])

    def state(self, **values: Any) -> dict[str, Array]:
        """Sets the values of the state that are named, and gives copies of all of them, by path."""
        order = list(self._pairs)
        if values:
            given = flatten(values, order, "state")
            plain, _ = prepare_some(self._program, given, None, False)
            for path, array in plain.items():
                self._set(order.index(path), array)
        found = {path: self._get(k) for k, path in enumerate(order)}
        return {path: array for path, array in found.items() if array is not None}

    def _call_slowly(self, given: dict[str, Any]) -> Result:
        unset = [path for k, path in enumerate(self._pairs) if self._get(k) is None]
        if unset:
            raise InputError(f"the state {quoted(unset)} has no value yet: call loop.state({unset[0].split('.')[0]}=…) first")
        wanted = [path for path in self._program.inputs if path not in self._pairs]
        leaves = flatten(given, wanted, "input")
        missing = [path for path in wanted if path not in leaves]
        if missing:
            raise InputError(f"the inputs {quoted(missing)} are missing: a step takes {quoted(wanted)}")
        plain, labels = prepare_some(self._program, leaves, None, False)
        return self._step(plain, labels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state as named arrays, to an .npz file. `load` goes on from there, bit for bit."""
        arrays = {name: array.numpy() for name, array in self.state().items()}
        # NumPy's files have no bfloat16: its bytes are kept.
        whole = {name: value.view(np.uint16) if value.dtype.name == "bfloat16" else value for name, value in arrays.items()}
        with open(path, "wb") as file:
            np.savez(file, **whole)  # type: ignore[arg-type]

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads what `save` wrote."""
        order = list(self._pairs)
        with np.load(path) as file:
            if set(file.files) != set(order):
                raise InputError(f"{os.fspath(path)} holds {quoted(sorted(file.files))}, but the state is {quoted(order)}")
            arrays = {name: np.ascontiguousarray(file[name]).reshape(file[name].shape) for name in order}
        given: dict[str, Any] = {}
        for name, value in arrays.items():
            kept = value.dtype == np.uint16 and self._program.inputs[name].ein_dtype == EIN_NAMES[BF16]
            given[name] = _native.wrap(value, BF16) if kept else value
        plain, _ = prepare_some(self._program, given, None, False)
        for name, array in plain.items():
            self._set(order.index(name), array)
