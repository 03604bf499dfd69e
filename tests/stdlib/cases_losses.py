import numpy as np

L = np.log


def huber(p, t, d=0.7):
    a = np.abs(p - t)
    return np.where(a <= d, 0.5 * a * a, d * (a - 0.5 * d))


def smooth(p, t, b=0.7):
    a = np.abs(p - t)
    return np.where(a < b, 0.5 * a * a / b, a - 0.5 * b)


def bce(p, y):
    return -(y * L(p) + (1 - y) * L(1 - p))


def focal(p, y, a=0.25, g=2.0):
    return -(a * (1 - p) ** g * y * L(p) + (1 - a) * p**g * (1 - y) * L(1 - p))


def logits(z, y):
    return bce(1 / (1 + np.exp(-z)), y)


# expression, function, range of the prediction, range of the target (None: a label)
ELEMENTWISE = {
    "mse": ("", lambda p, t: (p - t) ** 2, (-2, 2), (-2, 2)),
    "mae": ("", lambda p, t: np.abs(p - t), (-2, 2), (-2, 2)),
    "huber": (", 0.7", huber, (-2, 2), (-2, 2)),
    "smooth_l1": (", 0.7", smooth, (-2, 2), (-2, 2)),
    "hinge": ("", lambda p, y: np.maximum(0, 1 - y * p), (-2, 2), "signs"),
    "bce": ("", bce, (0.1, 0.9), (0.1, 0.9)),
    "bce_safe": (", 0.2", lambda p, y: bce(np.clip(p, 0.2, 0.8), y), (0.05, 0.95), (0.1, 0.9)),
    "bce_with_logits": ("", logits, (-3, 3), (0, 1)),
    "focal": (", 0.25, 2.0", focal, (0.1, 0.9), (0.1, 0.9)),
}


def lse(z, axis):
    m = z.max(axis, keepdims=True)
    return (m + L(np.exp(z - m).sum(axis, keepdims=True))).squeeze(axis)


def make(File):
    for name, (extra, f, p_range, t_range) in ELEMENTWISE.items():
        t = File(f"loss_{name}", f"`{name}` of a number, a vector and a matrix.",
                 [f"std::loss::{name}", f"std::loss::backward::{name}_backward"])
        for names, shape in (("", ()), ("i$", (4,)), ("i$, j$", (2, 3))):
            p = t.draw(*shape, low=p_range[0], high=p_range[1], away=[0.2, 0.8])
            y = np.where(t.draw(*shape) > 0, 1.0, -1.0) if t_range == "signs" else t.draw(*shape, low=t_range[0], high=t_range[1])
            t.case({"p": (p, names), "t": (y, names)}, f"{name}(p$, t$)".replace(")", extra + ")"), names, f(p, y),
                   backward=f"{name}_backward(g$, p$, t${extra})", backward_count=1)
        t.write()
    t = File("loss_cross_entropy", "Cross-entropy from logits: by class and by probabilities, of a row, a batch, and with a coordinate behind.",
             ["std::loss::{cross_entropy, cross_entropy_soft}",
              "std::loss::backward::{cross_entropy_backward, cross_entropy_soft_backward}"])
    for names, shape, axis, out in (("j$", (4,), 0, ""), ("b$, j$", (3, 4), 1, "b$"), ("b$, j$, t$", (2, 3, 2), 1, "b$, t$")):
        z = t.draw(*shape, low=-3, high=3)
        label = t.rng.integers(0, shape[axis], np.delete(shape, axis)).astype(np.int32)
        picked = np.take_along_axis(z, np.expand_dims(label, axis), axis).squeeze(axis)
        t.case({"z": (z, names), "label": (label, out)}, "cross_entropy[j$](z$, label$)", out, lse(z, axis) - picked,
               backward="cross_entropy_backward[j$](g$, z$, label$)")
        target = t.draw(*shape, low=0, high=1)
        t.case({"z": (z, names), "target": (target, names)}, "cross_entropy_soft[j$](z$, target$)", out,
               (target * (np.expand_dims(lse(z, axis), axis) - z)).sum(axis),
               backward="cross_entropy_soft_backward[j$](g$, z$, target$)", backward_count=1)
    t.write()
    for name, f in (("kl_divergence", lambda p, q, k: (p * (L(p) - L(q))).sum(k)),
                    ("cosine", lambda a, b, k: 1 - (a * b).sum(k) / np.sqrt((a * a).sum(k) * (b * b).sum(k)))):
        t = File(f"loss_{name}", f"`{name}` along the only, the last and the middle coordinate.",
                 [f"std::loss::{name}", f"std::loss::backward::{name}_backward"])
        for names, shape, axis, out in (("j$", (3,), 0, ""), ("b$, j$", (2, 3), 1, "b$"), ("b$, j$, t$", (2, 3, 2), 1, "b$, t$")):
            p, q = t.draw(*shape, low=0.1, high=1), t.draw(*shape, low=0.1, high=1)
            t.case({"p": (p, names), "q": (q, names)}, f"{name}[j$](p$, q$)", out, f(p, q, axis),
                   backward=f"{name}_backward[j$](g$, p$, q$)")
        t.write()
