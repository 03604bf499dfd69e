"""`p.fn.f(x, W)`: the public functions of a program. A call compiles a program with an input for each argument, once for
each combination of types, ranks and names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._native import Array
from .array import EIN_NAMES, NAMES
from .errors import CompileError, InputError
from .inputs import _is_record, _is_xarray, _memory, nearest, quoted

if TYPE_CHECKING:
    from .program import Program

_FUNCTIONS, _ITEMS, _AS_TEXT, _AS_JSON = 6, 7, 0, 1
_NAMED = re.compile(r"\[\s*(\w+)\s*;\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*\]")
_SCALAR = re.compile(rf"(?:{'|'.join(EIN_NAMES)})")
_MOST_PARTS = 16  # of a tuple that a function gives


class Functions:
    """The public functions of a program, as attributes."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._items: dict[str, Any] | None = None
        self._made: dict[str, Function] = {}

    def _known(self) -> dict[str, Any]:
        if self._items is None:
            found = json.loads(self._program._text(_FUNCTIONS, _AS_JSON))
            self._items = {item["name"]: item for module in found for item in module["items"] if "params" in item}
        return self._items

    def names(self) -> list[str]:
        return list(self._known())

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_") or name not in self._known():
            known = [] if name.startswith("_") else self.names()
            raise AttributeError(f"the program has no public function `{name}`: it has {quoted(known)}{nearest(name, known)}")
        if name not in self._made:
            self._made[name] = Function(self._program, self._known()[name])
        return self._made[name]

    def __dir__(self) -> list[str]:
        return self.names()


class Function:
    """One public function. `f(x, W)` calls it; `f.program(x, W)` is the program that does so, for arguments like these."""

    def __init__(self, program: Program, item: Mapping[str, Any]) -> None:
        self._program, self._item = program, item
        self._programs: dict[Any, tuple[Program, int]] = {}
        self.__name__: str = str(item["name"])
        self.__doc__ = str(item.get("signature") or self.__name__)

    def __repr__(self) -> str:
        return f"<einlang function {self.__doc__}>"

    def __call__(self, *args: Any, coords: str | Sequence[str] = (), **named: Any) -> Any:
        given = self._bind(args, named)
        program, parts = self._specialised(given, coords)
        result = program(**{self._input(name): value for name, value in given.items() if not _is_literal(value)})
        if parts == 1:
            return result[self._result()]
        return tuple(result[f"{self._result()}_{k}"] for k in range(parts))

    def program(self, *args: Any, coords: str | Sequence[str] = (), **named: Any) -> Program:
        """The program behind a call: inputs `f_x`, `f_W` for the parameters `x` and `W`, and the result `f_result`."""
        return self._specialised(self._bind(args, named), coords)[0]

    # ---- arguments

    def _input(self, param: str) -> str:
        return f"{self.__name__}_{param}"

    def _result(self) -> str:
        return f"{self.__name__}_result"

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        params = [p["name"] for p in self._item["params"]]
        if len(args) > len(params):
            raise TypeError(f"`{self.__doc__}` takes {len(params)} arguments, got {len(args)}")
        given = dict(zip(params, args))
        for name, value in named.items():
            if name not in params:
                raise TypeError(f"`{self.__doc__}` has no parameter `{name}`{nearest(name, params)}")
            if name in given:
                raise TypeError(f"`{self.__doc__}` got two values for `{name}`")
            given[name] = value
        missing = [p["name"] for p in self._item["params"] if p["name"] not in given and not p.get("default")]
        if missing:
            raise TypeError(f"`{self.__doc__}` needs {quoted(missing)}")
        return given

    def _type(self, value: Any, declared: str, name: str) -> str:
        """The type of the input for an argument, as the language writes it."""
        if _is_record(value) and not _is_xarray(value):
            return "{ " + ", ".join(f"{key}: {self._type(value[key], '', f'{name}.{key}')}" for key in value.keys()) + " }"
        dims: Sequence[str | None] | None = None
        if isinstance(value, Array):
            dims = value.dims
        elif _is_xarray(value):
            dims, value = [str(dim) for dim in value.dims], value.data
        if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
            if _SCALAR.fullmatch(declared):
                return declared
            return "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32"
        if isinstance(value, (list, tuple)):
            rank = 0
            inner: Any = value
            while isinstance(inner, (list, tuple)):
                rank, inner = rank + 1, inner[0] if inner else 0.0
            kind = "bool" if isinstance(inner, bool) else "f32"
            if (found := _NAMED.fullmatch(declared)) and len(found[2].split(",")) == rank:
                return declared
            return f"[{kind}; {', '.join('?' * rank)}]"
        memory = _memory(value, name)
        if memory is None:
            raise InputError(f"the parameter `{name}` of `{self.__name__}` takes an array or a number, not {value!r}")
        dtype = EIN_NAMES[memory._dtype if isinstance(memory, Array) else NAMES.index(memory.dtype.name)]
        if memory.ndim == 0:
            return dtype
        if dims is None or all(dim is None for dim in dims):
            # Without names of its own, the argument takes those of the signature.
            found = _NAMED.fullmatch(declared)
            own: list[str] = [part.strip() for part in found[2].split(",")] if found else []
            dims = list(own) if len(own) == memory.ndim else [None] * int(memory.ndim)
        return f"[{dtype}; {', '.join(dim if dim is not None else '?' for dim in dims)}]"

    # ---- programs

    def _specialised(self, given: dict[str, Any], coords: str | Sequence[str]) -> tuple[Program, int]:
        declared = {p["name"]: p.get("type") or "" for p in self._item["params"]}
        names = [coords] if isinstance(coords, str) else list(coords)
        types = {name: self._type(value, declared[name], name) for name, value in given.items() if not _is_literal(value)}
        literals = {name: _literal_text(value) for name, value in given.items() if _is_literal(value)}
        key = (tuple(types.items()), tuple(literals.items()), tuple(names))
        if key not in self._programs:
            self._programs[key] = self._compile(given, types, literals, names)
        return self._programs[key]

    def _compile(self, given: dict[str, Any], types: dict[str, str], literals: dict[str, str],
                 names: list[str]) -> tuple[Program, int]:
        from .program import Program

        positional = [p["name"] for p in self._item["params"]]
        texts = []
        for k, name in enumerate(given):
            text = literals.get(name, self._input(name))
            texts.append(text if positional[:k + 1] == list(given)[:k + 1] else f"{name} = {text}")
        call = f"{self.__name__}{'[' + ', '.join(names) + ']' if names else ''}({', '.join(texts)})"
        taken: set[str] = set()

        def attempt(source: str, pattern: str, outputs: list[str]) -> Program:
            inputs = "".join(f"let {self._input(name)}: {_without(kind, taken)};\n" for name, kind in types.items())
            options = {**self._program._options, "outputs": outputs}
            return Program(f"{source}\n{inputs}let {pattern} = {call};\n", options, (), self._program._modules())

        # Inputs of the program itself are no part of this one, unless the function reads them.
        source = self._program._text(_ITEMS, _AS_TEXT)
        try:
            try:
                return attempt(source, self._result(), [self._result()]), 1
            except CompileError as error:
                if error.code != "E0201":
                    raise
                # Then a name that both have would tie an argument to an input: such coordinates have no name here.
                source = str(self._program._source)
                taken = {dim for value in self._program.inputs.values() for dim in value.dims if dim is not None}
                return attempt(source, self._result(), [self._result()]), 1
        except CompileError as error:
            # A tuple has no value of its own: its parts get names.
            if "defines no value" not in str(error):
                raise
            for parts in range(2, _MOST_PARTS + 1):
                names_of = [f"{self._result()}_{k}" for k in range(parts)]
                try:
                    return attempt(source, f"({', '.join(names_of)})", names_of), parts
                except CompileError:
                    continue
            raise


def _without(kind: str, taken: set[str]) -> str:
    return re.sub(r"(?<=[;,] )\w+", lambda found: "?" if found[0] in taken else found[0], kind) if taken else kind


def _is_literal(value: Any) -> bool:
    """Tuples of integers, such as strides, are part of the program: its extents depend on them."""
    return isinstance(value, tuple) and bool(value) and all(type(part) is int for part in value)


def _literal_text(value: Any) -> str:
    return f"({', '.join(str(part) for part in value)})"
