"""docs/cookbook/learning.md in NumPy."""

import numpy as np
from differences import derivative


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def masked():
    score, keep = np.array([[1.0, 2, 3], [0, 5, 1]]), np.array([[1, 1, 0], [1, 0, 1]], bool)
    p = lambda s: softmax(np.where(keep, s, -np.inf))
    return [p(score), derivative(lambda s: np.log(p(s)[:, 0]).sum(), score)]


def padding():
    z, label = np.array([[2.0, 1, 0], [0, 0, 3], [1, 1, 1]]), [0, 2]
    each = lambda z: np.array([-np.log(softmax(z[n])[c]) for n, c in enumerate(label)] + [0.0])
    return [each(z), each(z).sum() / 2, derivative(lambda z: each(z).sum() / 2, z)]


def adam_step(w, g, m, v, step, rate):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return w - rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8), m, v


def adam():
    w, m, v = adam_step(np.array([1.0, -2]), np.array([0.5, -0.1]), 0.0, 0.0, 1, 0.01)
    return [m, v, w]


def classifier():
    x = np.array([[0.0, 0.2], [0.3, 0], [2, 2.2], [2.3, 1.9], [0.1, 2], [0, 2.4]])
    x, target = np.hstack([x, np.ones((6, 1))]), np.eye(3)[[0, 0, 1, 1, 2, 2]]
    w, m, v = np.zeros((3, 3)), 0.0, 0.0
    for step in range(1, 200):
        w, m, v = adam_step(w, (softmax(x @ w.T) - target).T @ x / 6, m, v, step, 0.1)
    p = softmax(x @ w.T)
    return [p.argmax(1), -(target * np.log(p)).sum(1).mean()]


def clip():
    g = np.array([3.0, 0, 0, 4, 12])
    return [np.linalg.norm(g), g / np.linalg.norm(g)]


def layer_norm():
    x = np.array([[1.0, 2, 4], [0, 0, 3]])
    near = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    gain = np.array([1.0, 1, 2])
    return [gain * near, 2 * gain * (near**2).sum(0)]


def attention():
    q, k, v = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([[1.0, 0], [1, 1], [0, 2]]), np.array([[1.0], [2], [4]])
    p = softmax(q @ k.T / np.sqrt(2) + np.triu(np.full((3, 3), -np.inf), 1))
    return [p, p @ v]


def embedding():
    table, text = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), [2, 0, 2, 2]
    gradient = np.zeros((3, 2))
    np.add.at(gradient, text, 2 * table[text])
    return [table[text], gradient]


def folds():
    x, y = np.arange(1.0, 7), np.array([2.1, 3.9, 6.2, 8.1, 9.7, 12.2])
    w, error = [], []
    for f in range(3):
        test = np.arange(6) % 3 == f
        w.append(np.linalg.lstsq(x[~test, None], y[~test], rcond=None)[0][0])
        error.append(((w[f] * x[test] - y[test]) ** 2).mean())
    return [w, error, np.mean(error)]


def k_means():
    x = np.array([[0.0, 0], [0, 1], [1, 0], [5, 5], [6, 5], [5, 7]])
    centre, steps = x[:2], 0
    while True:
        own = np.linalg.norm(x[:, None] - centre[None], axis=2).argmin(1)
        after = np.stack([x[own == c].mean(0) for c in range(2)])
        steps += 1
        if np.abs(after - centre).max() < 1e-6:
            return [after, steps]
        centre = after


TASKS = {
    "Masked softmax": masked,
    "Cross-entropy that ignores padding": padding,
    "A step of Adam, written out": adam,
    "Fit a classifier": classifier,
    "Clip a gradient by its norm": clip,
    "Layer norm, and its gradient": layer_norm,
    "Causal attention": attention,
    "Embeddings, and their gradient": embedding,
    "Weight decay for some weights only": lambda: [1 + 4 + 9, 5, [2, 4]],
    "Mini-batches without repetition": lambda: [np.full(2, np.arange(10, 16).sum())],
    "Cross-validation": folds,
    "k-means": k_means,
}
