"""How long a call of a PyTorch operator and of a JAX function takes, beside an empty operator and an empty target that are
registered in the same way. The bar is 3 µs more. Usage: operators.py   (with the package, PyTorch and JAX installed, and c++)"""

import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import einlang

PROGRAM = "let x: f32; let y: f32; let z = x + y;"
EMPTY = """
#include "xla.h"
using namespace einlang::xla;
extern "C" Error* empty(CallFrame* frame) {
  if (Extension* e = frame->extensions; e && e->type == kMetadata) {
    reinterpret_cast<MetadataExtension*>(e)->metadata->version = {sizeof(Version), nullptr, kMajor, kMinor};
  }
  return nullptr;
}
"""


def measure(calls, count=2000, rounds=15):
    """The least median of a call in µs, of functions that take turns, so that a busy machine hurts them alike."""
    best = {name: float("inf") for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times = []
            for _ in range(count):
                begin = time.perf_counter()
                call()
                times.append(time.perf_counter() - begin)
            best[name] = min(best[name], statistics.median(times) * 1e6)
    return best


def report(title, best):
    empty, ours = best["empty"], best["einlang"]
    print(f"{title}: empty {empty:.2f} µs, Einlang {ours:.2f} µs, {ours - empty:+.2f} µs (bar: +3)")


def torch_calls():
    import torch

    library = torch.library.Library("empty", "FRAGMENT")
    library.define("operator(Tensor x, Tensor y, int levels) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
    library.impl("operator", lambda x, y, levels: torch.empty(()), "CompositeExplicitAutograd")
    torch.library.register_fake("empty::operator", lambda x, y, levels: torch.empty(()), lib=library)
    torch.library.register_autograd("empty::operator", lambda ctx, g: (g, g, None),
                                    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]), lib=library)
    empty = torch.ops.empty.operator.default
    f = einlang.torch.function(einlang.compile(PROGRAM))
    x, y = torch.tensor(1.0), torch.tensor(2.0)
    assert f(x, y) == 3
    report("PyTorch operator", measure({"empty": lambda: empty(x, y, 0), "einlang": lambda: f._operator.call(x, y, 0)}))
    report("PyTorch function", measure({"empty": lambda: empty(x, y, 0), "einlang": lambda: f(x, y)}))
    with torch.enable_grad():
        u, v = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
        report("PyTorch operator, inputs that require gradients",
               measure({"empty": lambda: empty(u, v, 0), "einlang": lambda: f._operator.call(u, v, 0)}))
    library._destroy()


def jax_calls():
    import jax

    with tempfile.TemporaryDirectory() as folder:
        source, made = pathlib.Path(folder, "empty.cc"), pathlib.Path(folder, "empty.so")
        source.write_text(EMPTY)
        headers = pathlib.Path(__file__).resolve().parents[1] / "python/src"
        subprocess.run(["c++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{headers}", str(source), "-o", str(made)], check=True)
        handler = ctypes.CDLL(str(made)).empty
    jax.ffi.register_ffi_target("empty", jax.ffi.pycapsule(handler), platform="cpu", api_version=1)
    f = einlang.jax.function(einlang.compile(PROGRAM))
    result = jax.ShapeDtypeStruct((), np.float32)
    x, y = jax.numpy.float32(1), jax.numpy.float32(2)
    attributes = {"program": np.int64(1), "numbers": np.array([], np.int64)}
    empty = jax.jit(lambda x, y: jax.ffi.ffi_call("empty", result)(x, y, **attributes))
    ours = jax.jit(lambda x, y: f(x, y))
    assert ours(x, y) == 3
    report("JAX, jitted", measure({"empty": lambda: empty(x, y).block_until_ready(),
                                   "einlang": lambda: ours(x, y).block_until_ready()}))
    report("JAX, not jitted", measure({"empty": lambda: empty(x, y).block_until_ready(),
                                       "einlang": lambda: f(x, y).block_until_ready()}))


if __name__ == "__main__":
    torch_calls()
    jax_calls()
