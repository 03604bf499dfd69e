"""Extents as formulas over the extents of inputs, `n / 2 + 1`, evaluated on whatever counts as an integer: PyTorch's
symbolic sizes among them. Where all extents are numbers, `Program.extents` is the way, which also makes the checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d]\w*(?:\.[^\W\d]\w*)*)|(\|\||&&|\*\*|<=|>=|==|!=|.))", re.S)
_LEVELS = [("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%")]


def _truncated(a: Any, b: Any) -> Any:
    """Division towards zero, as the language has it. Python's rounds down."""
    return a // b if bool(a >= 0) == bool(b > 0) else -(-a // b)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": _truncated, "%": lambda a, b: a - _truncated(a, b) * b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}
Part = tuple[Any, ...]


class _Reader:
    """One function for each rule of what the compiler prints."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [match.groups() for match in _TOKEN.finditer(text.strip())]
        self.at = 0

    def fail(self) -> ValueError:
        return ValueError(f"the extent `{self.text}` is not a formula that this version of the package can evaluate")

    def peek(self) -> str | None:
        return next(part for part in self.tokens[self.at] if part) if self.at < len(self.tokens) else None

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if token is None or wanted is not None and token != wanted:
            raise self.fail()
        self.at += 1
        return token

    def whole(self) -> Part:
        found = self.binary(0)
        if self.peek() is not None:
            raise self.fail()
        return found

    def binary(self, level: int) -> Part:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            left = (self.take(), left, self.binary(level + 1))
        return left

    def unary(self) -> Part:
        if self.peek() in ("-", "!"):
            return (f"unary {self.take()}", self.unary())
        return self.primary()

    def primary(self) -> Part:
        token = self.take()
        if token.isdigit():
            return ("number", int(token))
        if token == "(":
            inner = self.binary(0)
            self.take(")")
            return inner
        if token == "if":
            condition = self.binary(0)
            self.take("{")
            then = self.binary(0)
            self.take("}"), self.take("else"), self.take("{")
            otherwise = self.binary(0)
            self.take("}")
            return ("if", condition, then, otherwise)
        if not (token[0].isalpha() or token[0] == "_"):
            raise self.fail()
        if self.peek() != "(":
            return ("name", token)
        self.take("(")
        arguments = [self.binary(0)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.binary(0))
        self.take(")")
        if (token, len(arguments)) not in (("max", 2), ("min", 2), ("extent", 2)):
            raise self.fail()
        return (token, *arguments)


def _names(part: Part) -> Iterator[str]:
    if part[0] == "name":
        yield part[1]
    elif part[0] == "extent":
        yield f"extent({part[1][1]}, {part[2][1]})"
    else:
        for inner in part[1:]:
            if isinstance(inner, tuple):
                yield from _names(inner)


class Formula:
    """One extent. `names` are the extents that it depends on; one without a name is called `extent(x, 0)`."""

    def __init__(self, extent: int | str) -> None:
        self.text: str = str(extent)
        self._part: Part = ("number", extent) if isinstance(extent, int) else _Reader(extent).whole()
        self.names: set[str] = set(_names(self._part))

    def __call__(self, names: Mapping[str, Any], larger: Callable[[Any, Any], Any] = max,
                 smaller: Callable[[Any, Any], Any] = min) -> Any:
        def value(part: Part) -> Any:
            kind = part[0]
            if kind == "number":
                return part[1]
            if kind == "name":
                return names[part[1]]
            if kind == "extent":
                return names[f"extent({part[1][1]}, {part[2][1]})"]
            if kind == "max":
                return larger(value(part[1]), value(part[2]))
            if kind == "min":
                return smaller(value(part[1]), value(part[2]))
            if kind == "if":
                return value(part[2]) if value(part[1]) else value(part[3])
            if kind == "&&":
                return value(part[1]) and value(part[2])
            if kind == "||":
                return value(part[1]) or value(part[2])
            if kind == "unary -":
                return -value(part[1])
            if kind == "unary !":
                return not value(part[1])
            return _BINARY[kind](value(part[1]), value(part[2]))

        return value(self._part)


class Shapes:
    """The shapes of the outputs of a program as formulas over those of its inputs."""

    def __init__(self, inputs: Mapping[str, Sequence[int | str]], outputs: Mapping[str, Sequence[int | str]]) -> None:
        self.inputs: dict[str, list[Formula]] = {name: [Formula(extent) for extent in shape] for name, shape in inputs.items()}
        self.outputs: dict[str, list[Formula]] = {name: [Formula(extent) for extent in shape] for name, shape in outputs.items()}
        # Where the extent of each name is found: an input, and the position of the coordinate.
        self.sources: dict[str, tuple[str, int]] = {}
        for name, shape in self.inputs.items():
            for position, formula in enumerate(shape):
                if formula.names == {formula.text}:
                    self.sources.setdefault(formula.text, (name, position))
        every = [formula for shapes in (self.inputs, self.outputs) for shape in shapes.values() for formula in shape]
        used = {name for formula in every for name in formula.names} - set(self.sources)
        # Inputs that are numbers and the extents of ranges: `let n: i64; let y[i in 0..n] = …`.
        self.numbers: set[str] = {name for name in used if name in self.inputs and not self.inputs[name]}
        unknown = used - self.numbers
        if unknown:
            raise ValueError(f"nothing among the shapes of the inputs says what `{min(unknown)}` is")

    def names(self, shapes: Mapping[str, Sequence[Any]], numbers: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: shapes[source][position] for name, (source, position) in self.sources.items()}
        return {**found, **{name: numbers[name] for name in self.numbers}}
