"""`%load_ext einlang` and `%%ein`, for IPython and Jupyter."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import SVG, display

from .cells import Session, declaration
from .errors import Error
from .inputs import nearest

_EXAMPLE = "%%ein --in x,W --out loss"
_DIGITS = tuple("+-.0123456789")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = MagicArgumentParser(  # type: ignore[no-untyped-call]
        "%%ein", add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter,  # type: ignore[arg-type,unused-ignore]
        description="Compiles and runs the cell, an Einlang program. Definitions of earlier cells stay; to define a name again "
        "replaces it.")
    parser.add_argument("--in", dest="inputs", nargs="+", action="extend", default=[], metavar="NAME",
                        help="inputs of the program that get the values of the notebook's variables: x,W; or W=net.weight; or a number, rate=0.5")
    parser.add_argument("--out", dest="outputs", nargs="+", action="extend", default=[], metavar="NAME",
                        help="values of the program that become variables of the notebook")
    parser.add_argument("--grad", nargs="+", default=[], metavar="OF:WRT",
                        help="loss:W,b leaves `loss` and `grads` in the notebook, with `grads.W` and `grads.b`")
    parser.add_argument("--as", dest="program", metavar="NAME", help="leaves the compiled program in the notebook")
    parser.add_argument("--new", action="store_true", help="forgets the definitions and values of earlier cells first")
    return parser


def _listed(words: list[str], option: str, pattern: str = r"[^\W\d]\w*") -> list[str]:
    """`x,W` as well as `x, W`."""
    names = [name for name in ",".join(words).replace(" ", "").split(",") if name]
    wrong = [name for name in names if not re.fullmatch(pattern, name)]
    if wrong:
        raise UsageError(f"{option} takes names, such as `{_EXAMPLE}`, not {wrong[0]!r}")
    return list(dict.fromkeys(names))


def _gradient(words: list[str]) -> tuple[str, list[str]] | None:
    if not words:
        return None
    of, colon, wrt = "".join(words).partition(":")
    names = [name for name in wrt.split(",") if name]
    if not colon or not re.fullmatch(r"[\w.]+", of) or not names:
        raise UsageError(f"--grad takes a value and what to differentiate it by, such as `--grad loss:W,b`, not {' '.join(words)!r}")
    return of, names


def _show(path: str, svg: str) -> None:
    display(SVG(svg))  # type: ignore[no-untyped-call]


def _number(text: str) -> int | float:
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise UsageError(f"`{text}` is not a number: --in takes variables of the notebook and numbers, x,rate=0.5") from None


@magics_class
class EinMagics(Magics):
    """The cells of one notebook."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.session: Session = Session()
        self._notebook: Any = shell

    @line_cell_magic
    def ein(self, line: str, text: str = "") -> None:
        args = _parser().parse_args(line.split())
        if args.new:
            self.session = Session()
        grad = _gradient(args.grad)
        outputs = _listed(args.outputs, "--out")
        programs = _listed([args.program] if args.program else [], "--as")
        given = {}
        for word in _listed(args.inputs, "--in", r"[^\W\d]\w*(=([\w.]+|[-+]?[\d.]+([eE][-+]?\d+)?))?"):
            name, _, variable = word.partition("=")
            given[name] = _number(variable) if variable[:1] in _DIGITS else self._variable(variable or name)
        try:
            ran = self.session.run(text, self._name(), given=given, outputs=outputs, grad=grad,
                                   key=self._key(), picture=_show)
        except Error as error:
            error._hides_frames = True  # the caller is the machinery of the notebook
            self._advise(error)
            raise
        for why in ran.forgotten:
            print(f"warning: {why}", file=sys.stderr)
        left = {name: ran.result[name] for name in outputs}
        if ran.gradients is not None and grad is not None:
            left.update({grad[0]: ran.gradients[grad[0]], "grads": ran.gradients.grads})
        left.update({name: ran.program for name in programs})
        self._notebook.push(left)

    def _advise(self, error: Error) -> None:
        """Programs do not see the variables of the notebook, which newcomers expect."""
        for name in dict.fromkeys(re.findall(r"^unknown name `(\w+)`$", "\n".join(d.message for d in error.diagnostics), re.M)):
            value = self._notebook.user_ns.get(name)
            if isinstance(value, (bool, int, float, list)) or hasattr(value, "shape") and hasattr(value, "dtype"):
                error.add_note(f"The notebook has a variable `{name}`, which a cell of Einlang gets with `--in {name}`, as an input that "
                               f"it declares: {declaration(name, value)}")

    def _variable(self, path: str) -> Any:
        first, *attributes = path.split(".")
        known = self._notebook.user_ns
        if first not in known:
            near = nearest(first, [name for name in known if not name.startswith("_")])
            raise UsageError(f"the notebook has no variable `{first}`{near}")
        value = known[first]
        for name in attributes:
            if not hasattr(value, name):
                raise UsageError(f"`{path}`: a {type(value).__name__} has no attribute `{name}`")
            value = getattr(value, name)
        return value

    def _name(self) -> str:
        """`In[3]`, as the notebook shows it. The inputs so far are counted, because `execution_count` may be one ahead."""
        return f"In[{len(self._notebook.user_ns.get('In', [''])) - 1 or self._notebook.execution_count}]"

    def _key(self) -> str | None:
        """The notebook's own name for the cell, where its front end gives one."""
        parent: dict[str, Any] = getattr(self._notebook, "get_parent", dict)() or {}
        key = parent.get("metadata", {}).get("cellId")
        return key if isinstance(key, str) else None


EinMagics.ein.__doc__ = _parser().format_help()


def load(shell: Any) -> None:
    shell.register_magics(EinMagics)
