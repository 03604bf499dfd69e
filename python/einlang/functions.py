"""`p.fn.f(x, W)`: the public functions of a program. A call compiles a program with an input for each argument, once for
each combination of types, ranks and names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
_FLOAT = re.compile(r"\b(?:f16|bf16|f32|f64)\b")
_OPEN = "?float"  # the type of a Python float before the other arguments are known
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

    def __repr__(self) -> str:
        return "\n".join(str(getattr(self, name).__doc__) for name in self.names()) or "no public functions"


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
        result = program(**self._inputs(given))
        if parts == 1:
            return result[self._result()]
        return tuple(result[f"{self._result()}_{k}"] for k in range(parts))

    def program(self, *args: Any, coords: str | Sequence[str] = (), **named: Any) -> Program:
        """The program behind a call: inputs `f_x`, `f_W` for the parameters `x` and `W`, and the result `f_result`."""
        return self._specialised(self._bind(args, named), coords)[0]

    def grad(self, wrt: str | Sequence[str] | None = None) -> Gradient:
        """The function together with its gradients by the parameters `wrt` (default: all that hold floats). It is called
        like the function, and returns `.value` and `.grads`, by parameter.

        >>> import einlang
        >>> p = einlang.compile("pub fn cubes(x: [f64; i], w: f64) -> f64 { w * sum[i](x[i] ** 3.0) }")
        >>> made = p.cubes.grad("x")([1.0, 2.0], w=0.5)
        >>> float(made.value), made.grads.x
        (4.5, [i: 2] [1.5, 6.0])
        """
        return Gradient(self, wrt)

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
            return "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else _OPEN
        if isinstance(value, (list, tuple)):
            rank = 0
            inner: Any = value
            while isinstance(inner, (list, tuple)):
                rank, inner = rank + 1, inner[0] if inner else 0.0
            kind = "bool" if isinstance(inner, bool) else _OPEN
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

    def _inputs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {self._input(name): value for name, value in given.items() if not _is_literal(value)}

    # ---- programs

    def _specialised(self, given: dict[str, Any], coords: str | Sequence[str]) -> tuple[Program, int]:
        declared = {p["name"]: p.get("type") or "" for p in self._item["params"]}
        names = [coords] if isinstance(coords, str) else list(coords)
        types = {name: self._type(value, declared[name], name) for name, value in given.items() if not _is_literal(value)}
        # A literal takes the float type of what it meets, so Python's floats take that of the other arguments.
        floats = {found for text in types.values() for found in _FLOAT.findall(text)}
        own = floats.pop() if len(floats) == 1 else "f32"
        types = {name: text.replace(_OPEN, own) for name, text in types.items()}
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


class Gradients(dict[str, Any]):
    """Gradients by parameter: `g.x`, or `g["x"]`."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"there is no gradient by `{name}`: there are those by {quoted(list(self))}{nearest(name, list(self))}")
        return self[name]


class ValueAndGradients(NamedTuple):
    """What a gradient of a function gives."""

    value: Any
    grads: Gradients


class Gradient:
    """A function together with its gradients. `g(x, W)` calls it; `g.program(x, W)` is the program that does so."""

    def __init__(self, function: Function, wrt: str | Sequence[str] | None) -> None:
        self._function = function
        params = [p["name"] for p in function._item["params"]]
        self._wrt = None if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
        for name in self._wrt or []:
            if name not in params:
                raise TypeError(f"`{function.__doc__}` has no parameter `{name}`{nearest(str(name), params)}")

    def __repr__(self) -> str:
        by = "" if self._wrt is None else f" by {quoted(self._wrt)}"
        return f"<einlang gradient{by} of {self._function.__doc__}>"

    def program(self, *args: Any, coords: str | Sequence[str] = (), **named: Any) -> Program:
        """The program behind a call: inputs `f_x` for the parameters `x`, `f_result`, and `grads.f_x`."""
        function = self._function
        whole = function.program(*args, coords=coords, **named)
        value = whole.outputs.get(function._result())
        if value is None or value.dims:
            kind = "several values" if value is None else f"an array over {list(value.dims)}"
            raise TypeError(f"`{function.__doc__}` gives {kind}, but a gradient is taken of a single number: write a function that returns a sum, or "
                            f"take p.{function.__name__}.program(…) and its vjp, jvp or jacobian")
        return whole.grad(function._result(), self._wrt and [function._input(name) for name in self._wrt])

    def __call__(self, *args: Any, coords: str | Sequence[str] = (), **named: Any) -> ValueAndGradients:
        function = self._function
        given = function._bind(args, named)
        result = self.program(*args, coords=coords, **named)(**function._inputs(given))
        grads = {name: result.grads[function._input(name)] for name in given if function._input(name) in result.grads}
        return ValueAndGradients(result[function._result()], Gradients(grads))


def _without(kind: str, taken: set[str]) -> str:
    return re.sub(r"(?<=[;,] )\w+", lambda found: "?" if found[0] in taken else found[0], kind) if taken else kind


def _is_literal(value: Any) -> bool:
    """Tuples of integers, such as strides, are part of the program: its extents depend on them."""
    return isinstance(value, tuple) and bool(value) and all(type(part) is int for part in value)


def _literal_text(value: Any) -> str:
    return f"({', '.join(str(part) for part in value)})"
