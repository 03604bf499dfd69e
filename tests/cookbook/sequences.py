"""docs/cookbook/sequences.md in NumPy."""

import itertools

import numpy as np
from differences import derivative


def newton():
    x, steps = 2.0, 0
    while True:
        after, steps = x - (np.cos(x) - x) / (-np.sin(x) - 1), steps + 1
        if abs(after - x) < 1e-12:
            return [after, steps]
        x = after


def oscillator():
    def end(k, y):
        # The exact solution of y'' = -y - k y' at time 5; the method's error is smaller than the digits shown.
        a = np.array([[0.0, 1], [-1, -k]])
        values, vectors = np.linalg.eig(a)
        return ((vectors * np.exp(5 * values)) @ np.linalg.inv(vectors) @ y).real[0]

    def by_steps(k, y):
        f = lambda y: np.array([y[1], -y[0] - k * y[1]])
        for _ in range(50):
            a = f(y)
            b = f(y + 0.05 * a)
            c = f(y + 0.05 * b)
            y = y + 0.1 / 6 * (a + 2 * b + 2 * c + f(y + 0.1 * c))
        return y[0]

    first = np.array([1.0, 0.0])
    assert abs(by_steps(0.7, first) - end(0.7, first)) < 1e-5
    return [[51, 2], by_steps(0.7, first), derivative(lambda k: by_steps(k, first), 0.7), derivative(lambda y: by_steps(0.7, y), first)]


def diffusion():
    step = 0.5 * np.eye(7) + 0.25 * (np.eye(7, k=1) + np.eye(7, k=-1))
    step[0, 0] = step[6, 6] = 0.75
    ten = np.linalg.matrix_power(step, 10)
    return [ten[:, 3], 1, ten[0]]


def kalman():
    seen = np.array([1.2, 1.9, 3.2, 3.8, 5.1])
    drift = 0.1

    def run(noise):
        m, v, total = [seen[0]], [noise], 0.0
        for y in seen[1:]:
            s = v[-1] + drift + noise
            total += 0.5 * ((y - m[-1] - 1) ** 2 / s + np.log(2 * np.pi * s))
            # The product of two Gaussians, by precisions.
            wide = v[-1] + drift
            after = 1 / (1 / wide + 1 / noise)
            m.append(after * ((m[-1] + 1) / wide + y / noise))
            v.append(after)
        return m, v, total

    m, v, total = run(0.5)
    return [m, v, total, derivative(lambda n: run(n)[2], 0.5)]


def markov():
    start, move, emit = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    seen, total, times = [0, 1, 2, 2], 0.0, np.zeros((2, 2))
    for path in itertools.product(range(2), repeat=4):  # every path, instead of the recurrence
        p = start[path[0]] * emit[path[0], seen[0]]
        for t in range(1, 4):
            p *= move[path[t - 1], path[t]] * emit[path[t], seen[t]]
        total += p
        for t in range(1, 4):
            times[path[t - 1], path[t]] += p
    return [np.log(total), times / total]


SCORE, TRANS = np.array([[1.0, 0], [0.2, 0.5], [0, 1.5]]), np.array([[0.5, -0.5], [0, 0.3]])


def path_scores():
    return {path: sum(SCORE[t, path[t]] for t in range(3)) + sum(TRANS[path[t - 1], path[t]] for t in (1, 2))
            for path in itertools.product(range(2), repeat=3)}


def field():
    weights = {path: np.exp(score) for path, score in path_scores().items()}
    total, marginal = sum(weights.values()), np.zeros((3, 2))
    for path, weight in weights.items():
        marginal[range(3), path] += weight / total
    return [np.log(total) - np.log(weights[0, 1, 1]), marginal]


def viterbi():
    path, score = max(path_scores().items(), key=lambda item: item[1])
    return [score, path]


def edit_distance():
    def distance(a, b):
        if not a or not b:
            return len(a) + len(b)
        return min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))

    return [distance("sitting", "kitten")]


def fourier():
    t = np.arange(8)
    z = np.fft.rfft(3 + np.cos(2 * np.pi * t / 8) + 0.5 * np.cos(6 * np.pi * t / 8))
    return [np.abs(z) ** 2, np.fft.irfft(np.where(np.arange(5) <= 2, z, 0), 8)]


TASKS = {
    "Newton's method until it has converged": newton,
    "A differential equation by Runge and Kutta's method, and its sensitivity": oscillator,
    "Diffusion on a grid": diffusion,
    "Kalman filter": kalman,
    "Forward algorithm of a hidden Markov model": markov,
    "Forward algorithm of a conditional random field": field,
    "The best path: Viterbi": viterbi,
    "Edit distance": edit_distance,
    "Smooth a signal with a Fourier transform": fourier,
}
