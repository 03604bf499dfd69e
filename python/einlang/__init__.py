"""Einlang from Python: compile a program, call it with arrays, get arrays whose axes have names, and every derivative.

>>> import einlang, numpy as np
>>> p = einlang.compile("let x: [f32; i]; let y[i] = 2.0 * x[i]; let s = sum[i](y[i]);")
>>> r = p(x=np.array([1, 2, 3], np.float32))
>>> r.y.dims, float(r.s)
(('i',), 12.0)
>>> p.grad("s", wrt=["x"])(x=np.zeros(2, np.float32)).grads.x
[i: 2] [2.0, 2.0]
"""

import importlib as _importlib
import sys as _sys
import sysconfig as _sysconfig
from typing import Any as _Any

if _sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError(f"einlang needs a Python with a global lock, and {_sys.executable} is a free-threaded build")

from ._native import Array, Result, __version__
from . import array as _array  # attaches methods to Array
from .errors import (CallError, CompileError, CompileWarning, CopyError, Diagnostic, DimsError, Error, InputError, InternalError,
                     LabelError)
from .cells import Cell, cell
from .loop import Loop
from .program import Program, Value, compile

__all__ = ["Array", "CallError", "Cell", "CompileError", "CompileWarning", "CopyError", "Diagnostic",
           "DimsError", "Error", "InputError", "InternalError", "LabelError", "Loop", "Program", "Result", "Value", "cell", "compile", "__version__"]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext einlang` in a notebook."""
    from .magic import load

    load(shell)


def __getattr__(name: str) -> _Any:
    """`einlang.torch` and `einlang.jax`, which import PyTorch and JAX, when they are first used."""
    if name in ("torch", "jax"):
        return _importlib.import_module(f".{name}", __name__)
    if name in ("grad", "value_and_grad", "vjp", "jvp", "hvp", "jacobian", "hessian"):
        raise AttributeError(f"einlang.{name} does not exist: derivatives belong to programs, p = einlang.compile(…); p.grad(of, wrt)")
    raise AttributeError(f"module 'einlang' has no attribute {name!r}")
