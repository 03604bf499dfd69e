"""`compile` and `Program`: the parts that need not be fast."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from . import _native
from ._native import Result
from .array import EIN_NAMES, numpy_dtype
from .errors import CompileError, CompileWarning, read_diagnostics
from .functions import Functions
from .inputs import nearest, prepare, prepare_out, quoted
from .loop import Loop
from .show import Text, result_text

_GRADIENT, _VJP, _JVP, _HVP, _JACOBIAN, _HESSIAN = range(1, 7)
_SOURCE, _EXPLAIN, _AUDIT, _FACTS = range(4)
_AS_TEXT, _AS_JSON, _AS_HTML = range(3)
_FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Value:
    """An input or an output. An extent that depends on the inputs is a `str`: `("n", 3)`, `("n + 1",)`."""

    name: str
    ein_dtype: str
    dims: tuple[str | None, ...]
    shape: tuple[int | str, ...]
    needed: bool = True  # False: an input that no output depends on, which may be left out

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(EIN_NAMES.index(self.ein_dtype))

    @property
    def type_text(self) -> str:
        """The type as the language writes it."""
        if not self.shape:
            return self.ein_dtype
        return f"[{self.ein_dtype}; {', '.join(str(extent) for extent in self.shape)}]"


def _names(given: str | Sequence[str], what: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} takes the name of a value or a list of names, got {given!r}")
    return names


class Program(_native.Program):
    """A compiled program. `p(x=x)` calls it; `p.grad("loss", wrt=["W"])` is its gradient, a program too."""

    def __init__(self, source: str, options: dict[str, Any], derivations: Sequence[tuple[int, list[str], list[str]]] = (),
                 modules: Sequence[tuple[str, str]] = ()) -> None:
        self._source, self._options, self._derivations = source, options, list(derivations)
        self._derived: dict[Any, Program] = {}
        self._known: dict[bool, Mapping[str, Value]] = {}  # inputs, outputs
        self._functions: Functions | None = None
        try:
            super().__init__(source=source, derivations=self._derivations, modules=list(modules), **options)
        except CompileError as error:
            error._source, error._name = source, options["name"]
            raise
        self._ready = True

    # ---- what it is

    @property
    def name(self) -> str:
        return str(self._options["name"])

    @property
    def inputs(self) -> Mapping[str, Value]:
        """The inputs by name; parts of records by their paths, `net.w1`."""
        return self._values(True)

    @property
    def outputs(self) -> Mapping[str, Value]:
        """What a call computes."""
        return self._values(False)

    def _values(self, inputs: bool) -> Mapping[str, Value]:
        if inputs not in self._known:
            found = {path: Value(path, EIN_NAMES[dtype], dims, shape, needed)
                     for path, dtype, dims, shape, needed in self._describe(inputs)}
            self._known[inputs] = MappingProxyType(found)
        return self._known[inputs]

    def extents(self, shapes: Mapping[str, Sequence[int]], values: Mapping[str, Any] | None = None) -> dict[str, tuple[int, ...]]:
        """The shapes of all outputs for inputs of these shapes, without a run. `values` has the inputs that are extents
        themselves.

        >>> compile("let x: [f32; n]; let d[i] = x[i + 1] - x[i];").extents({"x": (5,)})
        {'d': (4,)}
        """
        return self._extents({name: list(shape) for name, shape in shapes.items()}, dict(values or {}))

    # ---- calls

    def _call_slowly(self, given: Any, out: Any, copy: bool | None, align: bool) -> Result:
        plain, labels = prepare(self, given, copy, align)
        return self._call_plain(plain, prepare_out(self, out), labels)

    def run(self, **inputs: Any) -> Result:
        """A call with all effects of the program: it prints to `sys.stdout` and saves files.

        >>> r = compile('let x: f32; let y = x * x; print("y is {y}");').run(x=3.0)
        y is 9.0
        """
        return self._run(inputs, None)

    def _run(self, inputs: Mapping[str, Any], file: Any) -> Result:
        """`file(path, text)` may take what is saved as text, such as a plot; it then returns True."""
        plain, labels = prepare(self, inputs, None, False)

        def write(text: str, is_error: bool) -> None:
            (sys.stderr if is_error else sys.stdout).write(text)

        return self._run_plain(plain, labels, write, file)

    def loop(self, state: Mapping[str, str]) -> Loop:
        """A step to be called again and again: `state` says which output follows each input, `{"W": "W_next"}`.

        >>> loop = compile("let s: f32; let x: f32; let s_next = 0.5 * s + x;").loop(state={"s": "s_next"})
        >>> _ = loop.state(s=0.0)
        >>> for x in (1.0, 1.0, 1.0):
        ...     out = loop(x=x)
        >>> loop.state()["s"]
        1.75
        """
        return Loop(self, state)

    # ---- functions

    @property
    def fn(self) -> Functions:
        """The public functions: `p.fn.f(x, W)`.

        >>> compile("pub fn square(x: f32) -> f32 { x * x }").fn.square(3.0)
        9.0
        """
        if self._functions is None:
            self._functions = Functions(self)
        return self._functions

    def __getattr__(self, name: str) -> Any:
        """`p.f(x)`, if the class has no attribute of that name."""
        known = [] if name.startswith("_") else self.fn.names()
        if name in known:
            return getattr(self.fn, name)
        near = nearest(name, known)
        raise AttributeError(f"a program has no attribute `{name}`, and this one no public function of that name{near}"
                             f"{self._meant(name)}")

    def _meant(self, name: str) -> str:
        """Advice for a caller who uses a name of the program's text as an attribute."""
        if name.startswith("_"):
            return ""
        if name in self.outputs:
            return f". `{name}` is a value, which a call gives: p({', '.join(f'{x}=…' for x in self._tops())}).{name}"
        if name in self._tops():
            return f". `{name}` is an input, which a call is given: p({name}=…)"
        if re.search(rf"\bfn\s+{re.escape(name)}\b", str(self._source)):
            return f". The function `{name}` is not public: write `pub fn {name}`"
        return ""

    def _tops(self) -> list[str]:
        """The names of the inputs; a record counts as one."""
        return list(dict.fromkeys(path.split(".")[0] for path in self.inputs))

    # ---- derivatives

    def _derive(self, form: int, of: str | Sequence[str], wrt: str | Sequence[str] | None) -> Program:
        if wrt is None:
            wrt = [name for name, value in self.inputs.items() if value.ein_dtype in _FLOATS]
            if not wrt:
                self._refuse_functions(_names(of, "`of`"))
                raise TypeError("the program has no inputs that hold floats, so `wrt` must say what to differentiate by")
        step = (form, _names(of, "`of`"), _names(wrt, "`wrt`"))
        key = (form, tuple(step[1]), tuple(step[2]))
        if key not in self._derived:
            options = {**self._options, "outputs": None}
            try:
                self._derived[key] = Program(self._source, options, [*self._derivations, step], self._modules())
            except CompileError as error:
                if error.code == "E0201":
                    self._refuse_functions([*step[1], *step[2]])
                    if not any(found.help for found in error.diagnostics):
                        error.add_note(f"The values of the program are {quoted([*self._tops(), *self.outputs])}.")
                raise
        return self._derived[key]

    def _refuse_functions(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.fn.names():
                raise TypeError(f"`{name}` is a function: differentiate it with p.{name}.grad(wrt); a program's derivatives are "
                                f"those of its values") from None

    def grad(self, of: str, wrt: str | Sequence[str] | None = None) -> Program:
        """The value `of`, one number, and its gradients: `r.loss`, `r.grads.W`. Without `wrt`: by all float inputs.

        >>> p = compile("let x: [f32; i]; let y = sum[i](x[i] ** 3.0);")
        >>> r = p.grad("y", wrt="x")(x=[1.0, 2.0])
        >>> float(r.y), r.grads.x
        (9.0, [i: 2] [3.0, 12.0])
        """
        return self._derive(_GRADIENT, of, wrt)

    def vjp(self, of: str | Sequence[str], wrt: str | Sequence[str] | None = None) -> Program:
        """A row vector times the Jacobian: an input `y_bar` for each of `of`, a result `x_bar` for each of `wrt`.

        >>> p = compile("let x: [f32; i]; let y[i] = x[i] ** 2.0;")
        >>> p.vjp("y", wrt="x")(x=[1.0, 2.0], y_bar=[1.0, 10.0]).x_bar
        [i: 2] [2.0, 40.0]
        """
        return self._derive(_VJP, of, wrt)

    def jvp(self, of: str | Sequence[str], wrt: str | Sequence[str] | None = None) -> Program:
        """The Jacobian times a vector: an input `x_dot` for each of `wrt`, a result `y_dot` for each of `of`.

        >>> p = compile("let x: [f32; i]; let y[i] = x[i] ** 2.0;")
        >>> p.jvp("y", wrt="x")(x=[1.0, 2.0], x_dot=[1.0, 0.5]).y_dot
        [i: 2] [2.0, 2.0]
        """
        return self._derive(_JVP, of, wrt)

    def hvp(self, of: str, wrt: str | Sequence[str] | None = None) -> Program:
        """The Hessian of one number times a vector: an input `W_dot`, a result `W_hv`.

        >>> p = compile("let x: [f32; i]; let y = sum[i](x[i] ** 3.0);")
        >>> p.hvp("y", wrt="x")(x=[1.0, 2.0], x_dot=[1.0, 1.0]).x_hv
        [i: 2] [6.0, 12.0]
        """
        return self._derive(_HVP, of, wrt)

    def jacobian(self, of: str | Sequence[str], wrt: str | Sequence[str] | None = None) -> Program:
        """All partial derivatives: `r.jacobian.W`, the coordinates of the value before those of `W`; of several values
        `r.jacobian.y.W`.

        >>> p = compile("let x: [f32; i]; let y[i] = x[i] * x[0];")
        >>> p.jacobian("y", wrt="x")(x=[1.0, 2.0]).jacobian.x
        [i: 2, d_i: 2]
        [[2.0, 0.0],
         [2.0, 1.0]]
        """
        return self._derive(_JACOBIAN, of, wrt)

    def hessian(self, of: str, wrt: str | Sequence[str] | None = None) -> Program:
        """All second derivatives of one number: `r.hessian.V.W`.

        >>> p = compile("let x: [f32; i]; let y = x[0] ** 2.0 * x[1];")
        >>> p.hessian("y", wrt="x")(x=[1.0, 2.0]).hessian.x.x
        [i: 2, d_i: 2]
        [[4.0, 2.0],
         [2.0, 0.0]]
        """
        return self._derive(_HESSIAN, of, wrt)

    # ---- texts

    @property
    def source(self) -> Text:
        """The program; of a derivative, the derived program."""
        return Text(self._text(_SOURCE, _AS_TEXT), language="ein")

    def explain(self, of: str | None = None, wrt: str | Sequence[str] | None = None) -> Text:
        """Explains the derivative of `of` by each of `wrt`, step by step. Without names: every derivative that the program
        asks for, or, if the program is a gradient, that gradient."""
        if (of is None) != (wrt is None):
            raise TypeError("explain takes both `of` and `wrt`, or neither")
        if of is None and self._derivations:
            form, named, by = self._derivations[-1]
            if form in (_GRADIENT, _JACOBIAN) and len(named) == 1:
                of, wrt = named[0], by
        which: dict[str, Any] = {} if of is None else {"of": of, "wrt": _names(wrt or [], "`wrt`")}
        return Text(self._text(_EXPLAIN, _AS_TEXT, **which),
                    load=lambda: json.loads(self._text(_EXPLAIN, _AS_JSON, **which)),
                    page=lambda: self._text(_EXPLAIN, _AS_HTML, **which))

    def audit(self) -> Text:
        """Where operands are repeated along a coordinate, and whether that looks meant."""
        return Text(self._text(_AUDIT, _AS_TEXT), load=lambda: json.loads(self._text(_AUDIT, _AS_JSON)),
                    page=lambda: self._text(_AUDIT, _AS_HTML))

    def facts(self) -> Text:
        """What the compiler knows of every value: ranges, recurrences, what is checked when a call begins."""
        return Text(self._text(_FACTS, _AS_TEXT), load=lambda: json.loads(self._text(_FACTS, _AS_JSON)))

    @property
    def diagnostics(self) -> Text:
        """The warnings of the compiler. `.json` is a list."""
        lines = self._diagnostics(True)
        return Text(self._diagnostics(False), load=lambda: [json.loads(line) for line in lines.splitlines()])

    @property
    def warnings(self) -> list[Any]:
        """The warnings as objects."""
        return read_diagnostics(self._diagnostics(True))

    def __repr__(self) -> str:
        if "_ready" not in self.__dict__:
            return "<einlang.Program that did not compile>"

        def listed(values: Mapping[str, Value]) -> str:
            return ", ".join(f"{value.name}: {value.type_text}" for value in values.values()) or "nothing"

        return f"<einlang.Program {self.name!r}: {listed(self.inputs)} → {listed(self.outputs)}>"

    def _repr_html_(self) -> str:
        return self.source._repr_html_()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.fn.names()})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._source, self._options, self._derivations, self._modules())


def _rebuild(source: str, options: dict[str, Any], derivations: list[Any], modules: list[tuple[str, str]]) -> Program:
    key = (source, tuple(sorted((name, repr(value)) for name, value in options.items())), repr(derivations), repr(modules))
    return _kept(key, lambda: Program(source, options, derivations, modules))


# Programs that were compiled, the last used at the end.
_programs: OrderedDict[Any, tuple[Program, dict[str, Any]]] = OrderedDict()
_MOST = 64
_lock = threading.Lock()


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _kept(key: Any, make: Callable[[], Program]) -> Program:
    """A program that was compiled before, unless one of its files has changed since."""
    with _lock:
        found = _programs.get(key)
        if found is not None:
            program, stamps = found
            if all(_stamp(path) == stamp for path, stamp in stamps.items()):
                _programs.move_to_end(key)
                return program
            del _programs[key]
    program = make()
    files = [path for path, _ in program._modules()] + program._loaded()
    with _lock:
        _programs[key] = (program, {path: _stamp(path) for path in files})
        while len(_programs) > _MOST:
            _programs.popitem(last=False)
    return program


def _options(outputs: Sequence[str] | None, name: str, precision: str, grad_memory: str | int | None, opt_level: int,
             threads: int | None, cache: bool) -> dict[str, Any]:
    if precision not in ("f32", "bf16-mixed", "f16-mixed"):
        raise ValueError(f"precision is \"f32\", \"bf16-mixed\" or \"f16-mixed\", not {precision!r}")
    if opt_level not in range(4):
        raise ValueError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is a number from 1 on, or None for one per processor, not {threads!r}")
    names = None if outputs is None else _names(outputs, "outputs")
    return {"name": name, "outputs": names, "precision": precision, "opt_level": opt_level, "threads": threads or 0,
            "cache": bool(cache), "grad_memory": _bytes(grad_memory)}


def _bytes(size: str | int | None) -> int:
    """A number of bytes: 65536, "64 kB", "2GB"."""
    if size is None:
        return 0
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?\s*", str(size))
    if found is not None:
        power = "KMGT".find(found[2].upper() or "-") + 1
        count = int(float(found[1]) * (1024 if found[3] else 1000) ** power)
    else:
        count = 0
    if count < 1:
        raise ValueError(f"grad_memory is a number of bytes, such as 65536, \"64kB\" or \"2GB\", not {size!r}")
    return count


def compile(source: str | os.PathLike[str], *, outputs: Sequence[str] | None = None, name: str | None = None,
            precision: str = "f32", grad_memory: str | int | None = None, opt_level: int = 2, threads: int | None = None,
            cache: bool = True) -> Program:
    """Compiles a program: a `str` is its text, a path (`pathlib.Path`) a file.

    `outputs` are the values that calls compute, all by default; `name` stands in messages, and modules and files are
    looked for beside it. A warning of the compiler is a `CompileWarning`.

    >>> p = compile("let x: [f32; i]; let y[i] = 2.0 * x[i];")
    >>> p(x=[1.0, 2.0]).y
    [i: 2] [2.0, 4.0]
    """
    if isinstance(source, os.PathLike):
        path = os.fspath(source)
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        return _warned(_compile(text, _options(outputs, name or path, precision, grad_memory, opt_level, threads, cache)))
    if not isinstance(source, str):
        raise TypeError(f"compile takes the text of a program as a str, or a path to a file, not {type(source).__name__}")
    if "\n" not in source and source.endswith(".ein"):
        raise TypeError(f"{source!r} looks like a path, but a str is the text of a program: pass pathlib.Path({source!r})")
    options = _options(outputs, name or "<program>", precision, grad_memory, opt_level, threads, cache)
    return _warned(_compile(source, options))


def _warned(program: Program) -> Program:
    """Python's warnings for those of the compiler, at the line that calls `compile`."""
    for found in program.warnings:
        warnings.warn("\n" + found.rendered.rstrip("\n"), CompileWarning, stacklevel=3)
    return program


def _compile(source: str, options: dict[str, Any]) -> Program:
    # Files are looked for beside `name`, and from the current folder.
    key = (source, os.getcwd(), tuple(sorted((name, repr(value)) for name, value in options.items())))
    return _kept(key, lambda: Program(source, options))


def _result_xarray(self: Result) -> Any:
    """All values as one Dataset; the parts of records by their paths."""
    import xarray

    found: dict[str, Any] = {}

    def walk(part: Any, prefix: str) -> None:
        for key, value in part.items():
            if hasattr(value, "keys"):
                walk(value, f"{prefix}{key}.")
            else:
                found[prefix + key] = value.to_xarray()

    walk(self, "")
    return xarray.Dataset(found)


_RESULT: dict[str, Any] = {"to_xarray": _result_xarray, "__repr__": result_text, "__str__": result_text}
for _name, _method in _RESULT.items():
    setattr(Result, _name, _method)
Mapping.register(Result)  # type: ignore[attr-defined,unused-ignore]
