"""docs/cookbook/derivatives.md in NumPy: derivatives are differences, or formulas worked out by hand."""

import numpy as np
from differences import derivative


def gradient():
    x, w = np.array([1.0, 2, 3]), np.array([0.5, -0.5, 1])
    y = lambda w: 1 / (1 + np.exp(-w @ x))
    loss = lambda w: -np.log(y(w))
    return [loss(w), derivative(loss, w), -1 / y(w)]


def jacobian():
    x = np.array([1.0, 2.0])
    f = lambda x: np.array([x[0] * x[1], np.sin(x[0]), x[1] ** 3])
    e = np.e
    return [derivative(f, x), [[4 * e, 4 * e], [4 * e, 2 * e]]]


def products():
    x, v, u = np.array([1.0, 2, 3]), np.array([1.0, -1, 0.5]), np.array([2.0, 1])
    J = np.array([[2 * x[i] * (i + k) for i in range(3)] for k in range(2)])
    a, b, c = x
    H = np.diag(12 * x**2) + np.array([[0, c, b], [c, 0, a], [b, a, 0]])
    return [J @ v, u @ J, H @ v]


def samples():
    w, x, y = np.array([0.5, -1.0]), np.array([[1.0, 2], [3, 0.5], [-1, 1]]), np.array([1.0, 0, -1])
    g = 2 * (x @ w - y)[:, None] * x
    size = np.linalg.norm(g, axis=1)
    return [g, size, (g * np.minimum(1, 2 / size)[:, None]).mean(0)]


def rounded():
    w, x = np.array([0.30, -0.70, 1.10]), np.array([1.0, 2, -1])
    y = np.round(4 * w) / 4 @ x
    return [y**2, 2 * y * x]


def solution():
    a = np.array([2.0, 5, 10])
    root = np.array([next(r.real for r in np.roots([1, 0, 1, -v]) if abs(r.imag) < 1e-9) for v in a])
    return [root, 1 / (3 * root**2 + 1), 1 / (3 * root**2 + 1)]


def checkpoint():
    def loss(w):
        h = 0.1
        for _ in range(199):
            h = np.sin(w * h) + 0.01
        return h**2

    return [loss(1.02), derivative(loss, 1.02)]


def equation():
    t, c = np.array([0.0, 0.5, 1.0]), np.array([1.0, -1, 0.4])
    slope = lambda c: c[1] + 2 * c[2] * t
    loss = lambda c: ((slope(c) + c[0] + c[1] * t + c[2] * t**2) ** 2).mean()
    return [slope(c), loss(c), derivative(loss, c)]


def rate():
    x, y = np.array([1.0, 2, 3]), np.array([2.1, 3.9, 6.2])

    def train(rate):
        w = 0.0
        for _ in range(10):
            w -= rate * (2 * (w * x - y) * x).mean()
        return np.array([w, ((w * x - y) ** 2).mean()])

    return [train(0.02), derivative(train, 0.02)[1]]


def delta():
    t, p = np.array([0.0, 1, 2, 3]), np.array([2.0, 0.5])
    J = np.stack([np.exp(-p[1] * t), -p[0] * t * np.exp(-p[1] * t)], axis=1)
    g = np.array([0, -np.log(2) / p[1] ** 2])
    return [np.log(2) / p[1], np.sqrt(g @ np.linalg.inv(J.T @ J / 0.01) @ g)]


TASKS = {
    "A value and its gradient": gradient,
    "Jacobian and Hessian": jacobian,
    "Products with a Jacobian and a Hessian": products,
    "The gradient of each sample": samples,
    "A derivative rule of your own": lambda: [1 / (1 + np.exp(-np.array([-2.0, 0, 3])))],
    "Round in the forward pass, ignore it in the backward pass": rounded,
    "The derivative of a solution": solution,
    "Save memory: gradient checkpointing": checkpoint,
    "A differential equation as a loss": equation,
    "How a learning rate changes the result of training": rate,
    "Error bars by the delta method": delta,
}
