import numpy as np


# As in PyTorch, stride, padding, dilation and the sizes of windows are one number or one for each coordinate.
SPATIAL = {1: "v$", 2: "h$, v$", 3: "d$, h$, v$"}
OUT = {1: "q$", 2: "p$, q$", 3: "l$, p$, q$"}
KERNEL = {1: "s$", 2: "r$, s$", 3: "e$, r$, s$"}


def each(v, d):
    return tuple(v) if isinstance(v, tuple) else (v,) * d


def conv(x, k, stride=1, padding=0, dilation=1, groups=1):
    """x: ..., c, spatial; k: o, c / groups, spatial."""
    d = k.ndim - 2
    stride, padding, dilation = each(stride, d), each(padding, d), each(dilation, d)
    x = np.pad(x, [(0, 0)] * (x.ndim - d) + [(p, p) for p in padding])
    n = [(x.shape[i - d] - dilation[i] * (k.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(d)]
    y = np.zeros(x.shape[: -d - 1] + (k.shape[0], *n))
    o, c = k.shape[0] // groups, k.shape[1]
    for at in np.ndindex(*n):
        cut = tuple(slice(a * s, a * s + f * (m - 1) + 1, f) for a, s, f, m in zip(at, stride, dilation, k.shape[2:]))
        for g in range(groups):
            window = x[(..., slice(g * c, g * c + c), *cut)]
            part = np.tensordot(window, k[g * o:g * o + o], (range(-d - 1, 0), range(1, d + 2)))
            y[(..., slice(g * o, g * o + o), *at)] = part
    return y


def transposed(x, k, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """x: ..., c, spatial; k: c, o / groups, spatial: every cell scatters the kernel."""
    d = k.ndim - 2
    stride, padding, more, dilation = each(stride, d), each(padding, d), each(output_padding, d), each(dilation, d)
    spans = [f * (m - 1) + 1 for f, m in zip(dilation, k.shape[2:])]
    full = [(x.shape[i - d] - 1) * stride[i] + spans[i] for i in range(d)]
    y = np.zeros(x.shape[: -d - 1] + (k.shape[1] * groups, *(f + m for f, m in zip(full, more))))
    c, o = k.shape[0] // groups, k.shape[1]
    for at in np.ndindex(*x.shape[-d:]):
        cut = tuple(slice(a * s, a * s + m, f) for a, s, f, m in zip(at, stride, dilation, spans))
        for g in range(groups):
            part = np.tensordot(x[(..., slice(g * c, g * c + c), *at)], k[g * c:g * c + c], (-1, 0))
            y[(..., slice(g * o, g * o + o), *cut)] += part
    return y[(..., *(slice(p, f - p + m) for p, f, m in zip(padding, full, more)))]


def pool(x, d, f, size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=False):
    """The windows of PyTorch: with ceil_mode, the last one begins inside the array or the padding before it."""
    size, padding, dilation = each(size, d), each(padding, d), each(dilation, d)
    stride = size if stride is None else each(stride, d)
    starts, sizes = [], x.shape[x.ndim - d:]
    for n, s, step, p, f_ in zip(sizes, size, stride, padding, dilation):
        free = n + 2 * p - f_ * (s - 1) - 1
        count = -(-free // step) + 1 if ceil_mode else free // step + 1
        if ceil_mode and (count - 1) * step >= n + p:
            count -= 1
        starts.append([a * step - p for a in range(count)])
    y = np.zeros(x.shape[: x.ndim - d] + tuple(map(len, starts)))
    for at in np.ndindex(*y.shape[x.ndim - d:]):
        cells, count = [], 1
        for a, i in zip(at, range(d)):
            taps = [starts[i][a] + dilation[i] * k for k in range(size[i])]
            cells.append([t for t in taps if 0 <= t < sizes[i]])
            count *= sum(t < sizes[i] + padding[i] for t in taps)
        window = x[(..., *np.ix_(*cells))]
        axes = tuple(range(-d, 0))
        y[(..., *at)] = window.sum(axes) / count if count_include_pad else f(window, axes)
    return y


def options(given):
    """Named arguments as Einlang writes them."""
    text = lambda v: str(v).lower() if isinstance(v, bool) else str(v)
    return "".join(f", {name} = {text(v)}" for name, v in given.items())


def normal(x, axes, eps):
    m, v = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - m) / np.sqrt(v + eps)


def make(File):
    t = File("layer_linear", "`linear` of one sample, a batch and a batch of batches, with and without a bias.",
             ["std::nn::layers::{linear, linear_no_bias}", "std::nn::backward::{linear_backward, linear_no_bias_backward}"])
    for names, shape, out in (("in$", (3,), 2), ("b$, in$", (2, 3), 4), ("a$, b$, in$", (2, 2, 2), 1)):
        x, w, b = t.draw(*shape), t.draw(out, shape[-1]), t.draw(out)
        result = names.replace("in$", "out$")
        t.case({"x": (x, names), "w_": (w, "out$, in$"), "bias": (b, "out$")}, "linear(x$, w_$, bias$)", result, x @ w.T + b,
               backward="linear_backward(g$, x$, w_$, bias$)")
        t.case({"x": (x, names), "w_": (w, "out$, in$")}, "linear_no_bias(x$, w_$)", result, x @ w.T,
               backward="linear_no_bias_backward(g$, x$, w_$)")
    t.write()

    t = File("layer_conv", "Convolutions along one to three coordinates with all their options, batched and alone.",
             ["std::nn::conv::{conv1d, conv2d, conv3d, depthwise_conv2d}", "std::nn::backward::conv2d_backward"])
    for batch, c, o, shape, kernel, given in (
            ((2,), 2, 3, (4, 5), (3, 2), {}), ((1,), 1, 2, (5, 4), (3, 3), {"stride": 2, "padding": 1}),
            ((), 2, 1, (3, 3), (2, 2), {"padding": (1, 0)}), ((2,), 1, 1, (4, 4), (1, 1), {"stride": 3}),
            ((), 2, 2, (5, 6), (2, 2), {"stride": (2, 1), "padding": (2, 1), "dilation": (2, 3)}),
            ((2,), 4, 2, (3, 4), (2, 2), {"groups": 2}), ((), 3, 6, (3, 4), (2, 2), {"stride": 2, "padding": 1, "groups": 3}),
            ((2,), 2, 3, (5,), (2,), {}), ((), 2, 1, (6,), (2,), {"stride": 2, "padding": 1, "dilation": 2}),
            ((), 4, 2, (6,), (2,), {"groups": 2}), ((), 1, 2, (3, 3, 2), (2, 2, 2), {"stride": 2, "padding": 1}),
            ((), 4, 2, (3, 4, 3), (2, 1, 2), {"stride": (1, 2, 1), "dilation": (2, 1, 2), "groups": 2})):
        d = len(shape)
        x, k, b = t.draw(*batch, c, *shape), t.draw(o, c // given.get("groups", 1), *kernel), t.draw(o)
        front = "n$, " if batch else ""
        names, out = front + "c$, " + SPATIAL[d], front + "o$, " + OUT[d]
        y = conv(x, k, **given)
        inputs = {"x": (x, names), "k": (k, ("o$, m$, " if "groups" in given else "o$, c$, ") + KERNEL[d])}
        more = options(given)
        if d == 2 or "groups" not in given:
            t.case({**inputs, "bias": (b, "o$")}, f"conv{d}d[{SPATIAL[d]}](x$, k$, bias${more})", out, y + b.reshape(-1, *[1] * d),
                   backward=f"conv2d_backward[{SPATIAL[d]}](g$, x$, k$, bias${more})" if d == 2 else None)
        if d != 2 or not batch:
            t.case(inputs, f"conv{d}d[{SPATIAL[d]}](x$, k${more})", out, y,
                   backward=f"conv2d_backward[{SPATIAL[d]}](g$, x$, k${more})" if d == 2 else None)
    for given in ({}, {"stride": (2, 1), "padding": (1, 0), "dilation": 2}):
        x, k, b = t.draw(2, 3, 4, 4), t.draw(3, 2, 2), t.draw(3)
        y = conv(x, k[:, None], groups=3, **given)
        t.case({"x": (x, "n$, c$, h$, v$"), "k": (k, "c$, r$, s$"), "bias": (b, "c$")},
               f"depthwise_conv2d[h$, v$](x$, k$, bias${options(given)})", "n$, c$, p$, q$", y + b[:, None, None])
    t.write()

    t = File("layer_conv_transpose", "Transposed convolutions with all their options.",
             ["std::nn::conv::{conv_transpose1d, conv_transpose2d, conv_transpose3d}"])
    for batch, c, o, shape, kernel, given in (
            ((2,), 2, 3, (2, 3), (3, 2), {}), ((), 2, 1, (2, 3), (3, 2), {"stride": 2, "padding": 1}),
            ((), 2, 1, (2, 3), (3, 2), {"stride": (3, 2), "padding": (1, 0), "output_padding": (2, 1)}),
            ((), 4, 2, (2, 2), (2, 2), {"dilation": (2, 1), "groups": 2}),
            ((), 2, 1, (3,), (3,), {}), ((), 2, 1, (3,), (3,), {"stride": 2, "padding": 1, "output_padding": 1}),
            ((2,), 2, 1, (3,), (2,), {"stride": 2, "output_padding": 2, "dilation": 3, "groups": 2}),
            ((), 2, 1, (2, 1, 2), (2, 3, 2), {"stride": 2, "padding": 1, "output_padding": (1, 0, 1)}),
            ((), 2, 1, (2, 1, 2), (2, 1, 2), {"dilation": (1, 1, 2), "groups": 2})):
        d, groups = len(shape), given.get("groups", 1)
        x, k, b = t.draw(*batch, c, *shape), t.draw(c, o, *kernel), t.draw(o * groups)
        front = "n$, " if batch else ""
        inputs = {"x": (x, front + "c$, " + SPATIAL[d]), "k": (k, "c$, m$, " + KERNEL[d])}
        y, bias = transposed(x, k, **given), ""
        if "groups" in given or not given:
            inputs["bias"], y, bias = (b, "o$"), y + b.reshape(-1, *[1] * d), ", bias$"
        t.case(inputs, f"conv_transpose{d}d[{SPATIAL[d]}](x$, k${bias}{options(given)})", front + "o$, " + OUT[d], y)
    t.write()

    WINDOWS = ((2, (2, 4, 5), {"size": 2}), (2, (2, 4, 5), {"size": 3, "stride": 1, "padding": 1}),
               (2, (2, 5, 4), {"size": (2, 1), "stride": (3, 2), "padding": (1, 0), "ceil_mode": True}),
               (2, (5, 4), {"size": 3, "stride": 2, "padding": 1, "ceil_mode": True}), (2, (2, 5, 5), {"size": 2, "stride": 3, "ceil_mode": True}),
               (1, (2, 6), {"size": 2, "stride": 3}), (1, (2, 6), {"size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
               (3, (3, 3, 4), {"size": 2}), (3, (3, 4, 5), {"size": (2, 3, 2), "stride": 2, "padding": (0, 1, 1), "ceil_mode": True}))
    for kind, f in (("max", np.max), ("avg", np.mean)):
        t = File(f"layer_{kind}pool", f"`{kind}pool` along one to three coordinates; windows that overlap, leave gaps, and stand over the edge.",
                 [f"std::nn::pool::{{{kind}pool1d, {kind}pool2d, {kind}pool3d}}", f"std::nn::backward::{kind}pool2d_backward"])
        extra = ([(1, (7,), {"size": 2, "stride": 1, "dilation": 2}), (2, (5, 6), {"size": 2, "padding": 1, "dilation": (1, 2), "ceil_mode": True})]
                 if kind == "max" else [(d, s, {**given, "count_include_pad": True}) for d, s, given in WINDOWS if "padding" in given])
        for d, shape, given in (*WINDOWS, *extra):
            x = t.draw(*shape)
            front = "c$, " if len(shape) > d else ""
            t.case({"x": (x, front + SPATIAL[d])}, f"{kind}pool{d}d[{SPATIAL[d]}](x${options(given)})", front + OUT[d], pool(x, d, f, **given),
                   backward=f"{kind}pool2d_backward[{SPATIAL[d]}](g$, x${options(given)})" if d == 2 else None)
        t.write()

    t = File("layer_global_avgpool2d", "`global_avgpool2d` of an image, of channels, of a batch.",
             ["std::nn::pool::global_avgpool2d", "std::nn::backward::global_avgpool2d_backward"])
    for names, shape, out in (("h$, v$", (2, 3), ""), ("c$, h$, v$", (2, 3, 2), "c$"), ("n$, c$, h$, v$", (2, 2, 1, 3), "n$, c$")):
        x = t.draw(*shape)
        t.case({"x": (x, names)}, "global_avgpool2d[h$, v$](x$)", out, x.mean((-2, -1)),
               backward="global_avgpool2d_backward[h$, v$](g$, x$)")
    t.write()

    t = File("layer_batch_norm", "`batch_norm2d` in training and afterwards, and `batch_norm` of features.",
             ["std::nn::norm::{batch_norm, batch_norm2d, batch_norm_eval}",
              "std::nn::backward::{batch_norm2d_backward, batch_norm2d_eval_backward}"], slope=1e-3)
    for shape in ((2, 2, 2, 2), (3, 1, 2, 1), (1, 2, 2, 3)):
        x, g, b = t.draw(*shape), t.draw(shape[1]), t.draw(shape[1])
        cast = lambda v: v[:, None, None]
        y = normal(x, (0, 2, 3), 1e-3) * cast(g) + cast(b)
        t.case({"x": (x, "n$, c$, h$, v$"), "gamma": (g, "c$"), "beta": (b, "c$")},
               "batch_norm2d(x$, gamma$, beta$, stop(beta$), stop(beta$), 0.1, 0.001).0", "n$, c$, h$, v$", y,
               backward="batch_norm2d_backward(g$, x$, gamma$, beta$, 0.001)")
        m, v = t.draw(shape[1]), t.draw(shape[1], low=0.5, high=2)
        t.case({"x": (x, "n$, c$, h$, v$"), "gamma": (g, "c$"), "beta": (b, "c$"), "mu": (m, "c$"), "va": (v, "c$")},
               "batch_norm_eval[c$](x$, gamma$, beta$, mu$, va$, 0.001)", "n$, c$, h$, v$",
               (x - cast(m)) / np.sqrt(cast(v) + 1e-3) * cast(g) + cast(b),
               backward="batch_norm2d_eval_backward(g$, x$, gamma$, beta$, mu$, va$, 0.001)", backward_count=3)
    x, g, b, m, v = t.draw(4, 2), t.draw(2), t.draw(2), t.draw(2), t.draw(2, low=0.5, high=2)
    inputs = {"x": (x, "n$, c$"), "gamma": (g, "c$"), "beta": (b, "c$"), "mu": (m, "c$"), "va": (v, "c$")}
    call = "batch_norm[c$](x$, gamma$, beta$, mu$, va$, 0.1, 0.001)"
    keep = {k: inputs[k] for k in ("x", "gamma", "beta")}
    t.case(keep, call.replace("mu$", "stop(beta$)").replace("va$", "stop(beta$)") + ".0", "n$, c$", normal(x, 0, 1e-3) * g + b)
    t.case({k: inputs[k] for k in ("x", "mu")}, call.replace("gamma$", "mu$").replace("beta$", "mu$").replace("va$", "mu$") + ".1", "c$",
           0.9 * m + 0.1 * x.mean(0))
    t.case({k: inputs[k] for k in ("x", "va")}, call.replace("gamma$", "va$").replace("beta$", "va$").replace("mu$", "va$").replace("0.001)", "0.001, 1)") + ".2", "c$",
           0.9 * v + 0.1 * x.var(0, ddof=1))
    t.write()

    t = File("layer_norms", "Layer, root mean square, instance and group normalisation.",
             ["std::nn::norm::{group_norm, instance_norm, layer_norm, rms_norm}"], slope=1e-3)
    for names, shape, axis in (("j$", (4,), 0), ("b$, j$", (2, 3), 1), ("b$, j$, t$", (2, 3, 2), 1)):
        x, g, b = t.draw(*shape), t.draw(shape[axis]), t.draw(shape[axis])
        cast = lambda v: v.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        t.case({"x": (x, names), "gamma": (g, "j$"), "beta": (b, "j$")}, "layer_norm[j$](x$, gamma$, beta$, 0.001)", names,
               normal(x, axis, 1e-3) * cast(g) + cast(b))
        t.case({"x": (x, names), "gamma": (g, "j$")}, "rms_norm[j$](x$, gamma$, 0.001)", names,
               x / np.sqrt((x * x).mean(axis, keepdims=True) + 1e-3) * cast(g))
    for names, shape, groups in (("n$, c$, k$", (2, 4, 3), 2), ("n$, c$, h$, v$", (1, 3, 2, 2), 3), ("n$, c$", (2, 6), 2)):
        x, g, b = t.draw(*shape), t.draw(shape[1]), t.draw(shape[1])
        cast = lambda v: v.reshape([1, -1] + [1] * (len(shape) - 2))
        if len(shape) > 2:
            t.case({"x": (x, names), "gamma": (g, "c$"), "beta": (b, "c$")}, "instance_norm[c$](x$, gamma$, beta$, 0.001)", names,
                   normal(x, tuple(range(2, len(shape))), 1e-3) * cast(g) + cast(b))
        parts = normal(x.reshape(shape[0], groups, -1), 2, 1e-3).reshape(shape)
        t.case({"x": (x, names), "gamma": (g, "c$"), "beta": (b, "c$")}, f"group_norm[c$](x$, gamma$, beta$, {groups}, 0.001)",
               names, parts * cast(g) + cast(b))
    t.write()
