"""The workloads: which program, which of its values, on which inputs. Peers find a case by its name.

A case's inputs are NumPy arrays by the name that they have in the program; those without coordinates are set as
numbers. `gradients` says how to read the gradient by an input off the outputs, so that a gradient can be compared
with differences of the NumPy peer's loss where no peer that differentiates is available.
"""

import dataclasses
from typing import Callable

import numpy

F32, F64 = numpy.float32, numpy.float64


@dataclasses.dataclass
class Case:
    row: str
    variant: str
    program: str
    inputs: Callable  # (random, sizes) -> {name: array}
    outputs: list
    full: dict
    quick: dict
    gradients: dict = dataclasses.field(default_factory=dict)
    tolerance: float = 2e-4  # relative to the largest magnitude in the array

    @property
    def name(self):
        return f"{self.row}.{self.variant}"

    def make(self, quick):
        random = numpy.random.default_rng(sum(map(ord, self.name.split(".")[0])))
        return self.inputs(random, self.quick if quick else self.full)


def normal(random, *shape, scale=1.0, dtype=F32):
    return (scale * random.standard_normal(shape)).astype(dtype)


def ew(r, s):
    return {"x": normal(r, s["n"])}


def rows(r, s):
    return {"x": normal(r, s["b"], s["k"]), "w": normal(r, s["b"], s["k"])}


def layernorm(r, s):
    return {**rows(r, s), "gamma": 1 + normal(r, s["k"], scale=0.1), "beta": normal(r, s["k"], scale=0.1)}


def gemm(r, s):
    return {"A": normal(r, s["m"], s["k"]), "B": normal(r, s["k"], s["n"])}


def contract(r, s):
    n = s["n"]
    return {"A": normal(r, n, n, n, n), "B": normal(r, n, n, n, n)}


def batched(r, s):
    n = s["n"]
    return {"X": normal(r, n, n, n, n), "Y": normal(r, n, n, n, n)}


def chain(r, s):
    n, scale = s["n"], s["n"] ** -0.5
    return {**{m: normal(r, n, n, scale=scale) for m in "ABC"}, "v": normal(r, n), "w": normal(r, n)}


def mlp(r, s):
    sizes = s["widths"]
    out = {"x": normal(r, s["n"], sizes[0]), "label": r.integers(0, sizes[-1], s["n"]).astype(numpy.int32)}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:]), 1):
        out[f"W{i}"] = normal(r, b, a, scale=(2 / a) ** 0.5)
        out[f"b{i}"] = normal(r, b, scale=0.1)
    return out


def hvp(r, s):
    out = mlp(r, s)
    for i in (1, 2, 3):
        out[f"v{i}"] = normal(r, *out[f"W{i}"].shape, scale=0.1)
        out[f"c{i}"] = normal(r, *out[f"b{i}"].shape, scale=0.1)
    return out


def conv(r, s):
    n, c, h = s["n"], s["c"], s["h"]
    return {"x": normal(r, n, c, h, h), "kernel": normal(r, c, c, 3, 3, scale=(2 / (9 * c)) ** 0.5),
            "bias": normal(r, c, scale=0.1), "weight": normal(r, n, c, h, h)}


def conv2(r, s):
    n, c, h = s["n"], s["c"], s["h"]
    return {"x": normal(r, n, c, h, h), "kernel": normal(r, c, c, 3, 3, scale=(2 / (9 * c)) ** 0.5),
            "weight": normal(r, n, c, (h + 1) // 2, (h + 1) // 2)}


def spmv(r, s):
    counts = r.integers(0, 2 * s["each"] + 1, s["n"])
    start = numpy.concatenate([[0], numpy.cumsum(counts)]).astype(numpy.int32)
    column = numpy.concatenate([numpy.sort(r.choice(s["n"], c, replace=False)) for c in counts])
    return {"start": start, "column": column.astype(numpy.int32), "value": normal(r, start[-1]), "x": normal(r, s["n"]),
            "w": normal(r, s["n"])}


def fft(r, s):
    return {n: normal(r, s["n"]) for n in ("re", "im")}


def attention(r, s):
    return {a: normal(r, s["b"], s["h"], s["t"], s["d"]) for a in "qkvw"}


def linalg(r, s):
    n = s["n"]
    a = numpy.eye(n) + normal(r, n, n, scale=0.5 * n ** -0.5, dtype=F64)
    return {"spd": a @ a.T + numpy.eye(n), "a": a, "b": normal(r, n, dtype=F64), "w": normal(r, n, n, dtype=F64)}


BLOCK = ("g1", "b1", "wq", "wk", "wv", "wo", "g2", "b2", "u", "bu", "w", "bw")


def block(r, s):
    m, h, f = s["m"], s["h"], 4 * s["m"]
    d = m // h
    shapes = {"g1": (m,), "b1": (m,), "wq": (h, d, m), "wk": (h, d, m), "wv": (h, d, m), "wo": (m, h, d), "g2": (m,),
              "b2": (m,), "u": (f, m), "bu": (f,), "w": (m, f), "bw": (m,)}
    out = {"x": normal(r, s["n"], s["t"], m), "target": normal(r, s["n"], s["t"], m), "step": numpy.int32(10)}
    for p, shape in shapes.items():
        out[p] = normal(r, *shape, scale=0.1 if len(shape) == 1 else m ** -0.5) + F32(p[0] == "g")
        out["m_" + p] = normal(r, *shape, scale=1e-3)
        out["v_" + p] = numpy.abs(normal(r, *shape, scale=1e-4)) + F32(1e-5)
    return out


def lstm(r, s):
    n, t, h = s["n"], s["t"], s["h"]
    return {"x": normal(r, n, t, h), "first": normal(r, n, h, scale=0.1), "w": normal(r, 4, h, h, scale=h ** -0.5),
            "u": normal(r, 4, h, h, scale=h ** -0.5), "bias": normal(r, 4, h, scale=0.1),
            "weight": normal(r, n, t, h)}


def ode(r, s):
    # Ten units of time whatever the number of steps: after that, chaos has amplified rounding too far.
    return {"first": numpy.array([1.0, 1.0, 20.0]), "sigma": F64(10), "rho": F64(28), "beta": F64(8 / 3),
            "dt": F64(s["time"] / s["steps"]), "steps": numpy.int32(s["steps"])}


def heat(r, s):
    return {"first": normal(r, s["n"], s["n"]), "w": normal(r, s["n"], s["n"]), "steps": numpy.int32(s["steps"])}


def kalman(r, s):
    position = numpy.cumsum(numpy.cumsum(0.05 * r.standard_normal(s["t"]))) * 0.01
    return {"seen": position + 0.5 * r.standard_normal(s["t"]),
            "F": numpy.array([[1.0, 0.1, 0.005], [0.0, 0.98, 0.1], [0.0, 0.0, 0.9]]),
            "Q": 0.01 * numpy.eye(3) + 0.001, "r": F64(0.25)}


def embed(r, s):
    return {"table": normal(r, s["v"], s["d"]), "token": r.integers(0, s["v"], s["n"]).astype(numpy.int32),
            "w": normal(r, s["n"], s["d"])}


def gmm(r, s):
    d, k = s["d"], s["k"]
    return {"x": normal(r, s["n"], d, dtype=F64), "alpha": normal(r, k, dtype=F64), "mu": normal(r, k, d, dtype=F64),
            "icf": normal(r, k, d + d * (d - 1) // 2, scale=0.3, dtype=F64)}


def colscan(r, s):
    return {**{n: normal(r, s["i"], s["t"]) for n in "xw"}, "decay": F32(0.9)}


def ensemble(r, s):
    first = numpy.array([1.0, 1.0, 20.0]) + normal(r, s["m"], 3, dtype=F64)
    return {"first": first, "dt": F64(s["time"] / s["steps"]), "steps": numpy.int32(s["steps"])}


def filters(r, s):
    one = kalman(r, s)
    return {**one, "seen": one["seen"][:, None] + normal(r, s["t"], s["b"], scale=0.1, dtype=F64)}


def newton(r, s):
    return {"first": F64(1.5), "force": normal(r, s["t"], dtype=F64), "dt": F64(0.01)}


def polyfit(r, s):
    x = r.uniform(-1, 1, s["n"])
    return {"x": x, "y": numpy.sin(3 * x) + normal(r, s["n"], scale=0.1, dtype=F64), "c": normal(r, s["k"], dtype=F64)}


def hdiff(r, s):
    return {"u": normal(r, s["k"], s["j"], s["i"]), "c": F32(0.1)}


def vadv(r, s):
    return {**{n: normal(r, s["k"], s["j"], s["i"]) for n in ("u", "speed")}, "dt": F32(0.5)}


def dp(r, s):
    return {"cost": numpy.abs(normal(r, s["n"], s["n"]))}


def plain(**named):
    """Gradients that are outputs themselves: input -> output."""
    return {to: (lambda outputs, inputs, name=name: outputs[name]) for to, name in named.items()}


def stepped(names, rate):
    """Gradients from `next_W = W - rate * gradient`."""
    return {n: (lambda o, i, n=n: (i[n].astype(F64) - o["next_" + n]) / rate) for n in names}


def averaged(names):
    """Gradients from Adam's `m = 0.9 * m + 0.1 * gradient`."""
    return {n: (lambda o, i, n=n: (o["next_m_" + n] - 0.9 * i["m_" + n].astype(F64)) / 0.1) for n in names}


MLP = ("W1", "b1", "W2", "b2", "W3", "b3")
MLP_FULL, MLP_QUICK = {"n": 128, "widths": (784, 512, 512, 10)}, {"n": 8, "widths": (12, 16, 16, 5)}
ROWS_FULL, ROWS_QUICK = {"b": 8192, "k": 1024}, {"b": 16, "k": 40}
ATTENTION_FULL, ATTENTION_QUICK = {"b": 4, "h": 8, "t": 512, "d": 64}, {"b": 2, "h": 2, "t": 12, "d": 8}
CONV_FULL, CONV_QUICK = {"n": 16, "c": 64, "h": 56}, {"n": 2, "c": 4, "h": 7}
LSTM_FULL, LSTM_QUICK = {"n": 16, "t": 128, "h": 256}, {"n": 3, "t": 5, "h": 8}
GMM_FULL, GMM_QUICK = {"n": 1000, "d": 32, "k": 25}, {"n": 20, "d": 5, "k": 3}
ENSEMBLE_FULL, ENSEMBLE_QUICK = {"m": 4096, "steps": 1000, "time": 2}, {"m": 5, "steps": 50, "time": 0.1}
GRID_FULL, GRID_QUICK = {"k": 160, "j": 256, "i": 256}, {"k": 4, "j": 9, "i": 11}
EMBED_FULL, EMBED_QUICK = {"v": 50000, "d": 256, "n": 8192}, {"v": 20, "d": 8, "n": 40}

CASES = [
    Case("ew", "forward", "ew", ew, ["y"], {"n": 1 << 24}, {"n": 1000}),
    Case("ew", "gradient", "ew", ew, ["loss", "dx"], {"n": 1 << 24}, {"n": 1000}, plain(x="dx")),
    Case("softmax", "forward", "softmax", rows, ["y"], ROWS_FULL, ROWS_QUICK),
    Case("softmax", "gradient", "softmax", rows, ["loss", "dx"], ROWS_FULL, ROWS_QUICK, plain(x="dx")),
    Case("layernorm", "forward", "layernorm", layernorm, ["y"], ROWS_FULL, ROWS_QUICK),
    Case("layernorm", "gradient", "layernorm", layernorm, ["loss", "dx", "dgamma", "dbeta"], ROWS_FULL, ROWS_QUICK,
         plain(x="dx", gamma="dgamma", beta="dbeta"), tolerance=1e-3),
    *[Case("gemm", f"{m}x{k}x{n}", "gemm", gemm, ["C"], {"m": m, "k": k, "n": n}, {"m": m // 16, "k": k // 16, "n": n // 16})
      for m, k, n in [(64,) * 3, (256,) * 3, (512,) * 3, (1024,) * 3, (2048,) * 3, (64, 4096, 64), (4096, 64, 4096)]],
    *[Case("contract", f"{n}", "contract", contract, ["C"], {"n": n}, {"n": n // 6}) for n in (24, 36, 48)],
    *[Case("contract", f"batched{n}", "contract", batched, ["Z"], {"n": n}, {"n": n // 6}) for n in (24, 48)],
    Case("chain", "forward", "chain", chain, ["y"], {"n": 1024}, {"n": 12}),
    Case("chain", "gradient", "chain", chain, ["loss", "dA", "dB", "dC", "dv"], {"n": 1024}, {"n": 12},
         plain(A="dA", B="dB", C="dC", v="dv")),
    Case("mlp", "forward", "mlp", mlp, ["loss"], MLP_FULL, MLP_QUICK),
    Case("mlp", "step", "mlp", mlp, ["loss"] + ["next_" + p for p in MLP], MLP_FULL, MLP_QUICK, stepped(MLP, 0.1)),
    Case("conv", "forward", "conv", conv, ["y"], CONV_FULL, CONV_QUICK),
    Case("conv", "gradient", "conv", conv, ["loss", "dx", "dkernel", "dbias"], CONV_FULL, CONV_QUICK,
         plain(x="dx", kernel="dkernel", bias="dbias"), tolerance=1e-3),
    Case("conv2", "forward", "conv2", conv2, ["y"], CONV_FULL, CONV_QUICK),
    Case("conv2", "gradient", "conv2", conv2, ["loss", "dx", "dkernel"], CONV_FULL, CONV_QUICK,
         plain(x="dx", kernel="dkernel"), tolerance=1e-3),
    Case("attention", "forward", "attention", attention, ["y"], ATTENTION_FULL, ATTENTION_QUICK),
    Case("attention", "gradient", "attention", attention, ["loss", "dq", "dk", "dv"], ATTENTION_FULL, ATTENTION_QUICK,
         plain(q="dq", k="dk", v="dv"), tolerance=1e-3),
    Case("block", "step", "block", block, ["loss"] + [f"next_{k}{p}" for p in BLOCK for k in ("", "m_", "v_")],
         {"n": 8, "t": 128, "m": 256, "h": 4}, {"n": 2, "t": 6, "m": 8, "h": 2}, averaged(BLOCK), tolerance=1e-3),
    Case("lstm", "forward", "lstm", lstm, ["y"], LSTM_FULL, LSTM_QUICK),
    Case("lstm", "gradient", "lstm", lstm, ["loss", "dx", "dw", "du", "dbias"], LSTM_FULL, LSTM_QUICK,
         plain(x="dx", w="dw", u="du", bias="dbias"), tolerance=1e-3),
    Case("ode", "forward", "ode", ode, ["last"], {"steps": 10**6, "time": 10}, {"steps": 1000, "time": 1}, tolerance=1e-6),
    Case("ode", "gradient", "ode", ode, ["loss", "dfirst", "dsigma", "drho", "dbeta"], {"steps": 10**5, "time": 10},
         {"steps": 1000, "time": 1}, plain(first="dfirst", sigma="dsigma", rho="drho", beta="dbeta"), tolerance=1e-6),
    Case("heat", "forward", "heat", heat, ["last"], {"n": 512, "steps": 1000}, {"n": 12, "steps": 10}),
    Case("heat", "gradient", "heat", heat, ["loss", "dfirst"], {"n": 512, "steps": 200}, {"n": 12, "steps": 10},
         plain(first="dfirst")),
    Case("kalman", "forward", "kalman", kalman, ["loss"], {"t": 10**5}, {"t": 50}, tolerance=1e-8),
    Case("kalman", "gradient", "kalman", kalman, ["loss", "dF", "dQ", "dr"], {"t": 10**5}, {"t": 50},
         plain(F="dF", Q="dQ", r="dr"), tolerance=1e-8),
    Case("embed", "forward", "embed", embed, ["y"], EMBED_FULL, EMBED_QUICK),
    Case("embed", "gradient", "embed", embed, ["loss", "dtable"], EMBED_FULL, EMBED_QUICK, plain(table="dtable")),
    Case("gmm", "forward", "gmm", gmm, ["loss"], GMM_FULL, GMM_QUICK, tolerance=1e-9),
    Case("gmm", "gradient", "gmm", gmm, ["loss", "dalpha", "dmu", "dicf"], GMM_FULL, GMM_QUICK,
         plain(alpha="dalpha", mu="dmu", icf="dicf"), tolerance=1e-8),
    Case("hvp", "product", "hvp", hvp, ["h" + p for p in MLP], MLP_FULL, MLP_QUICK, tolerance=2e-3),
    Case("dp", "forward", "dp", dp, ["loss"], {"n": 512}, {"n": 12}),
    Case("dp", "gradient", "dp", dp, ["loss", "dcost"], {"n": 512}, {"n": 12}, plain(cost="dcost"), tolerance=5e-3),
    Case("colscan", "forward", "colscan", colscan, ["y"], {"i": 2048, "t": 2048}, {"i": 10, "t": 30}),
    Case("colscan", "gradient", "colscan", colscan, ["loss", "dx"], {"i": 2048, "t": 2048}, {"i": 10, "t": 30},
         plain(x="dx")),
    Case("ensemble", "forward", "ensemble", ensemble, ["last"], ENSEMBLE_FULL, ENSEMBLE_QUICK, tolerance=1e-6),
    Case("ensemble", "gradient", "ensemble", ensemble, ["loss", "dfirst"], ENSEMBLE_FULL, ENSEMBLE_QUICK,
         plain(first="dfirst"), tolerance=1e-6),
    Case("filters", "forward", "filters", filters, ["loss"], {"t": 200, "b": 1024}, {"t": 20, "b": 5}, tolerance=1e-8),
    Case("filters", "gradient", "filters", filters, ["loss", "dF", "dQ", "dr"], {"t": 200, "b": 1024}, {"t": 20, "b": 5},
         plain(F="dF", Q="dQ", r="dr"), tolerance=1e-8),
    Case("newton", "forward", "newton", newton, ["last"], {"t": 10**5}, {"t": 200}, tolerance=1e-8),
    Case("newton", "gradient", "newton", newton, ["last", "dfirst"], {"t": 10**5}, {"t": 50}, plain(first="dfirst"),
         tolerance=1e-8),
    Case("polyfit", "forward", "polyfit", polyfit, ["loss"], {"n": 10**5, "k": 32}, {"n": 40, "k": 7}, tolerance=1e-9),
    Case("polyfit", "gradient", "polyfit", polyfit, ["loss", "dc"], {"n": 10**5, "k": 32}, {"n": 40, "k": 7}, plain(c="dc"),
         tolerance=1e-9),
    Case("hdiff", "forward", "hdiff", hdiff, ["y"], GRID_FULL, GRID_QUICK),
    Case("vadv", "forward", "vadv", vadv, ["y"], GRID_FULL, GRID_QUICK),
    Case("vadv", "gradient", "vadv", vadv, ["loss", "du"], GRID_FULL, GRID_QUICK, plain(u="du")),
    Case("spmv", "forward", "spmv", spmv, ["y"], {"n": 32768, "each": 16}, {"n": 20, "each": 3}),
    Case("spmv", "gradient", "spmv", spmv, ["loss", "dvalue", "dx"], {"n": 32768, "each": 16}, {"n": 20, "each": 3},
         plain(value="dvalue", x="dx")),
    Case("fft", "forward", "fft", fft, ["out_re", "out_im"], {"n": 1 << 16}, {"n": 16}),
    *[Case("linalg", f, "linalg", linalg, out, {"n": 500}, {"n": 6}, tolerance=1e-8)
      for f, out in [("cholesky", ["l"]), ("solve", ["x"]), ("qr", ["qr_loss"]), ("svd", ["svd_loss"]), ("det", ["d"])]],
    *[Case("linalg", f + "_gradient", "linalg", linalg, [loss, *by.values()], {"n": 500}, {"n": 6}, plain(**by), tolerance=1e-6)
      for f, loss, by in [("cholesky", "cholesky_loss", {"spd": "dcholesky"}), ("qr", "qr_loss", {"a": "dqr"}),
                          ("solve", "solve_loss", {"a": "dsolve", "b": "dright"}), ("svd", "svd_loss", {"a": "dsvd"}),
                          ("det", "d", {"a": "ddet"})]],
]
