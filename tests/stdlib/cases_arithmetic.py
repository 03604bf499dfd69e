import numpy as np

BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "floor_divide": np.floor_divide, "modulo": np.mod,
}
UNARY = {
    "negate": ("negate(x$)", np.negative, -2, 2), "sign": ("sign(x$)", np.sign, -2, 2),
    "exp": ("exp(x$)", np.exp, -2, 2), "log": ("log(x$)", np.log, 0.2, 3), "log10": ("log10(x$)", np.log10, 0.2, 3),
    "log2": ("log2(x$)", np.log2, 0.2, 3), "sqrt": ("sqrt(x$)", np.sqrt, 0.2, 3), "abs": ("abs(x$)", np.abs, -2, 2),
    "clip": ("clip(x$, -0.5, 0.75)", lambda x: np.clip(x, -0.5, 0.75), -2, 2),
}


def make(File):
    for name, f in BINARY.items():
        t = File(f"arithmetic_{name}", f"`{name}` of equal shapes, with a missing coordinate, and with one number.",
                 [f"std::ops::{name}", f"std::nn::backward::{name}_backward"])
        for names, shape, bnames, bshape in (("", (), "", ()), ("i$, j$", (2, 3), "i$, j$", (2, 3)),
                                             ("i$, j$", (3, 4), "j$", (4,)), ("i$, j$", (2, 2), "", ())):
            positive = name == "power"
            a = t.draw(*shape, low=0.2 if positive else -3, high=3, away=[0.0])
            b = t.draw(*bshape, low=0.3, high=2) if not positive else t.draw(*bshape, low=-2, high=2)
            if name in ("floor_divide", "modulo"):  # away from the jumps
                b = np.where(b < 1, b + 0.7, b)
                q = np.floor(a / b)
                a = np.round((q + 0.25 + 0.5 * (a / b - q)) * b, 6)
            t.case({"a": (a, names), "b": (b, bnames)}, f"{name}(a$, b$)", names, f(a, b),
                   backward=f"{name}_backward(g$, a$, b$)")
        t.write()
    for name, (expr, f, low, high) in UNARY.items():
        uses = ([f"std::nn::backward::{name}_backward"] if name != "sign" else []) + (["std::ops::negate"] if name == "negate" else [])
        t = File(f"elementwise_{name}", f"`{name}` of a number, a vector and a matrix.", uses)
        for names, shape in (("", ()), ("i$", (4,)), ("i$, j$", (2, 3))):
            x = t.draw(*shape, low=low, high=high, away=[0.0, -0.5, 0.75])
            t.case({"x": (x, names)}, expr, names, f(x), derivative=name != "sign",
                   backward=expr.replace("(x$", "_backward(g$, x$") if name != "sign" else None)
        t.write()
    t = File("matrix_matmul", "`matmul` of matrices, of batches, with a matrix for the whole batch; `matvec`.",
             ["std::ops::{matmul, matvec}", "std::nn::backward::{matmul_backward, matvec_backward}"])
    for a, b, an, bn, out in (((2, 3), (3, 4), "i$, k$", "k$, j$", "i$, j$"),
                              ((2, 2, 3), (2, 3, 2), "n$, i$, k$", "n$, k$, j$", "n$, i$, j$"),
                              ((3, 2, 2), (2, 3), "n$, i$, k$", "k$, j$", "n$, i$, j$"),
                              ((1, 1), (1, 1), "i$, k$", "k$, j$", "i$, j$")):
        x, y = t.draw(*a), t.draw(*b)
        t.case({"a": (x, an), "b": (y, bn)}, "matmul(a$, b$)", out, x @ y, backward="matmul_backward(g$, a$, b$)")
    x, y = t.draw(2, 3, 4), t.draw(2, 4)
    t.case({"a": (x, "n$, i$, k$"), "v": (y, "n$, k$")}, "matvec(a$, v$)", "n$, i$", np.einsum("nik,nk->ni", x, y),
           backward="matvec_backward(g$, a$, v$)")
    t.write()
    t = File("matrix_transpose", "`transpose` of a matrix, a row and a batch.",
             ["std::ops::transpose", "std::nn::backward::transpose_backward"])
    for names, shape, out in (("i$, j$", (2, 3), "j$, i$"), ("i$, j$", (1, 4), "j$, i$"), ("n$, i$, j$", (2, 3, 2), "n$, j$, i$")):
        x = t.draw(*shape)
        t.case({"a": (x, names)}, "transpose(a$)", out, np.swapaxes(x, -1, -2), backward="transpose_backward(g$, a$)")
    t.write()
    t = File("matrix_dot_outer", "`dot` and `outer`.", ["std::ops::{dot, outer}", "std::nn::backward::{dot_backward, outer_backward}"])
    for n, m in ((1, 2), (3, 2), (4, 4)):
        x, y, z = t.draw(n), t.draw(n), t.draw(m)
        t.case({"a": (x, "i$"), "b": (y, "i$")}, "dot(a$, b$)", "", x @ y, backward="dot_backward(g$, a$, b$)")
        t.case({"a": (x, "i$"), "b": (z, "j$")}, "outer(a$, b$)", "i$, j$", np.outer(x, z), backward="outer_backward(g$, a$, b$)")
    t.write()
    for name, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min)):
        t = File(f"reduction_{name}", f"`{name}` over the only, the last and the middle coordinate.",
                 [f"std::nn::backward::{name}_backward"])
        for names, shape, axis, out in (("j$", (4,), 0, ""), ("b$, j$", (2, 3), 1, "b$"), ("b$, j$, k$", (2, 3, 2), 1, "b$, k$")):
            x = t.draw(*shape)
            t.case({"x": (x, names)}, f"{name}[j$](x$)", out, f(x, axis), backward=f"{name}_backward[j$](g$, x$)")
        t.write()
