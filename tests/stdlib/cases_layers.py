import numpy as np


def conv(x, k, stride, pad, dilation=1):
    """x: ..., c, spatial; k: o, c, spatial."""
    d = k.ndim - 2
    x = np.pad(x, [(0, 0)] * (x.ndim - d) + [(pad, pad)] * d)
    n = [(x.shape[-d + i] - dilation * (k.shape[2 + i] - 1) - 1) // stride + 1 for i in range(d)]
    y = np.zeros(x.shape[: -d - 1] + (k.shape[0], *n))
    for at in np.ndindex(*n):
        window = x[(..., slice(None), *(slice(a * stride, a * stride + dilation * (s - 1) + 1, dilation)
                                        for a, s in zip(at, k.shape[2:])))]
        y[(..., slice(None), *at)] = np.tensordot(window, k, (range(-d - 1, 0), range(1, d + 2)))
    return y


def pool(x, d, size, stride, pad, f):
    n = [(x.shape[-d + i] + 2 * pad - size) // stride + 1 for i in range(d)]
    y = np.zeros(x.shape[: x.ndim - d] + tuple(n))
    for at in np.ndindex(*n):
        cut = tuple(slice(max(a * stride - pad, 0), a * stride - pad + size) for a in at)
        y[(..., *at)] = f(x[(..., *cut)], tuple(range(-d, 0)))
    return y


def transposed(x, k, stride, pad):
    """x: ..., c, spatial; k: c, o, spatial: scatter."""
    d = k.ndim - 2
    full = [(x.shape[-d + i] - 1) * stride + k.shape[2 + i] for i in range(d)]
    y = np.zeros(x.shape[: -d - 1] + (k.shape[1], *full))
    for at in np.ndindex(*x.shape[-d:]):
        cut = tuple(slice(a * stride, a * stride + s) for a, s in zip(at, k.shape[2:]))
        y[(..., slice(None), *cut)] += np.tensordot(x[(..., slice(None), *at)], k, (-1, 0))
    return y[(..., *(slice(pad, f - pad) for f in full))]


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

    t = File("layer_conv2d", "`conv2d` with strides and padding, with a bias and without, batched and alone.",
             ["std::nn::conv::{conv2d, conv2d_no_bias}", "std::nn::backward::{conv2d_backward, conv2d_no_bias_backward}"])
    for batch, (c, h, w), (o, kh, kw), stride, pad in (((2,), (2, 4, 5), (3, 3, 2), 1, 0), ((1,), (1, 5, 4), (2, 3, 3), 2, 1),
                                                       ((), (2, 3, 3), (1, 2, 2), 1, 1), ((2,), (1, 4, 4), (1, 1, 1), 3, 0)):
        x, k, b = t.draw(*batch, c, h, w), t.draw(o, c, kh, kw), t.draw(o)
        names, out = ("n$, c$, h$, v$", "n$, o$, p$, q$") if batch else ("c$, h$, v$", "o$, p$, q$")
        y = conv(x, k, stride, pad)
        t.case({"x": (x, names), "k": (k, "o$, c$, r$, s$"), "bias": (b, "o$")}, f"conv2d[h$, v$](x$, k$, bias$, {stride}, {pad})", out,
               y + b[:, None, None], backward=f"conv2d_backward[h$, v$](g$, x$, k$, bias$, {stride}, {pad})")
        t.case({"x": (x, names), "k": (k, "o$, c$, r$, s$")}, f"conv2d_no_bias[h$, v$](x$, k$, {stride}, {pad})", out, y,
               backward=f"conv2d_no_bias_backward[h$, v$](g$, x$, k$, {stride}, {pad})")
    t.write()

    t = File("layer_conv_more", "Dilated, grouped and depthwise convolutions, and those along one and three coordinates.",
             ["std::nn::conv::{conv1d, conv2d_dilated, conv2d_grouped, conv3d, depthwise_conv2d}"])
    for stride, pad, dilation in ((1, 0, 2), (2, 2, 2), (1, 3, 3)):
        x, k = t.draw(2, 5, 6), t.draw(2, 2, 2, 2)
        t.case({"x": (x, "c$, h$, v$"), "k": (k, "o$, c$, r$, s$")}, f"conv2d_dilated[h$, v$](x$, k$, {stride}, {pad}, {dilation})",
               "o$, p$, q$", conv(x, k, stride, pad, dilation))
    for c, o, groups, stride, pad in ((4, 2, 2, 1, 0), (3, 6, 3, 2, 1), (2, 2, 1, 1, 1)):
        x, k = t.draw(2, c, 3, 4), t.draw(o, c // groups, 2, 2)
        parts = [conv(x[:, g * c // groups:(g + 1) * c // groups], k[g * o // groups:(g + 1) * o // groups], stride, pad)
                 for g in range(groups)]
        t.case({"x": (x, "n$, c$, h$, v$"), "k": (k, "o$, part$, r$, s$")},
               f"conv2d_grouped[h$, v$](x$, k$, {stride}, {pad}, 1, {groups})", "n$, o$, p$, q$", np.concatenate(parts, 1))
        k = t.draw(c, 2, 2)
        each = [conv(x[:, i:i + 1], k[i:i + 1, None], stride, pad) for i in range(c)]
        t.case({"x": (x, "n$, c$, h$, v$"), "k": (k, "c$, r$, s$")}, f"depthwise_conv2d[h$, v$](x$, k$, {stride}, {pad})",
               "n$, c$, p$, q$", np.concatenate(each, 1))
    for stride, pad in ((1, 0), (2, 1)):
        x, k, b = t.draw(2, 2, 5), t.draw(3, 2, 2), t.draw(3)
        t.case({"x": (x, "n$, c$, v$"), "k": (k, "o$, c$, s$"), "bias": (b, "o$")}, f"conv1d[v$](x$, k$, bias$, {stride}, {pad})",
               "n$, o$, q$", conv(x, k, stride, pad) + b[:, None])
        x, k = t.draw(1, 3, 3, 2), t.draw(2, 1, 2, 2, 2)
        t.case({"x": (x, "c$, d$, h$, v$"), "k": (k, "o$, c$, e$, r$, s$")}, f"conv3d[d$, h$, v$](x$, k$, {stride}, {pad})",
               "o$, l$, p$, q$", conv(x, k, stride, pad))
    t.write()

    t = File("layer_conv_transpose", "Transposed convolutions with strides and padding.",
             ["std::nn::conv::{conv_transpose1d, conv_transpose2d, conv_transpose3d}"])
    for stride, pad in ((1, 0), (2, 0), (2, 1)):
        x, k = t.draw(2, 2, 2, 3), t.draw(2, 3, 3, 2)
        t.case({"x": (x, "n$, c$, h$, v$"), "k": (k, "c$, o$, r$, s$")}, f"conv_transpose2d[h$, v$](x$, k$, {stride}, {pad})",
               "n$, o$, p$, q$", transposed(x, k, stride, pad))
        x, k = t.draw(2, 3), t.draw(2, 1, 3)
        t.case({"x": (x, "c$, v$"), "k": (k, "c$, o$, s$")}, f"conv_transpose1d[v$](x$, k$, {stride}, {pad})", "o$, q$",
               transposed(x, k, stride, pad))
        x, k = t.draw(2, 2, 1, 2), t.draw(2, 1, 2, 3, 2)
        t.case({"x": (x, "c$, d$, h$, v$"), "k": (k, "c$, o$, e$, r$, s$")}, f"conv_transpose3d[d$, h$, v$](x$, k$, {stride}, {pad})",
               "o$, l$, p$, q$", transposed(x, k, stride, pad))
    t.write()

    for kind, f in (("max", np.max), ("avg", np.mean)):
        t = File(f"layer_{kind}pool", f"`{kind}pool` along one to three coordinates; windows that overlap, leave gaps, and stand over the edge.",
                 [f"std::nn::pool::{{{kind}pool1d, {kind}pool2d, {kind}pool3d}}", f"std::nn::backward::{kind}pool2d_backward"])
        for size, stride, pad in ((2, 2, 0), (3, 1, 1), (2, 3, 0), (2, 1, 1)):
            x = t.draw(2, 4, 5)
            t.case({"x": (x, "c$, h$, v$")}, f"{kind}pool2d[h$, v$](x$, {size}, {stride}, {pad})", "c$, p$, q$",
                   pool(x, 2, size, stride, pad, f), backward=f"{kind}pool2d_backward[h$, v$](g$, x$, {size}, {stride}, {pad})")
        for size, stride, pad in ((2, 2, 0), (3, 1, 1), (2, 3, 0)):
            x = t.draw(2, 6)
            t.case({"x": (x, "c$, v$")}, f"{kind}pool1d[v$](x$, {size}, {stride}, {pad})", "c$, q$", pool(x, 1, size, stride, pad, f))
            x = t.draw(3, 3, 4)
            t.case({"x": (x, "d$, h$, v$")}, f"{kind}pool3d[d$, h$, v$](x$, {size}, {stride}, {pad})", "l$, p$, q$",
                   pool(x, 3, size, stride, pad, f))
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
    t.case({k: inputs[k] for k in ("x", "va")}, call.replace("gamma$", "va$").replace("beta$", "va$").replace("mu$", "va$") + ".2", "c$",
           0.9 * v + 0.1 * x.var(0))
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
