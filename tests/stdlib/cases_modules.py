import numpy as np
from scipy import special as sp


def make(File):
    t = File("math_special", "Elementary and special functions.")
    x = np.array([-2.3, -0.7, 0.3, 0.9, 4.2])
    p = np.array([0.2, 0.7, 1.5, 6.0])
    for expr, at, want in (("asinh(x$)", x, np.arcsinh(x)), ("atanh(x$ / 5.0)", x, np.arctanh(x / 5)), ("acosh(x$ + 1.0)", p, np.arccosh(p + 1)),
                           ("cbrt(x$)", x, np.cbrt(x)), ("sinc(x$)", x, np.sinc(x / np.pi)), ("erfc(x$)", x, sp.erfc(x)),
                           ("logit(x$ / 7.0)", p, sp.logit(p / 7)), ("exp2(x$)", x, np.exp2(x)), ("rsqrt(x$)", p, 1 / np.sqrt(p)),
                           ("lgamma(x$)", x, sp.gammaln(x)), ("lgamma(x$)", p, sp.gammaln(p)), ("digamma(x$)", p, sp.digamma(p)),
                           ("gamma(x$)", x, sp.gamma(x)), ("hypot(x$, 0.5)", x, np.hypot(x, 0.5)),
                           ("logaddexp(x$, 0.1)", x, np.logaddexp(x, 0.1)), ("xlogy(x$, 2.0 * x$)", p, sp.xlogy(p, 2 * p))):
        t.case({"x": (at, "i$")}, expr, "i$", want)
    a, b = t.draw(3, low=0.5, high=3), t.draw(3, low=0.5, high=3)
    t.case({"a": (a, "i$"), "b": (b, "i$")}, "lbeta(a$, b$)", "i$", sp.betaln(a, b))
    z = t.draw(2, 3, 2)
    t.case({"x": (z, "a$, j$, c$")}, "logsumexp[j$](x$)", "a$, c$", sp.logsumexp(z, axis=1))
    t.case({"x": (z, "a$, j$, c$")}, "variance[j$](x$)", "a$, c$", z.var(1))
    t.write()

    t = File("array_parts", "Joining, cutting and turning, along the middle coordinate.",
             ["std::array::{concat, diff, flip, pad, repeat, roll, slice, stack, take, tile}"])
    x, y = t.draw(2, 3, 2), t.draw(2, 2, 2)
    n = "a$, j$, c$"
    t.case({"x": (x, n), "y_": (y, "a$, k$, c$")}, "concat[j$](x$, y_$)", "a$, m$, c$", np.concatenate([x, y], 1))
    t.case({"x": (x, n), "y_": (x[::-1] + 0.0, n)}, "stack(x$, y_$)", "s$, " + n, np.stack([x, x[::-1]]))
    t.case({"x": (x, n)}, "slice[j$](x$, 1, 3)", "a$, m$, c$", x[:, 1:3])
    t.case({"x": (x, n)}, "pad[j$](x$, 1, 2, 0.5)", "a$, m$, c$", np.pad(x, [(0, 0), (1, 2), (0, 0)], constant_values=0.5))
    for by in (1, -1, 4):
        t.case({"x": (x, n)}, f"roll[j$](x$, {by})", n, np.roll(x, by, 1))
    t.case({"x": (x, n)}, "flip[j$](x$)", n, x[:, ::-1])
    t.case({"x": (x, n)}, "tile[j$](x$, 2)", "a$, m$, c$", np.tile(x, (1, 2, 1)))
    t.case({"x": (x, n)}, "repeat[j$](x$, 2)", "a$, m$, c$", np.repeat(x, 2, 1))
    t.case({"x": (x, n)}, "diff[j$](x$)", "a$, m$, c$", np.diff(x, axis=1))
    at = np.array([2, 0, 2, 1], np.int32)
    t.case({"x": (x, n), "at": (at, "m$")}, "take[j$](x$, at$)", "a$, m$, c$", x[:, at])
    t.write()

    t = File("array_scans", "Running sums and products, of one, some and many cells.", ["std::array::{cumprod, cumsum}"])
    for names, shape, axis in (("j$", (1,), 0), ("b$, j$", (2, 4), 1), ("b$, j$, c$", (2, 3, 2), 1)):
        x = t.draw(*shape)
        t.case({"x": (x, names)}, "cumsum[j$](x$)", names, np.cumsum(x, axis))
        t.case({"x": (x, names)}, "cumprod[j$](x$)", names, np.cumprod(x, axis))
    t.write()

    t = File("array_order", "Sorting along the only, the last and the middle coordinate; the largest few.",
             ["std::array::{argsort, rank, sort, top_k}"])
    for names, shape, axis in (("j$", (6,), 0), ("b$, j$", (2, 4), 1), ("b$, j$, c$", (2, 3, 2), 1)):
        x = t.draw(*shape)
        t.case({"x": (x, names)}, "sort[j$](x$)", names, np.sort(x, axis))
        t.case({"x": (x, names)}, f"argsort[j$](x$) as [f64; {names}]", names, np.argsort(x, axis), derivative=False, f32=False)
        t.case({"x": (x, names)}, f"rank[j$](x$) as [f64; {names}]", names, np.argsort(np.argsort(x, axis), axis), derivative=False, f32=False)
        t.case({"x": (x, names)}, "top_k[j$](x$, 2).0", names.replace("j$", "m$"), np.flip(np.sort(x, axis), axis).take([0, 1], axis))
    t.write()

    t = File("array_matrices", "Triangles, diagonals, Kronecker products, flattening, scattered sums.",
             ["std::array::{diag, diagonal, flatten, kron, rows_of, scatter_add, tril, triu}"])
    a, b, v = t.draw(2, 3, 3), t.draw(2, 2), t.draw(2, 3)
    t.case({"a": (a, "n$, i$, j$")}, "tril(a$)", "n$, i$, j$", np.tril(a))
    t.case({"a": (a, "n$, i$, j$")}, "triu(a$)", "n$, i$, j$", np.triu(a))
    t.case({"v": (v, "n$, k$")}, "diag(v$)", "n$, i$, j$", np.stack([np.diag(r) for r in v]))
    t.case({"a": (a, "n$, i$, j$")}, "diagonal(a$)", "n$, i$", np.diagonal(a, axis1=1, axis2=2))
    t.case({"a": (v, "i$, j$"), "b": (b, "p$, q$")}, "kron(a$, b$)", "r$, s$", np.kron(v, b))
    t.case({"a": (a, "n$, i$, j$")}, "flatten(a$)", "n$, k$", a.reshape(2, 9))
    t.case({"a": (a.reshape(18), "k$")}, "rows_of(a$, 6)", "i$, j$", a.reshape(3, 6))
    at = np.array([2, 0, 2], np.int32)
    want = np.zeros((4, 2))
    np.add.at(want, at, v.T)
    t.case({"x": (v.T + 0.0, "m$, c$"), "at": (at, "m$")}, "scatter_add(x$, at$, 4)", "i$, c$", want)
    t.write()

    def soft(z):
        e = np.exp(z - z.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    t = File("attention", "Attention: plain, masked, causal, with heads; rotary positions.",
             ["std::nn::attention::{attention, causal_attention, masked_attention, multi_head_attention, rotary}"], some=2)
    for batch, n, m, d, e in (((), 2, 3, 2, 2), ((2,), 3, 3, 2, 1), ((2,), 1, 2, 4, 3)):
        q, k, v = t.draw(*batch, n, d), t.draw(*batch, m, d), t.draw(*batch, m, e)
        f = "b$, " if batch else ""
        names = {"q": (q, f + "t$, d$"), "k": (k, f + "s$, d$"), "v": (v, f + "s$, e$")}
        z = q @ np.swapaxes(k, -1, -2) / np.sqrt(d)
        t.case(names, "attention(q$, k$, v$)", f + "t$, e$", soft(z) @ v)
        mask = t.rng.uniform(size=(n, m)) > 0.4
        mask[0] = False
        with np.errstate(all="ignore"):
            p = np.where(mask, np.exp(z), 0)
            p = np.where(p.sum(-1, keepdims=True) > 0, p / p.sum(-1, keepdims=True), 0)
        t.case({**names, "mask": (mask, "t$, s$")}, "masked_attention(q$, k$, v$, mask$)", f + "t$, e$", p @ v)
        p = np.where(np.tri(n, m) > 0, np.exp(z), 0)
        t.case(names, "causal_attention(q$, k$, v$)", f + "t$, e$", p / p.sum(-1, keepdims=True) @ v)
    x, y = t.draw(2, 2, 3), t.draw(2, 3, 3)
    w = [t.draw(2, 2, 3) for _ in range(3)]
    wo = t.draw(3, 2, 2)
    q, k, v = (np.einsum("btm,hdm->bhtd", s, u) for s, u in zip((x, y, y), w))
    z = soft(q @ np.swapaxes(k, -1, -2) / np.sqrt(2)) @ v
    t.case({"x": (x, "b$, t$, m$"), "z": (y, "b$, s$, m$"), "wq": (w[0], "h$, d$, m$"), "wk": (w[1], "h$, d$, m$"), "wv": (w[2], "h$, d$, m$"),
            "wo": (wo, "o$, h$, d$")}, "multi_head_attention(x$, z$, wq$, wk$, wv$, wo$)", "b$, t$, o$", np.einsum("bhtd,ohd->bto", z, wo))
    x = t.draw(3, 2, 4)
    angle = np.arange(3)[:, None, None] * 10000.0 ** (-np.arange(2) / 2)
    a, b = x[..., :2], x[..., 2:]
    t.case({"x": (x, "t$, b$, d$")}, "rotary[t$](x$)", "t$, b$, d$",
           np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1))
    t.write()

    sig = lambda z: 1 / (1 + np.exp(-z))
    t = File("recurrent", "Recurrent layers of one sample and of a batch.", ["std::nn::recurrent::{gru, lstm, rnn}"], some=1)
    for batch, n, i, h in (((), 3, 2, 2), ((2,), 2, 1, 3), ((1,), 1, 2, 1)):
        f = "b$, " if batch else ""
        x, s0, c0 = t.draw(*batch, n, i), t.draw(*batch, h), t.draw(*batch, h)
        base = {"x": (x, f + "t$, i$"), "s": (s0, f + "h$")}
        out = f + "t$, h$"

        def weights(g):
            return {"v": (t.draw(*g, h, i), f"{'g$, ' if g else ''}h$, i$"), "u": (t.draw(*g, h, h), f"{'g$, ' if g else ''}h$, k$"),
                    "bias": (t.draw(*g, h), f"{'g$, ' if g else ''}h$")}

        w = weights(())
        s, ys = s0, []
        for step in range(n):
            s = np.tanh(x[..., step, :] @ w["v"][0].T + s @ w["u"][0].T + w["bias"][0])
            ys.append(s)
        t.case({**base, **w}, "rnn[t$](x$, s$, v$, u$, bias$)", out, np.stack(ys, -2))
        w = weights((4,))
        s, c, ys = s0, c0, []
        for step in range(n):
            a = np.einsum("...i,ghi->g...h", x[..., step, :], w["v"][0]) + np.einsum("...k,ghk->g...h", s, w["u"][0])
            a = a + w["bias"][0].reshape(4, *[1] * len(batch), h)
            c = sig(a[1]) * c + sig(a[0]) * np.tanh(a[2])
            s = sig(a[3]) * np.tanh(c)
            ys.append(s)
        t.case({**base, "c": (c0, f + "h$"), **w}, "lstm[t$](x$, s$, c$, v$, u$, bias$).0", out, np.stack(ys, -2))
        w = weights((3,))
        more = t.draw(3, h) if batch else np.zeros((3, h))  # the second bias of PyTorch
        s, ys, cast = s0, [], lambda b: b.reshape(3, *[1] * len(batch), h)
        for step in range(n):
            a = np.einsum("...i,ghi->g...h", x[..., step, :], w["v"][0]) + cast(w["bias"][0])
            b = np.einsum("...k,ghk->g...h", s, w["u"][0]) + cast(more)
            r, z = sig(a[0] + b[0]), sig(a[1] + b[1])
            s = (1 - z) * np.tanh(a[2] + r * b[2]) + z * s
            ys.append(s)
        if batch:
            w["more"] = (more, "g$, h$")
        t.case({**base, **w}, f"gru[t$](x$, s$, v$, u$, bias${', more$' if batch else ''})", out, np.stack(ys, -2))
    t.write()

    def steps(f, y, t0, dt, n, rule):
        out = [y]
        for k in range(n):
            out.append(rule(f, t0 + k * dt, out[-1], dt))
        return np.stack(out)

    def euler(f, t, y, dt):
        return y + dt * f(t, y)

    def rk4(f, t, y, dt):
        k1 = f(t, y)
        k2 = f(t + dt / 2, y + dt / 2 * k1)
        k3 = f(t + dt / 2, y + dt / 2 * k2)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + f(t + dt, y + dt * k3))

    t = File("ode_steps", "Single steps by hand, whole paths of numbers, vectors and matrices, and their sensitivities.",
             ["std::ode::{euler, rk4}"], some=2)
    for names, shape in (("", ()), ("i$", (2,)), ("i$, j$", (2, 2))):
        y = t.draw(*shape, low=0.5, high=1)
        g = lambda s, v: s - v * v
        out = "n$" + (", " + names if names else "")
        t.case({"y_": (y, names)}, "euler(|s, v| s - v * v, y_$, 0.5, 0.1, 3)", out, steps(g, y, 0.5, 0.1, 3, euler))
        t.case({"y_": (y, names)}, "rk4(|s, v| s - v * v, y_$, 0.5, 0.1, 3)", out, steps(g, y, 0.5, 0.1, 3, rk4))
    t.write()

    t = File("ode_accuracy", "Paths near the exact solution, in f64.", ["std::ode::{dormand_prince, leapfrog}"], tolerance=5e-7)
    for n, dt in ((10, 0.1), (40, 0.05), (1, 0.01)):
        y = np.array([1.0, 0.5])
        at = np.arange(n + 1) * dt
        t.case({"y_": (y, "i$")}, f"dormand_prince(|s, v| -v * 2.0, y_$, 0.0, {dt}, {n})", "n$, i$", y * np.exp(-2 * at)[:, None], f32=False)
    t.write()
    t = File("ode_leapfrog", "A spring: the path of the leapfrog method is that of a slightly faster spring.", ["std::ode::leapfrog"])
    for n, dt in ((5, 0.1), (20, 0.05), (1, 0.3)):
        x, v = 1.0, 0.3
        path = [x]
        for _ in range(n):
            v -= dt / 2 * x
            x += dt * v
            v -= dt / 2 * x
            path.append(x)
        t.case({"p": (1.0, ""), "q": (0.3, "")}, f"leapfrog(|s| -s, p$, q$, {dt}, {n}).0", "n$", np.array(path))
    t.write()

    t = File("optim_lbfgs", "The direction of L-BFGS, with memories of one to three steps.", ["std::optim::lbfgs_direction"])
    for n, k in ((2, 1), (3, 2), (4, 3)):
        h = np.eye(n) * 2 + 0.3
        g, s = t.draw(n), t.draw(k, n)
        y = np.round(s @ h, 4)
        q, a = g.copy(), np.zeros(k)
        for i in reversed(range(k)):
            a[i] = s[i] @ q / (s[i] @ y[i])
            q = q - a[i] * y[i]
        r = q * (s[-1] @ y[-1]) / (y[-1] @ y[-1])
        for i in range(k):
            r = r + s[i] * (a[i] - y[i] @ r / (s[i] @ y[i]))
        t.case({"g": (g, "n$"), "s": (s, "k$, n$"), "z": (y, "k$, n$")}, "lbfgs_direction(g$, s$, z$)", "n$", -r)
    t.write()
