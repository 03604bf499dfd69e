"""The workloads in JAX, jitted; recurrences are scans."""

import jax

jax.config.update("jax_enable_x64", True)  # before any array is made; the f32 inputs stay f32

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

KINDS = ["jax"]


def prepare(threads):
    pass  # the thread pool has as many threads as the process may use CPUs


def load(array):
    return jnp.asarray(array)


def ew(x):
    return jnp.tanh(jnp.exp(-x * x) * x + 1)


def softmax(x, w):
    return jax.nn.softmax(x, -1)


def layer_norm(x, gamma, beta):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * gamma + beta


def layernorm(x, w, gamma, beta):
    return layer_norm(x, gamma, beta)


def gemm(A, B):
    return A @ B


def contract(A, B):
    return jnp.einsum("aebf,dfce->abcd", A, B)


def batched(X, Y):
    return jnp.einsum("inkh,hkjn->nihj", X, Y)


def chain(A, B, C, v, w):
    return jnp.einsum("ij,jk,kl,l->i", A, B, C, v, optimize="optimal")


def mlp(x, label, W1, b1, W2, b2, W3, b3):
    a = jax.nn.relu(x @ W1.T + b1)
    a = jax.nn.relu(a @ W2.T + b2)
    z = a @ W3.T + b3
    picked = jnp.take_along_axis(z, label[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(z, axis=-1) - picked).mean()


def conv(x, kernel, bias, weight):
    y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return jax.nn.relu(y + bias[:, None, None])


def conv2(x, kernel, weight):
    return lax.conv_general_dilated(x, kernel, (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW"))


def spmv(start, column, value, x, w):
    row = jnp.repeat(jnp.arange(len(x)), jnp.diff(start), total_repeat_length=len(column))
    return jax.ops.segment_sum(value * x[column], row, len(x), indices_are_sorted=True)


def fft(re, im):
    out = jnp.fft.fft(lax.complex(re, im))
    return out.real, out.imag


def attention(q, k, v, w):
    q, k, v = (a.transpose(0, 2, 1, 3) for a in (q, k, v))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True).transpose(0, 2, 1, 3)


def block(x, target, g1, b1, wq, wk, wv, wo, g2, b2, u, bu, w, bw):
    z = layer_norm(x, g1, b1)
    q, k, v = (jnp.einsum("ntm,hdm->nthd", z, p) for p in (wq, wk, wv))
    a = x + jnp.einsum("nthd,mhd->ntm", jax.nn.dot_product_attention(q, k, v, is_causal=True), wo)
    z = jax.nn.gelu(layer_norm(a, g2, b2) @ u.T + bu, approximate=True)
    return ((a + z @ w.T + bw - target) ** 2).mean()


def lstm(x, first, w, u, bias, weight):
    given = jnp.einsum("nti,ghi->tngh", x, w) + bias

    def step(carry, a):
        s, c = carry
        a = a + jnp.einsum("nk,ghk->ngh", s, u)
        i, f, g, o = a[:, 0], a[:, 1], a[:, 2], a[:, 3]
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        s = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (s, c), s

    return lax.scan(step, (first, first), given)[1].transpose(1, 0, 2)


def ode(first, sigma, rho, beta, dt, steps):
    def slope(p):
        return jnp.stack([sigma * (p[1] - p[0]), p[0] * (rho - p[2]) - p[1], p[0] * p[1] - beta * p[2]])

    def step(p, _):
        k1 = slope(p)
        k2 = slope(p + 0.5 * dt * k1)
        k3 = slope(p + 0.5 * dt * k2)
        k4 = slope(p + dt * k3)
        return p + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, first, None, length=steps)[0]


def heat(first, w, steps):
    def step(u, _):
        inner = u[1:-1, 1:-1]
        inner = inner + 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)
        return u.at[1:-1, 1:-1].set(inner), None

    return lax.scan(step, first, None, length=steps)[0]


def kalman(seen, F, Q, r):
    def step(carry, z):
        x, P = carry
        e, S = z - x[0], P[0, 0] + r
        K = P[:, 0] / S
        x = F @ (x + K * e)
        P = F @ (P - jnp.outer(K, P[0])) @ F.T + Q
        return (x, P), 0.5 * jnp.log(S) + 0.5 * e * e / S

    return lax.scan(step, (jnp.zeros(3), jnp.eye(3)), seen)[1].sum()


def embed(table, token, w):
    return table[token]


def gmm(x, alpha, mu, icf):
    d = x.shape[1]
    q = icf[:, :d]
    c, r = jnp.triu_indices(d, 1)
    L = jnp.zeros((len(alpha), d, d), x.dtype).at[:, r, c].set(icf[:, d:])
    centred = x[:, None] - mu
    z = jnp.exp(q) * centred + jnp.einsum("krc,nkc->nkr", L, centred)
    score = alpha + q.sum(1) - 0.5 * (z**2).sum(-1)
    prior = 0.5 * ((jnp.exp(q) ** 2).sum() + (L**2).sum())
    return jax.nn.logsumexp(score, axis=1).sum() - len(x) * jax.nn.logsumexp(alpha) + prior


def dp(cost):
    """A scan over diagonals, each a vector over rows; column j of the skewed table is the diagonal j + 2."""
    n, m = cost.shape
    i, d = jnp.arange(n)[:, None], jnp.arange(n + m - 1)[None, :]
    inside = (d - i >= 0) & (d - i < m)
    skewed = jnp.where(inside, cost[i, jnp.clip(d - i, 0, m - 1)], 0)
    big = jnp.asarray(1e10, cost.dtype)

    def step(carry, column):
        before, last = carry
        values, valid = column
        near = jnp.stack([before[:-1], last[:-1], last[1:]])
        new = jnp.where(valid, values - jax.nn.logsumexp(-near, axis=0), big)
        return (last, jnp.concatenate([big[None], new])), None

    start = (jnp.full(n + 1, big).at[0].set(0), jnp.full(n + 1, big))
    return lax.scan(step, start, (skewed.T, inside.T))[0][1][n]


def colscan(x, w, decay):
    def step(y, a):
        y = decay * y + a
        return y, y

    return lax.scan(step, jnp.zeros_like(x[:, 0]), x.T)[1].T


def ensemble(first, dt, steps):
    def slope(p):
        x, y, z = p.T
        return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z], -1)

    def step(p, _):
        k1 = slope(p)
        k2 = slope(p + 0.5 * dt * k1)
        k3 = slope(p + 0.5 * dt * k2)
        k4 = slope(p + dt * k3)
        return p + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, first, None, length=steps)[0]


def filters(seen, F, Q, r):
    return jax.vmap(kalman, in_axes=(1, None, None, None))(seen, F, Q, r).sum()


def newton(first, force, dt):
    def step(x, f):
        z = x
        for _ in range(5):
            z = z - (z + dt * z**3 - x - dt * f) / (1.0 + 3.0 * dt * z**2)
        return z, None

    return lax.scan(step, first, force[1:])[0]


def polyfit(x, y, c):
    return ((jnp.vander(x, len(c), increasing=True) @ c - y) ** 2).mean()


def hdiff(u, c):
    lap = 4 * u[:, 1:-1, 1:-1] - (u[:, 1:-1, 2:] + u[:, 1:-1, :-2] + u[:, 2:, 1:-1] + u[:, :-2, 1:-1])
    dx = lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1]
    dx = jnp.where(dx * (u[:, 2:-2, 2:-1] - u[:, 2:-2, 1:-2]) > 0, 0, dx)
    dy = lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1]
    dy = jnp.where(dy * (u[:, 2:-1, 2:-2] - u[:, 1:-2, 2:-2]) > 0, 0, dy)
    return u[:, 2:-2, 2:-2] - c * (dx[:, :, 1:] - dx[:, :, :-1] + dy[:, 1:] - dy[:, :-1])


def vadv(u, speed, dt):
    q = 0.25 * dt * speed

    def down(carry, level):
        g, d = carry
        q, u = level
        below = 1 / (1 + q * g)
        return (q * below, (u + q * d) * below), (q * below, (u + q * d) * below)

    def up(y, level):
        g, d = level
        y = d - g * y
        return y, y

    g, d = lax.scan(down, (jnp.zeros_like(u[0]), jnp.zeros_like(u[0])), (q, u))[1]
    return lax.scan(up, jnp.zeros_like(u[0]), (g, d), reverse=True)[1]


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
    "dp": dp,
    "colscan": lambda **a: (a["w"] * colscan(**a)).sum(),
    "ensemble": lambda **a: ensemble(**a).sum(),
    "filters": filters,
    "newton": newton,
    "polyfit": polyfit,
    "vadv": lambda **a: (vadv(**a) ** 2).sum(),
}
BY = {"ew": ["x"], "softmax": ["x"], "layernorm": ["x", "gamma", "beta"], "chain": ["A", "B", "C", "v"],
      "mlp": ["W1", "b1", "W2", "b2", "W3", "b3"], "conv": ["x", "kernel", "bias"], "attention": ["q", "k", "v"],
      "block": ["g1", "b1", "wq", "wk", "wv", "wo", "g2", "b2", "u", "bu", "w", "bw"],
      "lstm": ["x", "w", "u", "bias"], "ode": ["first", "sigma", "rho", "beta"], "heat": ["first"],
      "kalman": ["F", "Q", "r"], "embed": ["table"], "gmm": ["alpha", "mu", "icf"], "dp": ["cost"],
      "colscan": ["x"], "ensemble": ["first"], "filters": ["F", "Q", "r"], "newton": ["first"], "polyfit": ["c"],
      "vadv": ["u"], "conv2": ["x", "kernel"], "spmv": ["value", "x"]}


def gradients(row):
    def run(**inputs):
        of = {n: inputs.pop(n) for n in BY[row]}
        value, grads = jax.value_and_grad(lambda p: LOSS[row](**p, **inputs))(of)
        return [value, *(grads[n] for n in BY[row])]
    return run


def mlp_step(**inputs):
    value, *grads = gradients("mlp")(**inputs)
    return [value, *(inputs[n] - 0.1 * g for n, g in zip(BY["mlp"], grads))]


def block_step(step, **inputs):
    forward = {n: a for n, a in inputs.items() if n[:2] not in ("m_", "v_")}
    value, *grads = gradients("block")(**forward)
    out = [value]
    for n, g in zip(BY["block"], grads):
        m = 0.9 * inputs["m_" + n] + 0.1 * g
        v = 0.999 * inputs["v_" + n] + 0.001 * g * g
        t = jnp.asarray(step, g.dtype)
        out += [inputs[n] - 0.001 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v]
    return out


def hvp(**inputs):
    weights = [inputs[n] for n in BY["mlp"]]
    direction = [inputs[n] for n in ("v1", "c1", "v2", "c2", "v3", "c3")]
    loss = lambda *w: mlp(inputs["x"], inputs["label"], *w)
    return list(jax.jvp(jax.grad(loss, argnums=tuple(range(6))), weights, direction)[1])


def case(kind, name):
    row, variant = name.split(".")
    if row == "hvp":
        f = hvp
    elif variant == "step":
        f = globals()[name.replace(".", "_")]
    elif variant == "gradient":
        f = gradients(row)
    else:
        one = globals()["batched" if variant.startswith("batched") else row]

        def f(**inputs):
            values = one(**inputs)
            return list(values) if isinstance(values, tuple) else [values]
    compiled = jax.jit(f, static_argnames=["steps"] if row in ("ode", "heat", "ensemble") else None)

    def run(**inputs):
        if "steps" in inputs:
            inputs["steps"] = int(inputs["steps"])
        return jax.block_until_ready(compiled(**inputs))
    return run


def too_slow(name, quick):
    return False
