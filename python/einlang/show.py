"""Texts that a notebook shows well, and arrays as tables."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._native import Array

_TABLE = 20  # rows and columns that a table shows at most
_WORDS = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<keyword>\b(?:let|fn|pub|use|mod|const|type|test|in|where|if|"
    r"else|match|until|true|false|as)\b)|(?P<type>\b(?:bool|i8|i16|i32|i64|u8|f16|bf16|f32|f64)\b)|(?P<number>\b\d[\w.]*)"
    r"|(?P<request>@\w*)")
_COLOURS = {"comment": "#6a737d", "string": "#22863a", "keyword": "#d73a49", "type": "#6f42c1", "number": "#005cc5",
            "request": "#e36209"}


class Text(str):
    """A text about a program. `str()` is the text itself, `.json` the same as data where there is such a form."""

    _language = ""
    _load: Callable[[], Any] | None = None
    _html: Callable[[], str] | None = None

    def __new__(cls, text: str, *, language: str = "", load: Callable[[], Any] | None = None,
                page: Callable[[], str] | None = None) -> Text:
        made = super().__new__(cls, text)
        made._language, made._load, made._html = language, load, page
        return made

    @property
    def json(self) -> Any:
        """The text as data."""
        if self._load is None:
            raise AttributeError("this text is not available as data")
        return self._load()

    def _repr_html_(self) -> str:
        if self._html is not None:
            return f'<iframe srcdoc="{html.escape(self._html())}" style="width: 100%; height: 36em; border: 0"></iframe>'
        body = highlight(self) if self._language == "ein" else html.escape(self)
        return f"<pre>{body}</pre>"

    def _repr_markdown_(self) -> str:
        return f"```{self._language}\n{self.rstrip()}\n```"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def highlight(source: str) -> str:
    """Source as HTML with colours."""
    out, last = [], 0
    for found in _WORDS.finditer(source):
        out.append(html.escape(source[last:found.start()]))
        colour = _COLOURS[str(found.lastgroup)]
        out.append(f'<span style="color: {colour}">{html.escape(found.group())}</span>')
        last = found.end()
    return "".join(out) + html.escape(source[last:])


def array_html(array: Array) -> str:
    """A table up to 20 × 20; larger arrays and those of more coordinates as the language prints them."""
    values = array.numpy()
    dims = array.dims or (None,) * array.ndim
    if array.ndim not in (1, 2) or max(array.shape) > _TABLE or array.size == 0:
        return f"<pre>{html.escape(str(array))}</pre>"
    rows = values.reshape(1, -1) if array.ndim == 1 else values
    row, column = (None, dims[0]) if array.ndim == 1 else dims
    labels = array._labels or {}
    down = [str(x) for x in labels.get(row, range(rows.shape[0]))] if array.ndim == 2 else [""]
    across = [str(x) for x in labels.get(column, range(rows.shape[1]))]
    corner = html.escape(" \\ ".join(str(dim) if dim is not None else "" for dim in (row, column) if array.ndim == 2 or dim))
    lines = ["<tr><th>" + corner + "</th>" + "".join(f"<th>{html.escape(x)}</th>" for x in across) + "</tr>"]
    for label, cells in zip(down, rows):
        lines.append(f"<tr><th>{html.escape(label)}</th>" + "".join(f"<td>{_cell(x)}</td>" for x in cells) + "</tr>")
    return "<table>" + "".join(lines) + "</table>"


def _cell(value: Any) -> str:
    return html.escape(f"{float(value):.6g}" if np.issubdtype(type(value), np.floating) else str(value))


def no_value(name: Any, known: list[str]) -> str:
    """Called by the extension module when a result has no such value."""
    from .inputs import nearest, quoted

    return f"the result has no value `{name}`: it has {quoted(known)}{nearest(str(name), known)}"


def result_text(result: Any, prefix: str = "") -> str:
    """Small values in full, the others by type and extents."""
    lines = []
    for key, value in result.items():
        name = prefix + key
        if hasattr(value, "keys"):
            lines.append(result_text(value, name + "."))
        elif value.ndim == 0 or value.size <= _TABLE:
            lines.append(f"{name} = {value}")
        else:
            extents = ", ".join(f"{dim or '?'}: {extent}" for dim, extent in zip(value.dims, value.shape))
            lines.append(f"{name}: {value.dtype} [{extents}]")
    return "\n".join(lines)


def result_html(result: Any) -> str:
    """The values of a result: small ones in full, the others by type and extents."""
    text = result_text(result)
    return f"<pre>{html.escape(text)}</pre>" if text else ""
