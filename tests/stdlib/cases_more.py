import numpy as np

from cases_layers import conv, transposed

SPATIAL = {1: "v$", 2: "h$, v$", 3: "d$, h$, v$"}
OUT = {1: "q$", 2: "p$, q$", 3: "l$, p$, q$"}
KERNEL = {1: "s$", 2: "r$, s$", 3: "e$, r$, s$"}


def lines(x, n):
    """Positions of n centres among those of the cells of the last axis, and their neighbours: linear interpolation."""
    at = np.maximum((np.arange(n) + 0.5) * x.shape[-1] / n - 0.5, 0)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, x.shape[-1] - 1)
    return (1 - (at - low)) * x[..., low] + (at - low) * x[..., high]


def bilinear(x, rows, cols):
    return np.swapaxes(lines(np.swapaxes(lines(x, cols), -1, -2), rows), -1, -2)


def pool(x, d, size, stride, pad, f, ceil=False, padded=False):
    def count(n):
        exact = (n + 2 * pad - size) / stride
        out = int(np.ceil(exact) if ceil else np.floor(exact)) + 1
        return out - 1 if (out - 1) * stride >= n + pad else out
    n = [count(s) for s in x.shape[-d:]]
    if padded:
        x = np.pad(x, [(0, 0)] * (x.ndim - d) + [(pad, pad)] * d)
        pad = 0
    y = np.zeros(x.shape[: x.ndim - d] + tuple(n))
    for at in np.ndindex(*n):
        cut = tuple(slice(max(a * stride - pad, 0), a * stride - pad + size) for a in at)
        y[(..., *at)] = f(x[(..., *cut)], tuple(range(-d, 0)))
    return y


def make(File):
    t = File("more_activations", "Activations of piecewise lines and stretched exponentials.")
    for expr, f in (("celu(x$, 0.7)", lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7))), ("softsign(x$)", lambda x: x / (1 + abs(x))),
                    ("hardsigmoid(x$)", lambda x: np.clip(x / 6 + 0.5, 0, 1)), ("hardswish(x$)", lambda x: x * np.clip(x / 6 + 0.5, 0, 1))):
        for names, shape in (("i$", (6,)), ("i$, j$", (2, 3))):
            x = t.draw(*shape, low=-5, high=5, away=[0.0, -3.0, 3.0])
            t.case({"x": (x, names)}, expr, names, f(x))
    t.write()

    t = File("more_math", "The sinc of signal processing, variances of samples, vectors of length 1.", ["std::nn::norm::l2_normalize"])
    x = np.array([-2.5, -0.1, 0.03, 0.5, 1.7])
    t.case({"x": (x, "i$")}, "sinc_pi(x$)", "i$", np.sinc(x))
    for names, shape, axis in (("j$", (4,), 0), ("b$, j$, c$", (2, 3, 2), 1)):
        x = t.draw(*shape)
        out = names.replace("j$, ", "").replace("j$", "")
        t.case({"x": (x, names)}, "sample_variance[j$](x$)", out, x.var(axis, ddof=1))
        t.case({"x": (x, names)}, "l2_normalize[j$](x$, 0.001)", names, x / np.linalg.norm(x, axis=axis, keepdims=True))
    x = np.array([0.0001, -0.0002])
    t.case({"x": (x, "j$")}, "l2_normalize[j$](x$, 0.1)", "j$", x / 0.1)
    t.write()

    t = File("more_shapes", "Reshaping, from and to any number of coordinates.")
    x = t.draw(2, 3, 4)
    for shape, names in (((24,), "k$"), ((6, 4), "k$, m$"), ((2, 12), "k$, m$"), ((4, 6), "k$, m$"), ((2, 2, 3, 2), "k$, m$, n$, o$"), ((3, 8), "k$, m$")):
        t.case({"x": (x, "a$, b$, c$")}, f"reshape(x$, {', '.join(map(str, shape))})", names, x.reshape(shape))
    t.case({"x": (x, "a$, b$, c$")}, "reshape(x$, 2, -1)", "k$, m$", x.reshape(2, 12))
    t.case({"x": (x.reshape(24), "k$")}, "reshape(x$, (4, 3, 2))", "a$, b$, c$", x.reshape(4, 3, 2))
    t.write()

    t = File("more_images", "Images of another size, and channels that become space.",
             ["std::nn::resize::{depth_to_space, resize_bilinear, resize_nearest, space_to_depth, upsample_bilinear, upsample_nearest}"])
    for shape, rows, cols in (((2, 3, 4), 5, 3), ((4, 3), 2, 7), ((1, 2, 5), 1, 5)):
        x = t.draw(*shape)
        n, out = ("c$, h$, v$", "c$, p$, q$") if len(shape) == 3 else ("h$, v$", "p$, q$")
        at = np.arange(rows) * shape[-2] // rows, np.arange(cols) * shape[-1] // cols
        t.case({"x": (x, n)}, f"resize_nearest[h$, v$](x$, {rows}, {cols})", out, x[..., at[0], :][..., at[1]])
        t.case({"x": (x, n)}, f"resize_bilinear[h$, v$](x$, {rows}, {cols})", out, bilinear(x, rows, cols))
        t.case({"x": (x, n)}, "upsample_nearest[h$, v$](x$, 2)", out, x.repeat(2, -1).repeat(2, -2))
        t.case({"x": (x, n)}, "upsample_bilinear[h$, v$](x$, 3)", out, bilinear(x, 3 * shape[-2], 3 * shape[-1]))
    x = t.draw(2, 8, 2, 3)
    y = x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6)
    t.case({"x": (x, "n$, c$, h$, v$")}, "depth_to_space(x$, 2)", "n$, k$, p$, q$", y)
    t.case({"x": (y, "n$, c$, h$, v$")}, "space_to_depth(x$, 2)", "n$, k$, p$, q$", x)
    t.write()

    t = File("more_sorting", "Sorted by merging: more cells, ties, extents that are no powers of two.",
             ["std::array::{argsort, bincount_weighted, searchsorted, searchsorted_right, sort, top_k}"])
    for n in (1, 2, 7, 16, 33):
        x = np.round(t.rng.permutation(n) / n, 3)
        t.case({"x": (x, "j$")}, "sort[j$](x$)", "j$", np.sort(x))
        ties = np.round(t.draw(n) * 2) / 2
        t.case({"x": (ties, "j$")}, "argsort[j$](x$) as [f64; j$]", "j$", np.argsort(ties, kind="stable"), derivative=False, f32=False)
        k = (n + 1) // 2
        t.case({"x": (x, "j$")}, f"top_k[j$](x$, {k}).0", "m$", np.sort(x)[::-1][:k])
        t.case({"x": (ties, "j$")}, f"top_k[j$](x$, {k}).1 as [f64; m$]", "m$", np.argsort(-ties, kind="stable")[:k], derivative=False, f32=False)
        edges, v = np.sort(ties), np.concatenate([ties[:3], [-9.0, 9.0, 0.25]])
        for side, name in (("left", "searchsorted"), ("right", "searchsorted_right")):
            t.case({"x": (edges, "n$"), "v": (v, "k$")}, f"{name}(x$, v$) as [f64; k$]", "k$", np.searchsorted(edges, v, side), derivative=False, f32=False)
    at, v = np.array([2, 0, 2, 4, 0, 2], np.int32), t.draw(6)
    t.case({"v": (v, "n$"), "at": (at, "n$")}, "bincount_weighted(at$, v$, 6)", "c$", np.bincount(at, v, 6))
    t.write()

    for kind, f in (("max", np.max), ("avg", np.mean)):
        extra = ["avgpool1d_padded, avgpool2d_padded, avgpool3d_padded"] if kind == "avg" else []
        t = File(f"more_{kind}pool", f"`{kind}pool` with the windows that stand over the edge.",
                 [f"std::nn::pool::{{{', '.join([f'{kind}pool{d}d_ceil' for d in (1, 2, 3)] + extra)}}}"])
        for d, shape in ((1, (2, 6)), (2, (2, 5, 4)), (3, (3, 4, 5))):
            names, out = ("c$, " if d < 3 else "") + SPATIAL[d], ("c$, " if d < 3 else "") + OUT[d]
            for size, stride, pad in ((2, 2, 0), (3, 2, 1), (2, 3, 0), (2, 3, 1)):
                x = t.draw(*shape)
                t.case({"x": (x, names)}, f"{kind}pool{d}d_ceil[{SPATIAL[d]}](x$, {size}, {stride}, {pad})", out,
                       pool(x, d, size, stride, pad, f, ceil=True))
                if kind == "avg" and pad:
                    t.case({"x": (x, names)}, f"avgpool{d}d_padded[{SPATIAL[d]}](x$, {size}, {stride}, {pad})", out,
                           pool(x, d, size, stride, pad, f, padded=True))
        t.write()

    t = File("more_conv", "Dilation and groups along one and three coordinates, and output padding.",
             ["std::nn::conv::{conv1d_dilated, conv1d_grouped, conv3d_dilated, conv3d_grouped}",
              "std::nn::conv::{conv_transpose1d_padded, conv_transpose2d_padded, conv_transpose3d_padded}"])
    for d, shape, kernel in ((1, (6,), (2,)), (3, (3, 4, 3), (2, 1, 2))):
        for stride, pad, dilation in ((1, 0, 2), (2, 1, 2)):
            x, k = t.draw(2, *shape), t.draw(1, 2, *kernel)
            t.case({"x": (x, "c$, " + SPATIAL[d]), "k": (k, "o$, c$, " + KERNEL[d])},
                   f"conv{d}d_dilated[{SPATIAL[d]}](x$, k$, {stride}, {pad}, {dilation})", "o$, " + OUT[d], conv(x, k, stride, pad, dilation))
        for c, o, groups, stride, pad, dilation in ((4, 2, 2, 1, 0, 1), (2, 2, 1, 2, 1, 2)):
            x, k = t.draw(c, *shape), t.draw(o, c // groups, *kernel)
            parts = [conv(x[g * c // groups:(g + 1) * c // groups], k[g * o // groups:(g + 1) * o // groups], stride, pad, dilation)
                     for g in range(groups)]
            t.case({"x": (x, "c$, " + SPATIAL[d]), "k": (k, "o$, part$, " + KERNEL[d])},
                   f"conv{d}d_grouped[{SPATIAL[d]}](x$, k$, {stride}, {pad}, {dilation}, {groups})", "o$, " + OUT[d], np.concatenate(parts))
    for d, shape, kernel in ((1, (3,), (3,)), (2, (2, 3), (3, 2)), (3, (2, 1, 2), (2, 3, 2))):
        for stride, pad, more in ((2, 0, 1), (3, 1, 2), (2, 1, 0)):
            x, k = t.draw(2, *shape), t.draw(2, 1, *kernel)
            y = transposed(x, k, stride, pad)
            # Longer at the end: what the padding cut off there, then zeros.
            full = transposed(x, k, stride, 0)
            full = np.pad(full, [(0, 0)] + [(0, more)] * d)
            want = full[(slice(None), *(slice(pad, pad + s + more) for s in y.shape[1:]))]
            t.case({"x": (x, "c$, " + SPATIAL[d]), "k": (k, "c$, o$, " + KERNEL[d])},
                   f"conv_transpose{d}d_padded[{SPATIAL[d]}](x$, k$, {stride}, {pad}, {more})", "o$, " + OUT[d], want)
    t.write()

    t = File("more_losses", "The cross-entropy without samples that are to be ignored.", ["std::loss::cross_entropy_ignoring"])
    for names, shape, axis in (("b$, j$", (4, 3), 1), ("b$, j$, s$", (2, 3, 2), 1)):
        z = t.draw(*shape, low=-2, high=2)
        label = t.rng.integers(0, 3, np.delete(shape, axis)).astype(np.int32)
        label.flat[1] = -100
        p = np.log(np.exp(z).sum(axis)) - np.take_along_axis(z, np.expand_dims(np.maximum(label, 0), axis), axis).squeeze(axis)
        t.case({"z": (z, names), "label": (label, names.replace("j$, ", "").replace(", j$", ""))},
               "cross_entropy_ignoring[j$](z$, label$, -100)", names.replace("j$, ", "").replace(", j$", ""), np.where(label == -100, 0, p))
    t.write()

    sig = lambda v: 1 / (1 + np.exp(-v))
    t = File("more_recurrent", "A GRU with the second bias of PyTorch's.", ["std::nn::recurrent::gru_two_biases"], some=1)
    for batch, n, i, h in (((), 3, 2, 2), ((2,), 2, 1, 2)):
        f = "b$, " if batch else ""
        x, s = t.draw(*batch, n, i), t.draw(*batch, h)
        v, u, bias, second = t.draw(3, h, i), t.draw(3, h, h), t.draw(3, h), t.draw(3, h)
        inputs = {"x": (x, f + "t$, i$"), "s": (s, f + "h$"), "v": (v, "g$, h$, i$"), "u": (u, "g$, h$, k$"), "bias": (bias, "g$, h$"), "more": (second, "g$, h$")}
        ys, cast = [], lambda b: b.reshape(3, *[1] * len(batch), h)
        for step in range(n):
            a = np.einsum("...i,ghi->g...h", x[..., step, :], v) + cast(bias)
            b = np.einsum("...k,ghk->g...h", s, u) + cast(second)
            r, z = sig(a[0] + b[0]), sig(a[1] + b[1])
            s = (1 - z) * np.tanh(a[2] + r * b[2]) + z * s
            ys.append(s)
        t.case(inputs, "gru_two_biases[t$](x$, s$, v$, u$, bias$, more$)", f + "t$, h$", np.stack(ys, -2))
    t.write()
