"""Layers as functions of records: what PyTorch's modules compute from the same weights, by their documented formulas."""

import numpy as np
from cases_layers import conv, normal, transposed
from scipy.special import erf


def record(names):
    """`{ w: w_$, b: b_$ }`"""
    return "{ " + ", ".join(f"{n}: {n}_$" for n in names) + " }"


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def heads(x, y, p, causal):
    """torch.nn.MultiheadAttention, with a coordinate for the heads."""
    q, k, v = (np.einsum("...tm,hdm->...htd", s, p["w" + n]) + p["b" + n][:, None] for n, s in (("q", x), ("k", y), ("v", y)))
    z = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        z = np.where(np.tri(*z.shape[-2:]) > 0, z, -np.inf)
    return np.einsum("...htd,ohd->...to", softmax(z) @ v, p["wo"]) + p["bo"]


def grouped(x, k, stride, pad, dilation, groups):
    c, o = x.shape[-k.ndim + 1] // groups, k.shape[0] // groups
    d = k.ndim - 2
    at = lambda g: (..., slice(g * c, (g + 1) * c), *[slice(None)] * d)
    return np.concatenate([conv(x[at(g)], k[g * o:(g + 1) * o], stride, pad, dilation) for g in range(groups)], -d - 1)


def make(File):
    def draw_all(t, shapes):
        return {n: t.draw(*s) for n, s in shapes.items()}

    def given(p, coords):
        return {n + "_": (p[n], coords[n]) for n in p}

    t = File("weights_layers", "Linear maps, embeddings and slopes as functions of records, beside PyTorch's formulas.",
             ["std::nn::{embedding, linear, linear_no_bias, prelu, prelu_channels}"])
    p = draw_all(t, {"w": (3, 2), "b": (3,)})
    x = t.draw(2, 2)
    at = {"w": "o$, i$", "b": "o$"}
    t.case({"x": (x, "n$, in$"), **given(p, at)}, f"linear({record('wb')}, x$)", "n$, out$", x @ p["w"].T + p["b"])
    t.case({"x": (x, "n$, in$"), **given({"w": p["w"]}, at)}, "linear_no_bias({ w: w_$ }, x$)", "n$, out$", x @ p["w"].T)
    tokens = np.array([[2, 0], [2, 1]], np.int32)
    t.case({"w_": (p["w"], "v$, d$"), "k": (tokens, "n$, t$")}, "embedding({ w: w_$ }, k$)", "n$, t$, e$", p["w"][tokens])
    x = t.draw(2, 2, 3, away=(0,))
    t.case({"x": (x, "n$, c$, k$"), "a": (0.3, "")}, "prelu({ alpha: a$ }, x$)", "n$, c$, k$", np.where(x > 0, x, 0.3 * x))
    a = t.draw(2)
    t.case({"x": (x, "n$, c$, k$"), "a": (a, "m$")}, "prelu_channels[c$]({ alpha: a$ }, x$)", "n$, c$, k$", np.where(x > 0, x, a[:, None] * x))
    t.write()

    t = File("weights_conv", "Convolutions as functions of records: strides, padding, dilation and groups, by name.",
             ["std::nn::{conv1d, conv2d, conv2d_no_bias, conv3d}"], some=2)
    spatial = {1: "v$", 2: "h$, v$", 3: "d$, h$, v$"}
    cells = {1: "s$", 2: "r$, s$", 3: "e$, r$, s$"}
    to = {1: "q$", 2: "p$, q$", 3: "l$, p$, q$"}
    for d, c, o, size, extents, options in ((1, 4, 2, (2,), (6,), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
                                            (2, 2, 3, (3, 2), (4, 3), {"padding": 1}), (2, 4, 4, (2, 2), (3, 3), {"dilation": 2, "groups": 2}),
                                            (3, 2, 2, (2, 1, 2), (2, 2, 3), {"padding": 1, "stride": 2}),
                                            (3, 2, 2, (1, 2, 1), (2, 2, 2), {"groups": 2})):
        groups = options.get("groups", 1)
        x, w, b = t.draw(*(() if d == 3 else (2,)), c, *extents), t.draw(o, c // groups, *size), t.draw(o)
        n = "" if d == 3 else "n$, "
        y = grouped(x, w, options.get("stride", 1), options.get("padding", 0), options.get("dilation", 1), groups)
        call = "".join(f", {k} = {v}" for k, v in options.items())
        t.case({"x": (x, f"{n}c$, {spatial[d]}"), "w_": (w, f"o$, m$, {cells[d]}"), "b_": (b, "o$")},
               f"conv{d}d[{spatial[d]}]({record('wb')}, x${call})", f"{n}o$, {to[d]}", y + b.reshape(-1, *[1] * d))
    x, w = t.draw(2, 5, 4), t.draw(1, 2, 3, 2)
    y = conv(np.pad(x, [(0, 0), (1, 1), (0, 0)]), w, 1, 0)[:, ::2]
    t.case({"x": (x, "c$, h$, v$"), "w_": (w, "o$, m$, r$, s$")},
           "conv2d_no_bias[h$, v$]({ w: w_$ }, x$, padding = (1, 0), stride = (2, 1))", "o$, p$, q$", y)
    t.write()

    t = File("weights_conv_transpose", "Transposed convolutions as functions of records.",
             ["std::nn::{conv_transpose1d, conv_transpose2d, conv_transpose2d_no_bias, conv_transpose3d}"], some=2)
    for d, size, extents, stride, pad, more in ((1, (3,), (3,), 2, 1, 1), (2, (2, 3), (2, 2), 2, 0, 0), (2, (3, 3), (2, 3), 2, 1, 1), (3, (2, 1, 2), (2, 1, 2), 1, 0, 0)):
        x, w, b = t.draw(2, *extents), t.draw(2, 2, *size), t.draw(2)
        # What is added at the end is a shorter cut of the whole.
        full = transposed(x, w, stride, 0)
        y = np.pad(full, [(0, 0)] + [(0, more)] * d)[(..., *[slice(pad, n + more - pad) for n in full.shape[1:]])]
        call = f"[{spatial[d]}]({record('wb')}, x$, stride = {stride}, padding = {pad}, output_padding = {more})"
        t.case({"x": (x, f"c$, {spatial[d]}"), "w_": (w, f"c$, o$, {cells[d]}"), "b_": (b, "o$")}, f"conv_transpose{d}d{call}",
               f"o$, {to[d]}", y + b.reshape(-1, *[1] * d))
    t.case({"x": (x[..., 0], f"c$, {spatial[2]}"), "w_": (w[..., 0], f"c$, o$, {cells[2]}")},
           f"conv_transpose2d_no_bias[{spatial[2]}]({{ w: w_$ }}, x$)", f"o$, {to[2]}", transposed(x[..., 0], w[..., 0], 1, 0))
    t.write()

    t = File("weights_norm", "Normalisations as functions of records, and running statistics as PyTorch moves them.",
             ["std::nn::{batch_norm, batch_norm_eval, group_norm, instance_norm, layer_norm, rms_norm}"], slope=1e-3, some=3)
    x = t.draw(2, 4, 3)
    names = "n$, c$, k$"
    p = draw_all(t, {"gamma": (4,), "beta": (4,)})
    m, v = t.draw(4), t.draw(4, low=0.5, high=2)
    own = given(p, {"gamma": "g$", "beta": "g$"})
    wide = lambda a: a[:, None]
    affine = lambda y: y * wide(p["gamma"]) + wide(p["beta"])
    both = record(("gamma", "beta"))
    stats = "{ mean: m_$, variance: v_$ }"
    seen = {"m_": (m, "g$"), "v_": (v, "g$")}
    t.case({"x": (x, names), **own}, f"layer_norm[c$]({both}, x$)", names, affine(normal(x, 1, 1e-5)))
    t.case({"x": (x, names), "gamma_": own["gamma_"]}, "rms_norm[c$]({ gamma: gamma_$ }, x$, eps = 0.001)", names,
           x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3) * wide(p["gamma"]))
    t.case({"x": (x, names), **own}, f"batch_norm[c$]({both}, {{ mean: stop(beta_$), variance: stop(gamma_$) }}, x$).0", names, affine(normal(x, (0, 2), 1e-5)))
    t.case({"x": (x, names), "m_": (m, "g$")}, "batch_norm[c$]({ gamma: m_$, beta: m_$ }, { mean: m_$, variance: m_$ }, x$).1.mean", "g$",
           0.9 * m + 0.1 * x.mean((0, 2)))
    t.case({"x": (x, names), "v_": (v, "g$")},
           "batch_norm[c$]({ gamma: v_$, beta: v_$ }, { mean: v_$, variance: v_$ }, x$, momentum = 0.3).1.variance", "g$",
           0.7 * v + 0.3 * x.var((0, 2), ddof=1))
    t.case({"x": (x, names), **own, **seen}, f"batch_norm_eval[c$]({both}, {stats}, x$)", names,
           affine((x - wide(m)) / np.sqrt(wide(v) + 1e-5)))
    t.case({"x": (x, names), **own}, f"instance_norm[c$]({both}, x$)", names, affine(normal(x, 2, 1e-5)))
    t.case({"x": (x, names), **own}, f"group_norm[c$]({both}, x$, 2)", names, affine(normal(x.reshape(2, 2, -1), 2, 1e-5).reshape(x.shape)))
    t.write()

    t = File("weights_recurrent", "Recurrent layers as functions of records, from zeros and from given states.",
             ["std::nn::{gru, gru_from, gru_two_biases, gru_two_biases_from, lstm, lstm_from, rnn, rnn_from}"], some=1)
    n, steps, i, h = 2, 2, 2, 2
    x, first, cell = t.draw(n, steps, i), t.draw(n, h), t.draw(n, h)

    def run(p, s, c, kind):
        out = []
        for step in range(steps):
            a = np.einsum("ni,ghi->gnh", x[:, step], p["w"]) + p["b"][:, None]
            b = np.einsum("nk,ghk->gnh", s, p["u"]) + (p["state_b"][:, None] if "state_b" in p else 0)
            if kind == "rnn":
                s = np.tanh(a[0] + b[0])
            elif kind == "lstm":
                e = a + b
                c = sigmoid(e[1]) * c + sigmoid(e[0]) * np.tanh(e[2])
                s = sigmoid(e[3]) * np.tanh(c)
            else:
                r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
                s = (1 - z) * np.tanh(a[2] + r * b[2]) + z * s
            out.append(s)
        return np.stack(out, 1)

    for kind, gates, call in (("rnn", 1, "rnn"), ("lstm", 4, "lstm"), ("gru", 3, "gru"), ("gru", 3, "gru_two_biases")):
        shapes = {"w": (gates, h, i), "u": (gates, h, h), "b": (gates, h)}
        at = {"w": "g$, h$, i$", "u": "g$, h$, k$", "b": "g$, h$", "state_b": "g$, h$"}
        if call == "gru_two_biases":
            shapes["state_b"] = (gates, h)
        p = draw_all(t, shapes)
        own = given(p, at)
        if kind == "rnn":
            own = {k: (a[0], names.removeprefix("g$, ")) for k, (a, names) in own.items()}
        last = ".0" if kind == "lstm" else ""
        state = {"s": (first, "n$, h$"), **({"c": (cell, "n$, h$")} if kind == "lstm" else {})}
        more = ", s$, c$" if kind == "lstm" else ", s$"
        zero = np.zeros_like(first)
        t.case({"x": (x, "n$, t$, i$"), **own}, f"{call}[t$]({record(p)}, x$){last}", "n$, t$, o$", run(p, zero, zero, kind),
               f32=kind != "lstm")
        t.case({"x": (x, "n$, t$, i$"), **own, **state}, f"{call}_from[t$]({record(p)}, x${more}){last}", "n$, t$, o$", run(p, first, cell, kind),
               f32=False)
    t.write()

    t = File("weights_attention", "Attention with heads and a transformer block as functions of records.",
             ["std::nn::{multi_head_attention, multi_head_attention_no_bias, transformer_block}"], some=1)
    width, other = 4, 3
    part = {"wq": "h$, d$, m$", "wk": "h$, d$, k$", "wv": "h$, d$, k$", "wo": "o$, h$, d$", "bq": "h$, d$", "bk": "h$, d$", "bv": "h$, d$", "bo": "o$"}

    def attention_weights(keys):
        return draw_all(t, {"wq": (2, 2, width), "wk": (2, 2, keys), "wv": (2, 2, keys), "wo": (width, 2, 2), "bq": (2, 2), "bk": (2, 2),
                            "bv": (2, 2), "bo": (width,)})

    x, y = t.draw(2, 2, width), t.draw(2, 3, other)
    p = attention_weights(other)
    t.case({"x": (x, "n$, t$, m$"), "y_": (y, "n$, s$, k$"), **given(p, part)}, f"multi_head_attention({record(p)}, x$, y_$)", "n$, t$, e$",
           heads(x, y, p, False))
    p = attention_weights(width)
    x = t.draw(3, width)
    t.case({"x": (x, "t$, m$"), **given(p, part)}, f"multi_head_attention({record(p)}, x$, x$, causal = true)", "t$, e$", heads(x, x, p, True))
    bare = {n: a for n, a in p.items() if n[0] == "w"}
    none = {n: a * 0 for n, a in p.items() if n[0] == "b"}
    t.case({"x": (x, "t$, m$"), **given(bare, part)}, f"multi_head_attention_no_bias({record(bare)}, x$, x$, causal = true)", "t$, e$",
           heads(x, x, {**bare, **none}, True))
    more = draw_all(t, {"gamma": (width,), "beta": (width,), "gamma2": (width,), "beta2": (width,), "wide": (5, width), "wideb": (5,),
                        "narrow": (width, 5), "narrowb": (width,)})
    at = {"gamma": "m$", "beta": "m$", "gamma2": "m$", "beta2": "m$", "wide": "i$, m$", "wideb": "i$", "narrow": "m$, i$", "narrowb": "m$"}
    near = normal(x, -1, 1e-5) * more["gamma"] + more["beta"]
    z = x + heads(near, near, p, True)
    near = normal(z, -1, 1e-5) * more["gamma2"] + more["beta2"]
    inner = near @ more["wide"].T + more["wideb"]
    z = z + inner * 0.5 * (1 + erf(inner / np.sqrt(2))) @ more["narrow"].T + more["narrowb"]
    block = ("{ norm1: { gamma: gamma_$, beta: beta_$ }, attention: " + record(p) + ", norm2: { gamma: gamma2_$, beta: beta2_$ }, "
             "wide: { w: wide_$, b: wideb_$ }, narrow: { w: narrow_$, b: narrowb_$ } }")
    t.case({"x": (x, "t$, m$"), **given(p, part), **given(more, at)}, f"transformer_block({block}, x$, causal = true)", "t$, e$", z, f32=False)
    t.write()
