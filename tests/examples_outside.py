"""Figures of examples/ worked out without Einlang: closed forms, other methods that end in the same place, or derivatives
by hand or by differences, in NumPy. tests/examples.py asserts these where there are any."""

import math

import numpy as np

WORD = (1 << 64) - 1


def philox(key, address):
    """Philox 2×64 with ten rounds, for arrays of unsigned 64-bit words."""
    left, key = np.broadcast_arrays(address.astype(np.uint64), key.astype(np.uint64))
    left, key = left.copy(), key.copy()
    right = np.zeros_like(left)
    low32, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    m0, m1 = np.uint64(0xB1CE6E93), np.uint64(0xD2B74407)
    with np.errstate(over="ignore"):
        for _ in range(10):
            a0, a1 = left & low32, left >> shift
            p00, p01, p10, p11 = m0 * a0, m1 * a0, m0 * a1, m1 * a1
            middle = (p00 >> shift) + (p01 & low32) + (p10 & low32)
            high = p11 + (p01 >> shift) + (p10 >> shift) + (middle >> shift)
            left, right = high ^ key ^ right, (middle << shift) | (p00 & low32)
            key = key + np.uint64(0x9E3779B97F4A7C15)
    return left


def bits(seed, shape):
    out = np.array(seed & WORD, np.uint64)
    for axis, n in enumerate(shape):
        at = np.arange(n, dtype=np.uint64).reshape([n if k == axis else 1 for k in range(axis + 1)])
        out = philox(out[..., None] if axis else out, at)
    return out


def uniform(seed, *shape):
    return (bits(seed, shape) >> np.uint64(40)).astype("f8") / 2**24


def normal(seed, *shape):
    """As a function of the addresses below `shape`; rounded to f32, as the language has it."""
    b = bits(seed, shape)
    unit = lambda w: ((w >> np.uint64(11)).astype("f8") + 0.5) / 2**53
    x = np.sqrt(-2 * np.log(unit(b))) * np.cos(2 * np.pi * unit(philox(b, np.array(1, np.uint64))))
    return x.astype("f4").astype("f8")


def linear_regression():
    """The descent has arrived: least squares."""
    x = np.concatenate([normal(1, 64, 3), np.ones((64, 1))], 1)
    y = x @ [2.0, -1.0, 0.5, 4.0] + 0.1 * normal(2, 64)
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    return np.mean((x @ w - y) ** 2)


def logistic_regression():
    """The same descent with the derivative by hand."""
    n = np.arange(90)
    x = np.array([[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])[n % 3] + 0.8 * normal(7, 90, 2)
    right = np.eye(3)[n % 3]
    w, b = np.zeros((3, 2)), np.zeros(3)
    for _ in range(149):
        z = x @ w.T + b
        p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        loss = -np.mean(np.log((p * right).sum(1)))
        w, b = w - 0.5 * (p - right).T @ x / 90, b - 0.5 * (p - right).mean(0)
    return loss


def gaussian_mixture():
    """Expectation and maximisation, which the program does without, ends at the same likelihood."""
    n = np.arange(300)
    x = np.array([-3.0, 0.0, 4.0])[n % 3] + np.array([0.5, 1.0, 0.8])[n % 3] * normal(5, 300)
    mu, sigma, mix = np.array([-1.0, 0.0, 1.0]), np.ones(3), np.ones(3) / 3
    for _ in range(3000):
        p = mix * np.exp(-0.5 * ((x[:, None] - mu) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
        share = p / p.sum(1, keepdims=True)
        total = share.sum(0)
        mu = (share * x[:, None]).sum(0) / total
        sigma = np.sqrt((share * (x[:, None] - mu) ** 2).sum(0) / total)
        mix = total / 300
    return -np.mean(np.log(p.sum(1)))


def newton():
    """Newton's steps with the derivatives of Rosenbrock's valley by hand."""
    a, b = -1.2, 1.0
    for _ in range(6):
        g = (-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a))
        h = (2 - 400 * (b - 3 * a * a), -400 * a, 200.0)
        det = h[0] * h[2] - h[1] * h[1]
        a, b = a - (h[2] * g[0] - h[1] * g[1]) / det, b - (h[0] * g[1] - h[1] * g[0]) / det
    return (1 - a) ** 2 + 100 * (b - a * a) ** 2


def newton_cg():
    """The same steps with gradient and Hessian by hand."""
    unknowns, samples = 1000, 300
    scale = np.float32(100.0) ** (-(np.arange(unknowns, dtype="f4")) / np.float32(1000.0))
    x = (normal(1, samples, unknowns).astype("f4") * scale).astype("f8")
    side = np.where(x @ normal(2, unknowns) + normal(3, samples) > 0, 1.0, -1.0)
    w = np.zeros(unknowns)
    for _ in range(9):
        p = 1 / (1 + np.exp(side * (x @ w)))
        g = -(x.T @ (side * p)) / samples + 0.001 * w
        curved = p * (1 - p) / samples
        d, r, v = np.zeros(unknowns), g.copy(), g.copy()
        for _ in range(59):
            hv = x.T @ (curved * (x @ v)) + 0.001 * v
            old = r @ r
            rate = old / (v @ hv)
            d, r = d + rate * v, r - rate * hv
            v = r + (r @ r) / old * v
        w, norm = w - d, math.sqrt(g @ g)
    return norm


def kalman():
    """The same descent on the filter's surprise, with slopes by differences."""
    length = 120
    kicks, noise = normal(1, length), normal(2, length)
    velocity, position = np.zeros(length), np.zeros(length)
    for t in range(1, length):
        velocity[t] = velocity[t - 1] + 0.1 * kicks[t]
        position[t] = position[t - 1] + velocity[t - 1]
    seen = position + 2 * noise

    def surprise(log_q, log_r):
        q, r = math.exp(log_q), math.exp(log_r)
        x0 = x1 = 0.0
        a, b, c = 1.0, 0.0, 1.0  # the covariance
        total = 0.0
        for t in range(length):
            e, s = seen[t] - x0, a + r
            total += 0.5 * math.log(s) + 0.5 * e * e / s
            x0, x1 = x0 + a / s * e, x1 + b / s * e
            a, b, c = a - a * a / s, b - a * b / s, c - b * b / s
            x0 += x1
            a, b, c = a + 2 * b + c, b + c, c + q
        return total / length

    q = r = 0.0
    h = 1e-5
    for _ in range(149):
        loss = surprise(q, r)
        dq = (surprise(q + h, r) - surprise(q - h, r)) / (2 * h)
        dr = (surprise(q, r + h) - surprise(q, r - h)) / (2 * h)
        q, r = q - dq, r - dr
    return loss


def value_iteration():
    n = 5
    reward = np.zeros((n, n))
    reward[4, 4] = 1.0
    reward[2, :4] = -1.0
    value = np.zeros((n, n))
    for _ in range(1000):
        padded = np.pad(value, 1, mode="edge")
        moved = [padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
        value = reward + 0.9 * np.max([0.8 * m + 0.2 * value for m in moved], 0)
    return value[0, 0]


def conjugate_gradients():
    return 0.5 * 101 * 100  # the differences of a parabola are exact


def power_iteration():
    return 0.25 / math.sin(math.pi / (4 * 40 + 2)) ** 2


def layer():
    x, kernel = uniform(1, 4, 2, 12, 12), 0.2 * normal(2, 3, 2, 5, 5)
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (2, 3))
    return np.mean(np.einsum("bcrspq,ocpq->bors", windows, kernel) ** 2)


def checkpoint():
    x, w = normal(1, 256, 64), 0.25 * normal(2, 64, 64)
    for _ in range(2000):
        x = x + np.tanh(x @ w.T) / 2000
    return np.mean(x**2)


def lorenz():
    return 0.9056  # Sprott, Chaos and Time-Series Analysis; a hundred units of time are not for ever


FIGURES = {
    "checkpoint.ein": checkpoint,
    "conjugate_gradients.ein": conjugate_gradients,
    "digits/layer.ein": layer,
    "gaussian_mixture.ein": gaussian_mixture,
    "kalman.ein": kalman,
    "linear_regression.ein": linear_regression,
    "logistic_regression.ein": logistic_regression,
    "lorenz.ein": lorenz,
    "newton.ein": newton,
    "newton_cg.ein": newton_cg,
    "power_iteration.ein": power_iteration,
    "value_iteration.ein": value_iteration,
}

if __name__ == "__main__":
    for name, figure in FIGURES.items():
        print(name, figure())
