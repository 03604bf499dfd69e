import numpy as np
from scipy.special import erf


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


ACTIVATIONS = {
    "relu": ("relu(x$)", lambda x: np.maximum(x, 0)),
    "sigmoid": ("sigmoid(x$)", sigmoid),
    "tanh": ("tanh(x$)", np.tanh),
    "leaky_relu": ("leaky_relu(x$, 0.01)", lambda x: np.where(x > 0, x, 0.01 * x)),
    "gelu": ("gelu(x$)", lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))),
    "gelu_tanh": ("gelu_tanh(x$)", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "swish": ("swish(x$)", lambda x: x * sigmoid(x)),
    "mish": ("mish(x$)", lambda x: x * np.tanh(softplus(x))),
    "elu": ("elu(x$, 1.0)", lambda x: np.where(x > 0, x, np.expm1(x))),
    "selu": ("selu(x$)", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "softplus": ("softplus(x$)", softplus),
}


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def make(File):
    for name, (expr, f) in ACTIVATIONS.items():
        back = name not in ("selu", "softplus")
        t = File(f"activation_{name}", f"`{name}` of a number, a vector and a matrix.",
                 [f"std::nn::backward::{name}_backward"] if back else [])
        backward = expr.replace("(x$", "_backward(g$, x$") if back else None
        for names, shape in (("", ()), ("i$", (5,)), ("i$, j$", (2, 3))):
            x = t.draw(*shape, low=-3, high=3, away=[0.0])
            t.case({"x": (x, names)}, expr, names, f(x), backward=backward)
        t.write()
    t = File("activation_softmax", "`softmax` along the only, the last and the middle coordinate, and its logarithm.",
             ["std::nn::backward::softmax_backward"])
    for names, shape, j, axis in (("j$", (4,), "j$", 0), ("b$, j$", (2, 3), "j$", 1), ("b$, j$, t$", (2, 3, 2), "j$", 1)):
        x = t.draw(*shape, low=-3, high=3)
        t.case({"x": (x, names)}, f"softmax[{j}](x$)", names, softmax(x, axis),
               backward=f"softmax_backward[{j}](g$, x$)")
        t.case({"x": (x, names)}, f"log_softmax[{j}](x$)", names, np.log(softmax(x, axis)))
    t.write()
    t = File("activation_prelu", "`prelu` with one slope, a slope per feature, all of them, and per channel.",
             ["std::nn::layers::{prelu, prelu_channels}", "std::nn::backward::prelu_backward"])
    for names, shape, anames, ashape in (("i$, j$", (2, 3), "", ()), ("i$, j$", (3, 2), "j$", (2,)), ("i$", (4,), "i$", (4,))):
        x, a = t.draw(*shape, away=[0.0]), t.draw(*ashape)
        t.case({"x": (x, names), "a": (a, anames)}, "prelu(x$, a$)", names, np.where(x > 0, x, a * x),
               backward="prelu_backward(g$, x$, a$)")
    x, a = t.draw(2, 3, 2, away=[0.0]), t.draw(3)
    t.case({"x": (x, "n$, c$, k$"), "a": (a, "c$")}, "prelu_channels[c$](x$, a$)", "n$, c$, k$",
           np.where(x > 0, x, a[:, None] * x))
    t.write()
