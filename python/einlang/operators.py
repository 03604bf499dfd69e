"""What einlang.torch and einlang.jax share: a program as a function of positions, and its vector-Jacobian products."""

from __future__ import annotations

import hashlib
import keyword
import threading
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from .errors import InputError
from .extents import Shapes
from .inputs import flatten, nearest, quoted
from .program import _FLOATS, _VJP, Program, Value, _stamp

# Held while something is compiled or registered, so that threads do not do it twice.
making: Any = threading.RLock()
_named_tuple: Any = namedtuple  # whose fields type checkers want to see


class Callee:
    """A program whose inputs and outputs go by position. `wrt` are the positions of inputs that it may be
    differentiated by. Derivatives are callees too."""

    def __init__(self, program: Program, wrt: Sequence[int], numbers: Sequence[int] = ()) -> None:
        if program.backend != "native":
            raise InputError(f"`{program.name}` has no native code, only the reference evaluator can run it, so it cannot "
                             f"be an operator")
        if not program.outputs:
            raise InputError(f"`{program.name}` has no outputs, so there is nothing that an operator could give")
        self.program = program
        self.inputs: list[Value] = list(program.inputs.values())
        self.outputs: list[Value] = list(program.outputs.values())
        self.wrt: tuple[int, ...] = tuple(wrt)
        self._numbers = numbers
        self._products: dict[tuple[Any, Any], Callee] = {}

    @cached_property
    def shapes(self) -> Shapes:
        return Shapes({v.name: v.shape for v in self.inputs}, {v.name: v.shape for v in self.outputs})

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The positions of inputs that are extents of the outputs, so shapes depend on their values. What is a number for
        a program is one for its derivatives."""
        return tuple(k for k, v in enumerate(self.inputs) if k in self._numbers or v.name in self.shapes.numbers)

    @cached_property
    def digest(self) -> int:
        """64 bits that stand for the program in any process: what is compiled with it may be kept on disk."""
        p = self.program
        loaded = [(path, _stamp(path)) for path in p._loaded()]
        text = repr((p._source, sorted(p._options.items(), key=str), p._derivations, p._modules(), loaded, self.wrt))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)

    def of(self) -> tuple[int, ...]:
        """The outputs that have a derivative."""
        return tuple(k for k, v in enumerate(self.outputs) if v.ein_dtype in _FLOATS)

    def product(self, of: tuple[int, ...], wrt: tuple[int, ...]) -> Callee:
        """The callee that takes the inputs and a cotangent for each of `of`, and gives a gradient for each of `wrt`. It
        can be differentiated by whatever this one can, and by the cotangents."""
        with making:
            if (of, wrt) not in self._products:
                self._products[of, wrt] = self._product(of, wrt)
            return self._products[of, wrt]

    def _product(self, of: tuple[int, ...], wrt: tuple[int, ...]) -> Callee:
        p = self.program
        step = (_VJP, [self.outputs[k].name for k in of], [self.inputs[k].name for k in wrt])
        made = Program(p._source, {**p._options, "outputs": []}, [*p._derivations, step], p._modules())
        seeds = range(len(self.inputs), len(self.inputs) + len(of))
        product = Callee(made, (*self.wrt, *seeds), self.numbers)
        known = [v.name for v in self.inputs]
        assert [v.name for v in product.inputs[: len(known)]] == known and len(product.inputs) == seeds.stop
        assert len(product.outputs) == len(wrt)
        return product

    def refuse_gradient(self, position: int) -> InputError:
        """The exception for a gradient by an input that is not among `wrt`."""
        name = self.inputs[position].name
        listed = quoted([self.inputs[k].name for k in self.wrt])
        return InputError(f"the gradient by input `{name}` is needed, but this function was made to be differentiated by "
                          f"{listed}: name `{name}` in `wrt=`, or leave `wrt` out")


def choose(program: Program, wrt: str | Sequence[str] | None) -> Callee:
    """The callee for a program and what the user wrote for `wrt`: names of inputs or records, None for every float."""
    if not isinstance(program, Program):
        raise TypeError(f"function() takes a program that einlang.compile made, not {type(program).__name__}")
    values = list(program.inputs.values())
    floats = [k for k, v in enumerate(values) if v.ein_dtype in _FLOATS]
    results = [v for v in program.outputs.values() if v.ein_dtype in _FLOATS]
    chosen: list[int] = []
    if wrt is None:
        chosen = floats if results else []
    for name in [wrt] if isinstance(wrt, str) else wrt or []:
        parts = [k for k, v in enumerate(values) if v.name == name or v.name.startswith(f"{name}.")]
        if not parts:
            tops = list(dict.fromkeys(v.name for v in values))
            raise InputError(f"wrt names `{name}`, which is not an input: the inputs are {quoted(tops)}{nearest(name, tops)}")
        whole = [k for k in parts if k in floats]
        if not whole:
            raise InputError(f"wrt names `{name}`, which holds {values[parts[0]].ein_dtype}: only floats have gradients")
        chosen += [k for k in whole if k not in chosen]
    if chosen and not results:
        raise InputError(f"wrt names `{values[chosen[0]].name}`, but no output is a float, so nothing has a gradient: the "
                         f"outputs are {quoted(list(program.outputs))}")
    kinds = {values[k].ein_dtype: values[k] for k in chosen}
    others = [v for v in [*(values[k] for k in chosen), *results] if chosen and v.ein_dtype != values[chosen[0]].ein_dtype]
    if kinds and others:
        first = values[chosen[0]]
        raise InputError(f"`{first.name}` holds {first.ein_dtype} and `{others[0].name}` holds {others[0].ein_dtype}, and a "
                         f"gradient needs values of one type: choose `wrt=` and, in einlang.compile, `outputs=` of one "
                         f"type, or pass wrt=[] for a function without gradients")
    return Callee(program, sorted(chosen))


def by_position(callee: Callee, args: tuple[Any, ...], given: Mapping[str, Any]) -> list[Any]:
    """Arguments in the order of the inputs. Those without names are the inputs and records in their order."""
    paths = [v.name for v in callee.inputs]
    tops = list(dict.fromkeys(path.split(".")[0] for path in paths))
    if len(args) > len(tops):
        raise InputError(f"{len(args)} arguments are given, but the inputs are {quoted(tops)}")
    both = [name for name in tops[: len(args)] if name in given]
    if both:
        raise InputError(f"input `{both[0]}` is given twice, by position and by name")
    found = flatten({**dict(zip(tops, args)), **given}, paths, "input")
    missing = [v for v in callee.inputs if v.name not in found]
    if missing:
        listed = ", ".join(f"`{v.name}` ({v.type_text})" for v in missing)
        raise InputError(f"{'inputs' if len(missing) > 1 else 'input'} {listed} {'are' if len(missing) > 1 else 'is'} "
                         f"missing: the inputs are {quoted(paths)}")
    return [found[path] for path in paths]


def bundle(callee: Callee) -> Callable[[Sequence[Any]], Any] | None:
    """Makes what a call returns: a named tuple of the outputs, a record a named tuple in it. None for a single output,
    which is returned by itself."""
    paths = [v.name for v in callee.outputs]
    if len(paths) == 1:
        return None

    def build(prefix: str) -> Callable[[Sequence[Any]], Any]:
        inside = [(k, path[len(prefix):]) for k, path in enumerate(paths) if path.startswith(prefix)]
        names = list(dict.fromkeys(path.split(".")[0] for _, path in inside))
        # Python's own words cannot be attributes: `r.in_`.
        kind = _named_tuple("Outputs", [f"{n}_" if keyword.iskeyword(n) else n for n in names])
        places = [next((k for k, path in inside if path == name), -1) for name in names]  # −1: a record
        if places == list(range(len(paths))):
            flat: Callable[[Sequence[Any]], Any] = kind._make
            return flat
        makers = [None if place >= 0 else build(f"{prefix}{name}.") for place, name in zip(places, names)]
        return lambda values: kind(*(make(values) if make else values[place] for make, place in zip(makers, places)))

    return build("")
