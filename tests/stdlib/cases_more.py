import numpy as np


def lines(x, n):
    """Positions of n centres among those of the cells of the last axis, and their neighbours: linear interpolation."""
    at = np.maximum((np.arange(n) + 0.5) * x.shape[-1] / n - 0.5, 0)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, x.shape[-1] - 1)
    return (1 - (at - low)) * x[..., low] + (at - low) * x[..., high]


def bilinear(x, rows, cols):
    return np.swapaxes(lines(np.swapaxes(lines(x, cols), -1, -2), rows), -1, -2)


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
    t.case({"x": (x, "i$")}, "sinc(x$, normalized = true)", "i$", np.sinc(x))
    for names, shape, axis in (("j$", (4,), 0), ("b$, j$, c$", (2, 3, 2), 1)):
        x = t.draw(*shape)
        out = names.replace("j$, ", "").replace("j$", "")
        t.case({"x": (x, names)}, "variance[j$](x$, correction = 1)", out, x.var(axis, ddof=1))
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
             ["std::array::{argsort, bincount, histogram, searchsorted, sort, top_k}"])
    for n in (1, 2, 7, 16, 33):
        x = np.round(t.rng.permutation(n) / n, 3)
        t.case({"x": (x, "j$")}, "sort[j$](x$)", "j$", np.sort(x))
        ties = np.round(t.draw(n) * 2) / 2
        t.case({"x": (ties, "j$")}, "argsort[j$](x$) as [f64; j$]", "j$", np.argsort(ties, kind="stable"), derivative=False, f32=False)
        k = (n + 1) // 2
        t.case({"x": (x, "j$")}, f"top_k[j$](x$, {k}).0", "m$", np.sort(x)[::-1][:k])
        t.case({"x": (ties, "j$")}, f"top_k[j$](x$, {k}).1 as [f64; m$]", "m$", np.argsort(-ties, kind="stable")[:k], derivative=False, f32=False)
        edges, v = np.sort(ties), np.concatenate([ties[:3], [-9.0, 9.0, 0.25]])
        for side, more in (("left", ""), ("right", ", right = true")):
            t.case({"x": (edges, "n$"), "v": (v, "k$")}, f"searchsorted(x$, v${more}) as [f64; k$]", "k$", np.searchsorted(edges, v, side), derivative=False,
                   f32=False)
    at, v = np.array([2, 0, 2, 4, 0, 2], np.int32), t.draw(6)
    t.case({"v": (v, "n$"), "at": (at, "n$")}, "bincount(at$, 6, weight = v$)", "c$", np.bincount(at, v, 6))
    x = t.draw(9, low=-0.2, high=1.2, away=[0.0, 0.25, 0.5, 0.75, 1.0])
    w = t.draw(9)
    t.case({"v": (w, "n$")}, f"histogram({x.tolist()}, 0.0, 1.0, 4, weight = v$)", "b$", np.histogram(x, 4, (0, 1), weights=w)[0])
    t.write()
