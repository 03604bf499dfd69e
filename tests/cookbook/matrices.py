"""docs/cookbook/matrices.md in NumPy."""

import numpy as np
from differences import derivative


def many_arrays():
    core = np.arange(1.0, 9).reshape(2, 2, 2)
    f = lambda w: np.einsum("abc,ia,jb,c->ij", core, [[1.0, 0], [1, 1]], [[0.5, 0.5]], w)
    return [f([1.0, -1.0]), derivative(lambda w: f(w)[1, 0], [1.0, -1.0])]


def batch():
    A, b = np.array([[[2.0, 1], [1, 3]], [[4, 0], [0, 5]]]), np.array([[3.0, 5], [8, 10]])
    f = lambda b: np.linalg.solve(A, b[..., None])[..., 0]
    return [f(b), derivative(lambda b: f(b).sum(), b)]


def ridge():
    X, y = np.array([[1.0, 0], [1, 1], [1, 2], [1, 3]]), np.array([1.0, 3, 5, 8])
    fit = lambda p: np.linalg.solve(X.T @ X + p * np.eye(2), X.T @ y)
    error = lambda p: ((X @ fit(p) - y) ** 2).mean()
    return [fit(0.1), error(0.1), derivative(error, 0.1)]


def density():
    cov, x = np.array([[2.0, 0.6], [0.6, 1]]), np.array([[0.0, 0], [1, -1], [2, 1]])

    def log_density(m):
        d = x - m
        quadratic = np.einsum("ni,ij,nj->n", d, np.linalg.inv(cov), d)
        return -0.5 * (quadratic + np.log(np.linalg.det(cov)) + 2 * np.log(2 * np.pi))

    m = np.array([1.0, -1.0])
    return [log_density(m), derivative(lambda m: log_density(m).sum(), m)]


def components():
    x = np.array([[2.0, 0], [0, 1], [4, 2], [6, 5]])
    centred = x - x.mean(0)
    _, s, vt = np.linalg.svd(centred, full_matrices=False)
    first = vt[0] * np.sign(vt[0][np.abs(vt[0]).argmax()])
    spread = s[::-1] ** 2 / 3
    return [spread, spread[1] / spread.sum(), centred @ first]


def low_rank():
    A = np.array([[3.0, 1, 1], [1, 3, 1], [1, 1, 3], [0, 2, 0]])
    u, s, vt = np.linalg.svd(A, full_matrices=False)
    lost = np.linalg.norm(A - s[0] * np.outer(u[:, 0], vt[0]))
    return [s, lost, np.hypot(s[1], s[2])]


def conjugate():
    A = 2.5 * np.eye(20) - np.eye(20, k=1) - np.eye(20, k=-1)
    x = np.linalg.solve(A, np.ones(20))
    return [x[0], x[9], 1]


TASKS = {
    "A product of many arrays": many_arrays,
    "Solve a batch of linear systems": batch,
    "Ridge regression": ridge,
    "Log density of a multivariate normal": density,
    "Principal components": components,
    "Approximation of low rank": low_rank,
    "Conjugate gradients for a matrix that is never built": conjugate,
}
