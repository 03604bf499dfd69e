"""The workloads in NumPy: forward only. A case's function takes its inputs by name and returns its outputs in order;
`LOSS` has the value whose gradients a row takes, in whatever precision the inputs have."""

import numpy as np


def prepare(threads):
    pass  # the libraries below read OMP_NUM_THREADS


def load(array):
    return array


def logsumexp(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


def ew(x):
    return np.tanh(np.exp(-x * x) * x + 1)


def softmax(x, w=None):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, gamma, beta):
    m = x.mean(axis=-1, keepdims=True)
    c = x - m
    return c / np.sqrt((c * c).mean(axis=-1, keepdims=True) + x.dtype.type(1e-5)) * gamma + beta


def layernorm(x, w, gamma, beta):
    return layer_norm(x, gamma, beta)


def contract(A, B):
    return np.einsum("aebf,dfce->abcd", A, B, optimize=True)


def batched(X, Y):
    return np.einsum("inkh,hkjn->nihj", X, Y, optimize=True)


def chain(A, B, C, v, w):
    return A @ (B @ (C @ v))


def mlp(x, label, W1, b1, W2, b2, W3, b3):
    a1 = np.maximum(x @ W1.T + b1, 0)
    a2 = np.maximum(a1 @ W2.T + b2, 0)
    z = a2 @ W3.T + b3
    return (logsumexp(z) - z[np.arange(len(label)), label]).mean()


def conv(x, kernel, bias, weight):
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
    y = columns @ kernel.reshape(kernel.shape[0], -1).T + bias
    return np.maximum(y, 0).reshape(n, h, w, -1).transpose(0, 3, 1, 2)


def conv2(x, kernel, weight):
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwij,ocij->nohw", windows, kernel, optimize=True)


def spmv(start, column, value, x, w):
    sums = np.concatenate([[0], np.cumsum((value * x[column]).astype(float))])
    return (sums[start[1:]] - sums[start[:-1]]).astype(value.dtype)


def fft(re, im):
    out = np.fft.fft(re + 1j * im)
    return out.real.astype(re.dtype), out.imag.astype(re.dtype)


def causal(q, k, v):
    t = q.shape[-2]
    score = q @ np.swapaxes(k, -1, -2) / q.dtype.type(q.shape[-1] ** 0.5)
    return softmax(np.where(np.tril(np.ones((t, t), bool)), score, q.dtype.type(-np.inf))) @ v


def attention(q, k, v, w):
    return causal(q, k, v)


def block(x, target, g1, b1, wq, wk, wv, wo, g2, b2, u, bu, w, bw, **_):
    z = layer_norm(x, g1, b1)
    q, k, v = (np.einsum("ntm,hdm->nhtd", z, p, optimize=True) for p in (wq, wk, wv))
    a = x + np.einsum("nhtd,mhd->ntm", causal(q, k, v), wo, optimize=True)
    z = layer_norm(a, g2, b2) @ u.T + bu
    z = 0.5 * z * (1 + np.tanh((2 / np.pi) ** 0.5 * (z + 0.044715 * z**3)))
    return ((a + z @ w.T + bw - target) ** 2).mean()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, first, w, u, bias, weight):
    s = c = first
    given = np.einsum("nti,ghi->tngh", x, w, optimize=True) + bias
    out = []
    for a in given:
        a = a + np.einsum("nk,ghk->ngh", s, u, optimize=True)
        i, f, g, o = (a[:, j] for j in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        s = sigmoid(o) * np.tanh(c)
        out.append(s)
    return np.stack(out, axis=1)


def ode(first, sigma, rho, beta, dt, steps):
    def slope(p):
        return np.array([sigma * (p[1] - p[0]), p[0] * (rho - p[2]) - p[1], p[0] * p[1] - beta * p[2]])

    p = first
    for _ in range(int(steps)):
        k1 = slope(p)
        k2 = slope(p + 0.5 * dt * k1)
        k3 = slope(p + 0.5 * dt * k2)
        k4 = slope(p + dt * k3)
        p = p + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return p


def heat(first, w, steps):
    u, fifth = first.copy(), first.dtype.type(0.2)
    for _ in range(int(steps)):
        inner = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = inner + fifth * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)
    return u


def kalman(seen, F, Q, r):
    x, P, loss = np.zeros(3), np.eye(3), 0.0
    for z in seen:
        e, S = z - x[0], P[0, 0] + r
        K = P[:, 0] / S
        loss += 0.5 * np.log(S) + 0.5 * e * e / S
        x = F @ (x + K * e)
        P = F @ (P - np.outer(K, P[0])) @ F.T + Q
    return loss


def embed(table, token, w):
    return table[token]


def gmm(x, alpha, mu, icf):
    d = x.shape[1]
    q, L = icf[:, :d], np.zeros((len(alpha), d, d))
    c, r = np.triu_indices(d, 1)  # the cells below the diagonal, by columns
    L[:, r, c] = icf[:, d:]
    centred = x[:, None] - mu
    z = np.exp(q) * centred + np.einsum("krc,nkc->nkr", L, centred, optimize=True)
    score = alpha + q.sum(axis=1) - 0.5 * (z**2).sum(axis=-1)
    prior = 0.5 * ((np.exp(q) ** 2).sum() + (L**2).sum())
    return logsumexp(score).sum() - len(x) * logsumexp(alpha) + prior


def dp(cost):
    n, m = cost.shape
    # By diagonals: R[d, i] is the cell in row i and column d - i.
    R = np.full((n + m + 1, n + 1), cost.dtype.type(1e10))
    R[0, 0] = 0
    for d in range(2, n + m + 1):
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        near = np.stack([R[d - 2, i - 1], R[d - 1, i - 1], R[d - 1, i]])
        low = near.min(axis=0)
        R[d, i] = cost[i - 1, d - i - 1] + low - np.log(np.exp(low - near).sum(axis=0))
    return R[n + m, n]


def colscan(x, w, decay):
    y = x.copy()
    for t in range(1, x.shape[1]):
        y[:, t] += decay * y[:, t - 1]
    return y


def ensemble(first, dt, steps):
    def slope(p):
        x, y, z = p.T
        return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z], -1)

    p = first
    for _ in range(int(steps)):
        k1 = slope(p)
        k2 = slope(p + 0.5 * dt * k1)
        k3 = slope(p + 0.5 * dt * k2)
        k4 = slope(p + dt * k3)
        p = p + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return p


def filters(seen, F, Q, r):
    b = seen.shape[1]
    x, P, loss = np.zeros((b, 3)), np.broadcast_to(np.eye(3), (b, 3, 3)), 0.0
    for z in seen:
        e, S = z - x[:, 0], P[:, 0, 0] + r
        K = P[:, :, 0] / S[:, None]
        loss += (0.5 * np.log(S) + 0.5 * e * e / S).sum()
        x = (x + K * e[:, None]) @ F.T
        P = F @ (P - K[:, :, None] * P[:, None, 0]) @ F.T + Q
    return loss


def newton(first, force, dt):
    x = first
    for f in force[1:]:
        z = x
        for _ in range(5):
            z = z - (z + dt * z**3 - x - dt * f) / (1.0 + 3.0 * dt * z**2)
        x = z
    return x


def polyfit(x, y, c):
    return ((np.vander(x, len(c), increasing=True) @ c - y) ** 2).mean()


def hdiff(u, c):
    lap = 4 * u[:, 1:-1, 1:-1] - (u[:, 1:-1, 2:] + u[:, 1:-1, :-2] + u[:, 2:, 1:-1] + u[:, :-2, 1:-1])
    dx = lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1]
    dx = np.where(dx * (u[:, 2:-2, 2:-1] - u[:, 2:-2, 1:-2]) > 0, 0, dx)
    dy = lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1]
    dy = np.where(dy * (u[:, 2:-1, 2:-2] - u[:, 1:-2, 2:-2]) > 0, 0, dy)
    return u[:, 2:-2, 2:-2] - c * (dx[:, :, 1:] - dx[:, :, :-1] + dy[:, 1:] - dy[:, :-1])


def vadv(u, speed, dt):
    q = u.dtype.type(0.25) * dt * speed
    g, d, y = q.copy(), u.copy(), u.copy()
    for k in range(1, len(u)):
        below = 1 / (1 + q[k] * g[k - 1])
        g[k] *= below
        d[k] = (d[k] + q[k] * d[k - 1]) * below
    y[-1] = d[-1]
    for k in range(len(u) - 2, -1, -1):
        y[k] = d[k] - g[k] * y[k + 1]
    return y


LOSS = {
    "ew": lambda **a: ew(**a).sum(),
    "softmax": lambda **a: (a["w"] * softmax(**a)).sum(),
    "layernorm": lambda **a: (a["w"] * layernorm(**a)).sum(),
    "chain": lambda **a: (a["w"] * chain(**a)).sum(),
    "mlp": mlp,
    "conv": lambda **a: (a["weight"] * conv(**a)).sum(),
    "conv2": lambda **a: (a["weight"] * conv2(**a)).sum(),
    "spmv": lambda **a: (a["w"] * spmv(**a)).sum(),
    "attention": lambda **a: (a["w"] * attention(**a)).sum(),
    "block": block,
    "lstm": lambda **a: (a["weight"] * lstm(**a)).sum(),
    "ode": lambda **a: ode(**a).sum(),
    "heat": lambda **a: (a["w"] * heat(**a)).sum(),
    "kalman": kalman,
    "embed": lambda **a: (a["w"] * embed(**a)).sum(),
    "gmm": gmm,
    "hvp": mlp,
    "dp": dp,
    "colscan": lambda **a: (a["w"] * colscan(**a)).sum(),
    "ensemble": lambda **a: ensemble(**a).sum(),
    "filters": filters,
    "newton": newton,
    "polyfit": polyfit,
    "vadv": lambda **a: (vadv(**a) ** 2).sum(),
    "linalg.cholesky_gradient": lambda spd, w, **_: (w * np.linalg.cholesky(spd)).sum(),
    "linalg.solve_gradient": lambda a, b, **_: (np.linalg.solve(a, b) ** 2).sum(),
    "linalg.qr_gradient": lambda a, w, **_: weighed_qr(a, w),
    "linalg.svd_gradient": lambda a, w, **_: weighed_svd(a, w),
    "linalg.det_gradient": lambda a, **_: np.linalg.det(a),
}


def weighed_qr(a, w):
    q, r = np.linalg.qr(a)
    sign = np.sign(np.diagonal(r))
    return (w * (q * sign + r * sign[:, None])).sum()


def weighed_svd(a, w):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return (w * (u * u + (vt * vt).T)).sum() + (np.diagonal(w) * s).sum()


LINALG = {
    "cholesky": lambda spd, **_: np.linalg.cholesky(spd),
    "solve": lambda a, b, **_: np.linalg.solve(a, b),
    "qr": lambda a, w, **_: weighed_qr(a, w),
    "svd": lambda a, w, **_: weighed_svd(a, w),
    "det": lambda a, **_: np.linalg.det(a),
}


def case(kind, name):
    """What to call with the inputs; nothing when there is no such workload here."""
    row, variant = name.split(".")
    if row == "gemm":
        out = {}
        return lambda A, B: [np.matmul(A, B, out=out.setdefault(0, np.empty((A.shape[0], B.shape[1]), A.dtype)))]
    if row == "linalg":
        f = LINALG.get(variant)
        return f and (lambda **inputs: [f(**inputs)])
    if row == "contract":
        f = batched if variant.startswith("batched") else contract
    elif variant == "forward":
        f = globals()[row]
    else:
        return None
    return lambda **inputs: listed(f(**inputs))


def listed(values):
    return list(values) if isinstance(values, tuple) else [values]


def too_slow(name, quick):
    """A loop in Python over that many steps takes minutes."""
    return not quick and name in ("ode.forward", "kalman.forward", "newton.forward")


KINDS = ["numpy"]
