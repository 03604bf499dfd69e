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
    t = File("loss_cross_entropy_options", "Cross-entropy with class weights, ignored labels and smoothed labels, by PyTorch's definitions.",
             ["std::loss::{cross_entropy, cross_entropy_soft}"])
    for names, shape, weighted, ignored, smoothing in (("b$, j$", (4, 3), True, False, 0), ("b$, j$, s$", (2, 3, 2), False, True, 0),
                                                       ("b$, j$", (3, 4), True, True, 0.3), ("b$, j$", (2, 3), False, False, 0.1)):
        out = names.replace("j$, ", "").replace(", j$", "")
        z = t.draw(*shape, low=-2, high=2)
        w = t.draw(shape[1], low=0.5, high=2) if weighted else np.ones(shape[1])
        wide = w.reshape([-1 if i == 1 else 1 for i in range(len(shape))])
        label = t.rng.integers(0, shape[1], np.delete(shape, 1)).astype(np.int32)
        logp = z - np.expand_dims(lse(z, 1), 1)
        if ignored:
            label.flat[1] = -100
        hot = np.moveaxis(np.eye(shape[1])[np.maximum(label, 0)], -1, 1)
        y = -((1 - smoothing) * hot + smoothing / shape[1]) * wide * logp
        y = np.where(label == -100, 0, y.sum(1))
        inputs = {"z": (z, names), "label": (label, out), **({"weight": (w, "j$")} if weighted else {})}
        more = "".join([", weight = weight$"] * weighted + [", ignore_index = -100"] * ignored + [f", label_smoothing = {smoothing}"] * (smoothing > 0))
        t.case(inputs, f"cross_entropy[j$](z$, label${more})", out, y)
        if not ignored:
            target = t.draw(*shape, low=0, high=1)
            y = -(((1 - smoothing) * target + smoothing / shape[1]) * wide * logp).sum(1)
            del inputs["label"]
            t.case({**inputs, "target": (target, names)}, f"cross_entropy_soft[j$](z$, target${more})", out, y)
    t.write()
    t = File("loss_kl_of_logarithms", "`kl_divergence` of logarithms: `kl_div` of PyTorch without its reduction, summed over the classes.",
             ["std::loss::kl_divergence"])
    p, q = t.draw(2, 3, low=0.1, high=1), t.draw(2, 3, low=0.1, high=1)
    y = (p * (L(p) - L(q))).sum(1)
    for more, a, b in ((", log_q = true", p, L(q)), (", log_p = true", L(p), q), (", log_p = true, log_q = true", L(p), L(q))):
        t.case({"p": (a, "b$, j$"), "q": (b, "b$, j$")}, f"kl_divergence[j$](p$, q${more})", "b$", y)
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
