"""The workloads in PyTorch, eager and compiled; for products of matrices also the libraries below it, called directly."""

import os

import torch
import torch.nn.functional as F

KINDS = ["torch", "torch.compile", "onednn"]


SHORT = {"bf16-mixed": torch.bfloat16, "f16-mixed": torch.float16}.get(os.environ.get("EIN_BENCH_PRECISION"))


def prepare(threads):
    torch.set_num_threads(threads)
    if SHORT:
        torch.set_autocast_dtype("cpu", SHORT)
        torch.set_autocast_enabled("cpu", True)


def to_numpy(value):
    """NumPy has no bf16."""
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def load(array):
    return torch.from_numpy(array) if array.ndim else array.item()


def ew(x):
    return torch.tanh(torch.exp(-x * x) * x + 1)


def softmax(x, w):
    return torch.softmax(x, -1)


def layernorm(x, w, gamma, beta):
    return F.layer_norm(x, gamma.shape, gamma, beta, 1e-5)


def contract(A, B):
    return torch.einsum("aebf,dfce->abcd", A, B)


def batched(X, Y):
    return torch.einsum("inkh,hkjn->nihj", X, Y)


def chain(A, B, C, v, w):
    return A @ (B @ (C @ v))


def mlp(x, label, W1, b1, W2, b2, W3, b3):
    a = torch.relu(F.linear(x, W1, b1))
    a = torch.relu(F.linear(a, W2, b2))
    return F.cross_entropy(F.linear(a, W3, b3), label.long())


def conv(x, kernel, bias, weight):
    return torch.relu(F.conv2d(x, kernel, bias, padding=1))


def conv2(x, kernel, weight):
    return F.conv2d(x, kernel, stride=2, padding=1)


def spmv(start, column, value, x, w):
    return torch.segment_reduce(value * x[column], "sum", offsets=start.long())


def fft(re, im):
    out = torch.fft.fft(torch.complex(re, im))
    return out.real, out.imag


def attention(q, k, v, w):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def block(x, target, step, g1, b1, wq, wk, wv, wo, g2, b2, u, bu, w, bw, **_):
    m = x.shape[-1]
    z = F.layer_norm(x, (m,), g1, b1, 1e-5)
    q, k, v = (torch.einsum("ntm,hdm->nhtd", z, p) for p in (wq, wk, wv))
    a = x + torch.einsum("nhtd,mhd->ntm", F.scaled_dot_product_attention(q, k, v, is_causal=True), wo)
    z = F.gelu(F.linear(F.layer_norm(a, (m,), g2, b2, 1e-5), u, bu), approximate="tanh")
    return ((a + F.linear(z, w, bw) - target) ** 2).mean()


def lstm(x, first, w, u, bias, weight):
    h = first.shape[-1]
    flat = [w.reshape(4 * h, -1), u.reshape(4 * h, h), bias.reshape(-1), torch.zeros(4 * h)]
    return torch.lstm(x, (first[None], first[None]), flat, True, 1, 0.0, False, False, True)[0]


def heat(first, w, steps):
    u = first
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        inner = inner + 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)
        u = torch.cat([u[:1], torch.cat([u[1:-1, :1], inner, u[1:-1, -1:]], 1), u[-1:]])
    return u


def embed(table, token, w):
    return F.embedding(token, table)


def gmm(x, alpha, mu, icf):
    d = x.shape[1]
    q = icf[:, :d]
    c, r = torch.triu_indices(d, d, 1)
    L = torch.zeros(len(alpha), d, d, dtype=x.dtype).index_put((torch.arange(len(alpha))[:, None], r, c), icf[:, d:])
    centred = x[:, None] - mu
    z = torch.exp(q) * centred + torch.einsum("krc,nkc->nkr", L, centred)
    score = alpha + q.sum(1) - 0.5 * (z**2).sum(-1)
    prior = 0.5 * ((torch.exp(q) ** 2).sum() + (L**2).sum())
    return torch.logsumexp(score, 1).sum() - len(x) * torch.logsumexp(alpha, 0) + prior


def dp(cost):
    """By diagonals, each a vector over rows; what lies beyond the table is 1e10."""
    n, m = cost.shape
    before = torch.full((n + 1,), 1e10)
    before[0] = 0
    last = torch.full((n + 1,), 1e10)
    for d in range(2, n + m + 1):
        lo, hi = max(1, d - m), min(n, d - 1) + 1
        near = torch.stack([before[lo - 1:hi - 1], last[lo - 1:hi - 1], last[lo:hi]])
        diagonal = torch.flip(cost, [1]).diagonal(m + 1 - d)  # from the first row that it meets
        new = diagonal - torch.logsumexp(-near, 0)
        before, last = last, F.pad(new, (lo, n + 1 - hi), value=1e10)
    return last[n]


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
    "heat": lambda **a: (a["w"] * heat(**a)).sum(),
    "embed": lambda **a: (a["w"] * embed(**a)).sum(),
    "gmm": gmm,
    "dp": dp,
}
BY = {"ew": ["x"], "softmax": ["x"], "layernorm": ["x", "gamma", "beta"], "chain": ["A", "B", "C", "v"],
      "mlp": ["W1", "b1", "W2", "b2", "W3", "b3"], "conv": ["x", "kernel", "bias"], "attention": ["q", "k", "v"],
      "block": ["g1", "b1", "wq", "wk", "wv", "wo", "g2", "b2", "u", "bu", "w", "bw"],
      "lstm": ["x", "w", "u", "bias"], "heat": ["first"], "embed": ["table"], "gmm": ["alpha", "mu", "icf"],
      "dp": ["cost"], "conv2": ["x", "kernel"], "spmv": ["value", "x"]}


def gradients(row, loss):
    def run(**inputs):
        leaves = {n: inputs[n].detach().requires_grad_() for n in BY[row]}
        value = loss(**{**inputs, **leaves})
        return [value.detach(), *torch.autograd.grad(value, list(leaves.values()))]
    return run


def sgd_step(loss):
    of = gradients("mlp", loss)

    def run(**inputs):
        value, *grads = of(**inputs)
        return [value, *(inputs[n] - 0.1 * g for n, g in zip(BY["mlp"], grads))]
    return run


def adam_step(loss):
    of = gradients("block", loss)

    def run(**inputs):
        value, *grads = of(**inputs)
        ws = [inputs[n].clone() for n in BY["block"]]
        ms = [inputs["m_" + n].clone() for n in BY["block"]]
        vs = [inputs["v_" + n].clone() for n in BY["block"]]
        steps = [torch.tensor(float(inputs["step"] - 1)) for _ in ws]  # counted up inside
        torch.optim._functional.adam(
            ws, list(grads), ms, vs, [], steps, foreach=True, amsgrad=False, beta1=0.9, beta2=0.999, lr=0.001,
            weight_decay=0.0, eps=1e-8, maximize=False, has_complex=False)
        return [value, *(t for three in zip(ws, ms, vs) for t in three)]
    return run


def hvp(**inputs):
    names = BY["mlp"]
    weights = tuple(inputs[n] for n in names)
    direction = tuple(inputs[n] for n in ("v1", "c1", "v2", "c2", "v3", "c3"))
    loss = lambda *w: mlp(inputs["x"], inputs["label"], *w)
    return list(torch.func.jvp(torch.func.grad(loss, argnums=tuple(range(6))), weights, direction)[1])


def onednn(A, B):
    """oneDNN's product on plain layouts; the transposed operand is a view."""
    return [torch.ops.mkldnn._linear_pointwise(A, B.t(), None, "none", [], "")]


def positive(q, r):
    """The factors with a diagonal of r that is positive, as ours."""
    sign = torch.sign(torch.diagonal(r)).detach()
    return q * sign, r * sign[:, None]


def weighed_svd(a, w):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return (w * (u * u + (vh * vh).T)).sum() + (torch.diagonal(w) * s).sum()


def weighed_qr(a, w):
    q, r = positive(*torch.linalg.qr(a))
    return (w * (q + r)).sum()


def lower_cholesky(spd):
    """Of the lower triangle alone, as ours reads it."""
    return torch.linalg.cholesky(torch.tril(spd) + torch.tril(spd, -1).T)


# By name: the value, the loss whose gradients are taken, and by what.
LINALG = {
    "cholesky": (lambda spd, **_: torch.linalg.cholesky(spd), lambda spd, w, **_: (w * lower_cholesky(spd)).sum(), ["spd"]),
    "solve": (lambda a, b, **_: torch.linalg.solve(a, b), lambda a, b, **_: (torch.linalg.solve(a, b) ** 2).sum(), ["a", "b"]),
    "qr": (lambda a, w, **_: weighed_qr(a, w), lambda a, w, **_: weighed_qr(a, w), ["a"]),
    "svd": (lambda a, w, **_: weighed_svd(a, w), lambda a, w, **_: weighed_svd(a, w), ["a"]),
    "det": (lambda a, **_: torch.linalg.det(a), lambda a, **_: torch.linalg.det(a), ["a"]),
}


def linalg(variant):
    value, loss, by = LINALG[variant.removesuffix("_gradient")]

    def run(**inputs):
        if not variant.endswith("_gradient"):
            with torch.no_grad():
                return [value(**inputs)]
        leaves = {n: inputs[n].detach().requires_grad_() for n in by}
        made = loss(**{**inputs, **leaves})
        return [made.detach(), *torch.autograd.grad(made, list(leaves.values()))]
    return run


def case(kind, name):
    row, variant = name.split(".")
    if kind == "onednn":
        return onednn if row == "gemm" and not SHORT else None
    if row == "gemm":
        if kind != "torch":
            return None
        if SHORT:
            return lambda A, B: [torch.mm(A, B)]
        out = {}
        return lambda A, B: [torch.mm(A, B, out=out.setdefault(0, torch.empty(A.shape[0], B.shape[1])))]
    if row == "linalg":
        return linalg(variant) if kind == "torch" else None
    if row == "hvp":
        return hvp if kind == "torch" else None
    wrap = (lambda f: torch.compile(f)) if kind == "torch.compile" else (lambda f: f)
    if row == "contract":
        f = wrap(batched if variant.startswith("batched") else contract)
        return lambda **inputs: [f(**inputs)]
    if row not in LOSS:
        return None
    if kind == "torch.compile" and row in ("heat", "dp", "lstm"):
        return None  # unrolls its loops, or calls what eager calls
    if variant == "forward":
        f = wrap(globals()[row])

        def forward(**inputs):
            with torch.no_grad():
                values = f(**inputs)
            return list(values) if isinstance(values, tuple) else [values]
        return forward
    loss = wrap(LOSS[row])
    if row == "mlp":
        return sgd_step(loss)
    if row == "block":
        return adam_step(loss)
    return gradients(row, loss)


def too_slow(name, quick):
    return False
