"""Programs as PyTorch operators: `f = einlang.torch.function(p)` computes with tensors, differentiates to any order,
batches under `torch.vmap` and stays whole under `torch.compile`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

from . import _native
from .array import EIN_NAMES, NAMES
from .errors import InputError
from .inputs import _framework, _described, _number, quoted
from .operators import Callee, bundle, by_position, choose, making
from .program import Program

try:
    # Not `import torch`: type checkers would follow it, which takes them half a minute.
    _torch: Any = importlib.import_module("torch")
except ImportError as _error:
    raise ImportError("einlang.torch needs PyTorch, which is not installed: pip install torch") from _error

_EXCHANGE = getattr(_torch.Tensor, "__dlpack_c_exchange_api__", None)
if _EXCHANGE is None:
    raise ImportError(f"einlang.torch needs PyTorch 2.13 or newer, whose tensors offer DLPack's C functions; this is "
                      f"{_torch.__version__}")

_Number = (int, _torch.SymInt)
_library = _torch.library.Library("einlang", "FRAGMENT")
_transforming = _torch._C._are_functorch_transforms_active
_operators: dict[tuple[int, str], _Operator] = {}


def _dtype(ein_dtype: str) -> Any:
    return getattr(_torch, NAMES[EIN_NAMES.index(ein_dtype)])


class _Operator:
    """A callee that is registered as `einlang::<name>_<digest>`. Its last argument is how many coordinates of a batch
    stand before those of the program."""

    def __init__(self, callee: Callee, stem: str) -> None:
        self.callee, self.stem = callee, stem
        self.call: Any
        self.count = len(callee.inputs)
        self.dtypes = [_dtype(v.ein_dtype) for v in callee.outputs]
        self.name = f"{stem}_{callee.digest % 2**64:016x}"
        kinds = ["SymInt" if k in callee.numbers else "Tensor" for k in range(self.count)]
        arguments = ", ".join([*(f"{kind} input_{k}" for k, kind in enumerate(kinds)), "int levels"])
        results = "Tensor" if len(self.dtypes) == 1 else f"({', '.join(['Tensor'] * len(self.dtypes))})"
        _library.define(f"{self.name}({arguments}) -> {results}", tags=(_torch.Tag.pt2_compliant_tag,))
        self.kernel = _native.TensorCall(callee.program, _EXCHANGE, self.adapt)
        _library.impl(self.name, self.kernel, "CompositeExplicitAutograd")
        whole = f"einlang::{self.name}"
        _torch.library.register_fake(whole, self.fake, lib=_library)
        _torch.library.register_autograd(whole, self.backward, setup_context=self.remember, lib=_library)
        _torch.library.register_vmap(whole, lambda *args: self.vmap(self.call, *args), lib=_library)
        self.call = getattr(_torch.ops.einlang, self.name).default
        self.transformed = _transformed(self)

    def run(self, *args: Any) -> Any:
        """A call. What `register_autograd` makes refuses the transformations of torch.func, so those get a function of
        autograd that says the same."""
        if _transforming() and not _torch.compiler.is_compiling():
            return self.transformed.apply(*args)
        return self.call(*args)

    # ---- arguments that do not fit

    def check(self, args: Sequence[Any]) -> int:
        """Raises an exception for an argument that the program cannot take. Gives the position of the first tensor; −1
        when there is none."""
        levels, first = args[-1], -1
        for k, (given, wanted) in enumerate(zip(args, self.callee.inputs)):
            if k in self.callee.numbers:
                continue
            name = wanted.name
            if given.device.type not in ("cpu", "meta"):
                raise InputError(f"input `{name}` is on the device {given.device}, but programs run on the CPU: pass "
                                 f"`{name}.cpu()`")
            if given.layout != _torch.strided:
                raise InputError(f"input `{name}` is a tensor of the layout {given.layout}: pass `{name}.to_dense()`")
            dtype = _dtype(wanted.ein_dtype)
            if given.dtype != dtype:
                raise InputError(f"input `{name}` holds {wanted.ein_dtype}, but the tensor given holds {given.dtype}: pass "
                                 f"`{name}.to({dtype})`")
            if given.dim() != len(wanted.dims) + levels:
                raise InputError(f"input `{name}` has {len(wanted.dims)} coordinates, {wanted.dims}, but the tensor given has "
                                 f"the shape {tuple(given.shape[levels:])}")
            first = k if first < 0 else first
        return first

    def adapt(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments that the kernel takes, or an exception: called for those that it does not take as they are."""
        self.check(args)
        made = []
        for k, (given, wanted) in enumerate(zip(args, self.callee.inputs)):
            if k in self.callee.numbers:
                made.append(_number(int(given), wanted.ein_dtype, wanted.name))
            else:
                dense = given.detach().resolve_neg().contiguous()
                # A tensor over foreign memory may begin anywhere.
                dense = dense if dense.data_ptr() % dense.element_size() == 0 else dense.clone()
                if dense.data_ptr() != given.data_ptr():
                    self.callee.program._count_copy()
                made.append(dense)
        return (*made, args[-1])

    # ---- what PyTorch asks for

    def fake(self, *args: Any) -> Any:
        """Results without values: shapes may be symbolic."""
        callee, levels = self.callee, args[-1]
        first = self.check(args)
        tensors = {k: v for k, v in enumerate(callee.inputs) if k not in callee.numbers}
        shapes = {v.name: args[k].shape[levels:] for k, v in tensors.items()}
        numbers = {callee.inputs[k].name: args[k] for k in callee.numbers}
        batch = args[first].shape[:levels] if first >= 0 else ()
        known = [*numbers.values(), *(size for shape in shapes.values() for size in shape)]
        if all(isinstance(size, int) for size in known):
            every = {**shapes, **{name: () for name in numbers}}
            found = list(callee.program.extents(every, numbers).values())
        else:
            names = callee.shapes.names(shapes, numbers)
            for name, shape in shapes.items():
                self.check_extents(name, shape, names)
            found = [tuple(formula(names, _torch.sym_max, _torch.sym_min) for formula in callee.shapes.outputs[v.name])
                     for v in callee.outputs]
        like = args[first] if first >= 0 else _torch.empty(())
        made = tuple(like.new_empty((*batch, *shape), dtype=dtype) for shape, dtype in zip(found, self.dtypes))
        return made[0] if len(made) == 1 else made

    def check_extents(self, name: str, shape: Sequence[Any], names: dict[str, Any]) -> None:
        """What a call checks when it begins, as conditions on symbolic sizes."""
        callee = self.callee
        for position, (size, formula) in enumerate(zip(shape, callee.shapes.inputs[name])):
            source = callee.shapes.sources.get(formula.text)
            if source == (name, position):
                continue
            where = f"`{source[0]}` has {names[formula.text]} there" if source else f"it is `{formula.text}`"

            def message(size: Any = size, position: int = position, where: str = where) -> str:
                return (f"input `{name}` has the extent {size} along `{callee.program.inputs[name].dims[position]}`, but "
                        f"{where}")

            _torch._check(size == formula(names, _torch.sym_max, _torch.sym_min), message)

    def remember(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Called after the forward pass of an operator that has a backward pass."""
        numbers = self.callee.numbers
        ctx.save_for_backward(*(given for k, given in enumerate(inputs[:-1]) if k not in numbers))
        ctx.numbers, ctx.levels = [inputs[k] for k in numbers], inputs[-1]
        ctx.set_materialize_grads(False)

    def backward(self, ctx: Any, *cotangents: Any) -> Any:
        callee = self.callee
        wanted = tuple(k for k in range(self.count) if ctx.needs_input_grad[k])
        for k in wanted:
            if k not in callee.wrt:
                raise callee.refuse_gradient(k)
        of = tuple(k for k in callee.of() if cotangents[k] is not None)
        gradients: list[Any] = [None] * (self.count + 1)
        if not of or not wanted:
            return tuple(gradients)
        inputs, saved, numbers = [], iter(ctx.saved_tensors), iter(ctx.numbers)
        for k in range(self.count):
            inputs.append(next(numbers if k in callee.numbers else saved))
        product = _registered(callee.product(of, wanted), f"{self.stem}_vjp")
        made = product.run(*inputs, *(cotangents[k] for k in of), ctx.levels)
        for k, gradient in zip(wanted, (made,) if len(wanted) == 1 else made):
            gradients[k] = gradient
        return tuple(gradients)

    def vmap(self, call: Any, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """A further coordinate of the batch, by `call`. What is not batched is repeated by a stride of zero, not by a copy."""
        moved = []
        for k, (given, dim) in enumerate(zip(args[:-1], in_dims)):
            if k in self.callee.numbers:
                moved.append(given)
            elif dim is None:
                moved.append(given.unsqueeze(0).expand(info.batch_size, *given.shape))
            else:
                moved.append(given.movedim(dim, 0))
        made = call(*moved, args[-1] + 1)
        return made, 0 if len(self.dtypes) == 1 else (0,) * len(self.dtypes)


def _transformed(operator: _Operator) -> Any:
    def forward(*args: Any) -> Any:
        return operator.call(*args)

    members = {"forward": forward, "setup_context": operator.remember, "backward": operator.backward,
               "vmap": lambda *args: operator.vmap(operator.run, *args)}
    made = {name: staticmethod(member) for name, member in members.items()}
    return type(f"Einlang_{operator.name}", (_torch.autograd.Function,), made)


def _registered(callee: Callee, stem: str) -> _Operator:
    key = (callee.digest, stem)
    with making:
        if key not in _operators:
            _operators[key] = _Operator(callee, stem)
        return _operators[key]


class Function:
    """A program as a function of tensors: by position in the order of its inputs, or by name. One output is returned by
    itself, several as a named tuple."""

    def __init__(self, program: Program, wrt: str | Sequence[str] | None = None) -> None:
        callee = choose(program, wrt)
        stem = re.sub(r"[^A-Za-z0-9]+", "_", program.name.rsplit("/", 1)[-1].removesuffix(".ein")).strip("_")
        self.program = program
        self._callee = callee
        self._operator = _registered(callee, stem or "program")
        self._call = self._operator.run
        self._count = len(callee.inputs)
        self._bundle = bundle(callee)
        self._names = [v.name for v in callee.inputs]
        self._kinds = [_Number if k in callee.numbers else _torch.Tensor for k in range(self._count)]

    def __call__(self, *args: Any, **given: Any) -> Any:
        # torch.compile follows what is written here, so the usual cases are plain Python.
        every, named = args, False
        if given:
            names = self._names[len(args):]
            named = len(given) == len(names) and all(name in given for name in names)
            if named:
                every = (*args, *[given[name] for name in names])
        fit = len(every) == self._count and all(isinstance(a, kind) for a, kind in zip(every, self._kinds))
        if not fit or given and not named:
            every = tuple(self._argument(k, a) for k, a in enumerate(by_position(self._callee, args, given)))
        made = self._call(*every, 0)
        return made if self._bundle is None else self._bundle(made)

    def _argument(self, k: int, given: Any) -> Any:
        """A tensor, or a number as a literal of the program would be taken."""
        wanted = self._callee.inputs[k]
        if k in self._callee.numbers:
            if isinstance(given, _torch.SymInt):
                return given
            return _number(given.item() if hasattr(given, "item") else given, wanted.ein_dtype, wanted.name)
        if isinstance(given, _torch.Tensor):
            return given
        if isinstance(given, (bool, int, float)) and not wanted.dims and _framework(given) == "builtins":
            return _torch.tensor(_number(given, wanted.ein_dtype, wanted.name), dtype=_dtype(wanted.ein_dtype))
        if _framework(given) == "numpy":
            raise InputError(f"input `{wanted.name}` is an array of NumPy: pass `torch.from_numpy({wanted.name})`, or call the "
                             f"program itself, which takes arrays")
        raise InputError(f"input `{wanted.name}` is {_described(given)}: a function of einlang.torch takes tensors")

    def __reduce__(self) -> tuple[Any, ...]:
        return function, (self.program, [self._callee.inputs[k].name for k in self._callee.wrt])

    def __repr__(self) -> str:
        by = quoted([self._callee.inputs[k].name for k in self._callee.wrt])
        return f"<einlang.torch.Function einlang::{self._operator.name}, differentiable by {by}>"


def function(program: Program, wrt: str | Sequence[str] | None = None) -> Function:
    """The program as a differentiable function of tensors on the CPU.

    `wrt`: the inputs or records that gradients may be taken by, all floats by default. A gradient by another input is an
    error, never a zero."""
    return Function(program, wrt)
