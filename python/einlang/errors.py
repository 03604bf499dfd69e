"""The exceptions. `str()` of each is text for people; `.diagnostics` has the same for programs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any

_PROGRAM_WRONG, _USAGE, _FAILED, _INTERNAL = 1, 2, 3, 70
_INPUT_CODES = ("E0801", "E0802", "E0805")


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning of the compiler, as `ein check --error-format json` gives it."""

    code: str
    severity: str
    message: str
    labels: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    help: str | None = None
    fixes: list[dict[str, Any]] = field(default_factory=list)
    rendered: str = ""
    file: str | None = None


def read_diagnostics(lines: str) -> list[Diagnostic]:
    """Diagnostics from JSON, one object a line."""
    found = []
    for line in lines.splitlines():
        item = json.loads(line)
        known = {name: item[name] for name in Diagnostic.__dataclass_fields__ if item.get(name) is not None}
        found.append(Diagnostic(**known))
    return found


class Error(Exception):
    """Base of all exceptions of this package."""

    code: str
    diagnostics: list[Diagnostic]
    _hides_frames = False

    def __init__(self, message: str, *, code: str = "", diagnostics: list[Diagnostic] | None = None,
                 coloured: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.diagnostics = diagnostics if diagnostics is not None else []
        self._coloured = coloured or message

    def _render_traceback_(self) -> list[str]:
        """What notebooks show: the caller's line, and the coloured message; nothing of this package."""
        import os
        import traceback

        said = "\n".join([f"{type(self).__name__}: {self._coloured}".rstrip("\n"), *getattr(self, "__notes__", [])])
        if self._hides_frames:
            return [said]
        own = os.path.dirname(__file__)
        frames = [f for f in traceback.extract_tb(self.__traceback__) if os.path.dirname(f.filename) != own]
        # The first frames are the notebook's own machinery; the caller is the last that is not ours.
        shown = [_place(frames[-1])] if frames else []
        return [*("".join(shown).splitlines()), said]

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"code": self.code, "diagnostics": self.diagnostics, "_coloured": self._coloured}
        return _rebuild, (type(self), str(self), state)


def _place(frame: Any) -> str:
    """A line of the caller, as notebooks name it: `Cell In[3], line 2`."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cell = shell.compile.format_code_name(frame.filename) if shell is not None else None
    where = f"{cell[0]} {cell[1]}" if cell else f'File "{frame.filename}"'
    return f"{where}, line {frame.lineno}\n    {frame.line}"


def _rebuild(kind: type[Error], message: str, state: dict[str, Any]) -> Error:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class CompileError(Error, ValueError):
    """The program is wrong."""

    def __init__(self, message: str, *, source: str = "", name: str = "<program>", **more: Any) -> None:
        super().__init__(message, **more)
        self._source, self._name = source, name

    def fixed(self) -> str:
        """The text of the program with the safe fixes of the diagnostics applied."""
        from ._native import fixed

        return fixed(self._source, self._name)


class CompileWarning(UserWarning):
    """The compiler warns about a program. `#[allow(CODE)]` before a statement silences it there."""


class CallError(Error, RuntimeError):
    """The program failed while it ran: an assertion, an index out of bounds, memory."""


class InputError(Error, TypeError, ValueError):
    """An argument of a call does not fit the program."""


class DimsError(InputError):
    """The names of an array's dimensions are not those of the program."""


class LabelError(InputError):
    """Two arguments have different labels along the same coordinate."""


class CopyError(InputError):
    """An argument would have to be copied, and `copy=False` forbids it."""


class InternalError(Error, RuntimeError):
    """A fault of the compiler."""


def _internal(message: str) -> InternalError:
    return InternalError(f"{message}\nThis is a fault of Einlang. Please report it with the program that caused it.")


def compile_failure(status: int, error: tuple[str, str], texts: tuple[str, str], lines: str) -> Error:
    """The exception for a program that did not compile. Called by the extension module."""
    code, message = error
    found = read_diagnostics(lines)
    if status == _INTERNAL:
        return _internal(message)
    if status == _PROGRAM_WRONG:
        return CompileError(texts[0].rstrip("\n"), code=code, diagnostics=found, coloured=texts[1].rstrip("\n"))
    if status == _FAILED:
        return CallError(message, code=code, diagnostics=found)
    return CompileError(message, code=code, diagnostics=found)


def call_failure(status: int, error: tuple[str, str], rendered: str, line: str) -> Error:
    """The exception for a call that failed. Called by the extension module."""
    code, message = error
    if status == _INTERNAL:
        return _internal(message)
    found = [Diagnostic(**{**vars(d), "rendered": d.rendered or rendered}) for d in read_diagnostics(line)]
    kind = InputError if status == _USAGE or code in _INPUT_CODES else CallError
    return kind(rendered.rstrip("\n") or message, code=code, diagnostics=found)
