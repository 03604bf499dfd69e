"""Programs in pieces, as notebooks have them: a cell has the definitions of the cells before it and the values they were
given, prints as it runs, and its plots are shown instead of saved. `%%ein` (magic.py) and `einlang.cell` are made of this."""

from __future__ import annotations

import html
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ._native import Result
from .errors import CompileError, Diagnostic, InputError
from .inputs import flatten, nearest, prepare_some, quoted
from .program import Program, _compile, _options
from .show import result_html


@dataclass(frozen=True)
class Part:
    """The text of a cell that was compiled."""

    name: str  # in messages; no two of a session have the same
    text: str
    key: str | None = None  # the notebook's name for the cell, which stays when the cell runs again
    hidden: bool = False  # forgotten: it defines nothing, but what it replaced does not come back


def compile_part(text: str, name: str, earlier: list[Part], outputs: list[str] | None) -> Program:
    """A program that goes on from the definitions of earlier cells. `outputs`: by default all that `text` itself defines."""
    options = {**_options(None, name, "f32", None, 2, None, True), "outputs": outputs,
               "earlier": [(part.name, part.text, part.hidden) for part in earlier]}
    return _compile(text, options)


def inputs_for(program: Program, known: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the known values that the program has inputs for; a record by its own name."""
    tops = {path.split(".")[0] for path in program.inputs}
    return {name: value for name, value in known.items() if name in tops}


def run_part(program: Program, given: Mapping[str, Any], picture: Callable[[str, str], None]) -> Result:
    """Runs it with its effects; `picture(path, svg)` gets what it would save as an SVG file."""

    def file(path: str, text: str) -> bool:
        taken = path.lower().endswith(".svg")
        if taken:
            picture(path, text)
        return taken

    return program._run(given, file)


def declaration(name: str, value: Any) -> str:
    """How a program would declare an input for this value, as far as that can be seen."""
    import numpy as np

    from .array import EIN_NAMES, NAMES

    if isinstance(value, Mapping):
        parts = ", ".join(f"{key}: {declaration('', part)}" for key, part in value.items())
        return f"let {name}: {{ {parts} }};" if name else f"{{ {parts} }}"
    held = np.asarray(value)
    plain = not hasattr(value, "dtype")  # Python's numbers adapt
    dtype = "f32" if plain and held.dtype.kind == "f" else "i32" if plain and held.dtype.kind == "i" else held.dtype.name
    kind = EIN_NAMES[NAMES.index(dtype)] if dtype in NAMES else dtype if dtype in EIN_NAMES else "f32"
    dims = getattr(value, "dims", None) or [f"d{k}" for k in range(held.ndim)]
    text = f"[{kind}; {', '.join(str(dim) if dim is not None else f'd{k}' for k, dim in enumerate(dims))}]" if held.ndim else kind
    return f"let {name}: {text};" if name else text


# ---- a notebook with a memory


@dataclass
class Ran:
    """What a cell did."""

    program: Program
    result: Result
    gradients: Result | None
    forgotten: list[str] = field(default_factory=list)  # why definitions of earlier cells are gone


class Session:
    """The cells of a notebook that have run, and the values they were given."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.values: dict[str, Any] = {}
        self._types: dict[str, Any] = {}  # what the inputs were declared as, when they got these values

    def run(self, text: str, name: str, *, given: Mapping[str, Any], outputs: list[str],
            grad: tuple[str, list[str]] | None = None, key: str | None = None,
            picture: Callable[[str, str], None] = lambda path, svg: None) -> Ran:
        # A cell that runs again takes the place of what it was.
        kept = [part for part in self.parts if part.text != text and (key is None or part.key != key)]
        while any(part.name == name for part in kept):
            name += "'"
        wanted = outputs if grad is None or grad[0] in outputs else [*outputs, grad[0]]
        try:
            program, kept, forgotten = _compile_over(text, name, kept, wanted)
        except CompileError as error:
            _advise(error, given)
            raise
        derived = program.grad(*grad) if grad is not None else None
        tops = {path.split(".")[0] for path in program.inputs}
        for spare in [other for other in given if other not in tops]:
            raise InputError(f"no cell declares an input `{spare}`: its inputs are {quoted(sorted(tops))}"
                             f"{nearest(spare, sorted(tops))}. Declare it, as in `{declaration(spare, given[spare])}`")
        # What compiles stays, whether the run succeeds or not.
        self.parts = [*kept, Part(name, text, key)]
        self._take(program, given)
        if said := str(program.diagnostics):
            print(said.rstrip("\n"), file=sys.stderr)
        here = inputs_for(program, self.values)
        _check_given(program, derived, here)
        try:
            result = run_part(program, here, picture)
        except InputError as error:
            if error.code != "E0801":
                raise
            raise InputError(f"{error}\n{_HOW_TO_GIVE}", code=error.code, diagnostics=error.diagnostics) from None
        gradients = derived.call(inputs_for(derived, here)) if derived is not None else None
        return Ran(program, result, gradients, forgotten)

    def _take(self, program: Program, given: Mapping[str, Any]) -> None:
        """Keeps values that fit, and those before that still have the type that they were given for."""
        prepare_some(program, flatten(given, list(program.inputs), "input"), None, False)
        known = {**self.values, **given}
        types = {name: _types(program, name) for name in inputs_for(program, known)}
        self.values = {name: value for name, value in known.items()
                       if name in given or types.get(name) in (None, self._types[name])}
        self._types = {**self._types, **types}


def _types(program: Program, name: str) -> list[tuple[Any, ...]]:
    return [(path, value.ein_dtype, value.dims) for path, value in program.inputs.items() if path.split(".")[0] == name]


def _advise(error: CompileError, given: Mapping[str, Any]) -> None:
    """A name that `--in` gives a value to has to be declared by the program."""
    for name, value in given.items():
        if any(found.code == "E0201" and f"`{name}`" in found.message for found in error.diagnostics):
            said = (f"\n`--in {name}` gives an input its value, and the program declares the input. Write, for example,\n"
                    f"    {declaration(name, value)}")
            error.args = (str(error) + said,)
            error._coloured += said


_HOW_TO_GIVE = "`%%ein --in NAME` gives an input the value of the notebook's variable of that name"


def _check_given(program: Program, derived: Program | None, given: Mapping[str, Any]) -> None:
    inputs = {**program.inputs, **(derived.inputs if derived is not None else {})}
    for path, value in inputs.items():
        needed = any(path in p.inputs and p.inputs[path].needed for p in (program, derived) if p is not None)
        if needed and path.split(".")[0] not in given:
            top = path.split(".")[0]
            raise InputError(f"the input `{path}` ({value.type_text}) has no value: write `--in {top}` in the first line of the "
                             f"cell to take it from the notebook's variable `{top}`")


def _places(error: CompileError) -> list[str | None]:
    """The cells in which the errors stand."""
    return [found.file for found in error.diagnostics if found.severity == "error"]


def _compile_over(text: str, name: str, kept: list[Part], outputs: list[str]) -> tuple[Program, list[Part], list[str]]:
    """Compiles a cell. What it defines anew may not fit definitions of earlier cells any more. As in any notebook the new
    cell counts: the old ones are forgotten until they run again, and we say so."""
    first: CompileError | None = None
    forgotten: list[str] = []
    while True:
        try:
            return compile_part(text, name, kept, outputs), kept, forgotten
        except CompileError as error:
            places = set(_places(error))
            names = {part.name for part in kept if not part.hidden}
            if first is not None and not places <= names:
                raise first from None  # it shows both the old definition and what this cell makes of it
            if not places or not places <= names:
                raise
            first = first or error
            listed = ", ".join(sorted(str(place) for place in places))
            forgotten.append(f"the definitions of {listed} do not fit this cell, and are forgotten until they run again:\n{error}")
            kept = [replace(part, hidden=True) if part.name in places else part for part in kept]


# ---- cells without a memory


class Cell(Mapping[str, Any]):
    """What `einlang.cell` gives: the values by name (`c.loss`, `c["loss"]`), `c.program`, and `c.pictures`, the SVG texts by
    the paths that the cell saves them to. A notebook shows the pictures and the values."""

    def __init__(self, program: Program, result: Result, pictures: dict[str, str], parts: list[Part],
                 inputs: dict[str, Any]) -> None:
        self.program: Program = program
        self.result: Result = result
        self.pictures: dict[str, str] = pictures
        self._parts, self._inputs = parts, inputs

    def grad(self, of: str, wrt: str | list[str] | None = None) -> Result:
        """The value `of` and its gradients, for the inputs of the cell."""
        derived = self.program.grad(of, wrt)
        return derived.call(inputs_for(derived, self._inputs))

    def __getitem__(self, name: str) -> Any:
        return self.result[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.result)

    def __len__(self) -> int:
        return len(self.result)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.result})

    def __repr__(self) -> str:
        return repr(self.result)

    def _repr_html_(self) -> str:
        # As images: the styles of an SVG in the page itself would be those of the whole page.
        shown = [f'<img alt="{html.escape(path)}" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'
                 for path, svg in self.pictures.items()]
        return "".join(shown) + result_html(self.result)


def cell(source: str, /, *earlier: Cell, **inputs: Any) -> Cell:
    """Compiles and runs a program with its effects, for notebooks such as marimo: what it prints goes to `sys.stdout`, and the
    SVG files that it saves are kept in the result, which a notebook shows. Cells given after the text come before
    it: it knows their definitions and inputs.

    >>> import einlang
    >>> data = einlang.cell("let x: [f32; i]; let total = sum[i](x[i]);", x=[1.0, 2.0, 3.0])
    >>> float(data.total)
    6.0
    >>> more = einlang.cell('let share[i] = x[i] / total; print("{share[0]:.3f}");', data)
    0.167
    >>> more.grad("total", "x").grads.x
    [i: 3] [1.0, 1.0, 1.0]
    """
    if not isinstance(source, str):
        raise TypeError(f"cell takes the text of a program, not {type(source).__name__}")
    parts: list[Part] = []
    values: dict[str, Any] = {}
    for before in earlier:
        if not isinstance(before, Cell):
            raise TypeError(f"cell takes the results of other calls of cell, not {type(before).__name__}; inputs are given by name")
        parts += [part for part in before._parts if part not in parts]
        values.update(before._inputs)
    name = f"<cell {len(parts) + 1}>"
    program = compile_part(source, name, parts, None)
    values.update(inputs)
    for spare in [other for other in inputs if other not in inputs_for(program, inputs)]:
        tops = list(dict.fromkeys(path.split(".")[0] for path in program.inputs))
        raise InputError(f"the program has no input `{spare}`: its inputs are {quoted(tops)}{nearest(spare, tops)}. Declare it, "
                         f"as in `{declaration(spare, inputs[spare])}`")
    if said := str(program.diagnostics):
        print(said.rstrip("\n"), file=sys.stderr)
    pictures: dict[str, str] = {}
    result = run_part(program, inputs_for(program, values), pictures.__setitem__)
    return Cell(program, result, pictures, [*parts, Part(name, source)], values)
