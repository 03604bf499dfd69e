"""Recurrences in Numba: the loops that its users write, compiled. Forward only."""

import numpy as np
from numba import njit

KINDS = ["numba"]


def prepare(threads):
    pass  # the loops below are not parallel


def load(array):
    return array


@njit
def colscan(x, w, decay):
    y = x.copy()
    for i in range(x.shape[0]):
        for t in range(1, x.shape[1]):
            y[i, t] += decay * y[i, t - 1]
    return y


@njit
def slope(x, y, z, sigma, rho, beta):
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


@njit
def lorenz(x, y, z, sigma, rho, beta, dt, steps):
    for _ in range(steps):
        a, b, c = slope(x, y, z, sigma, rho, beta)
        d, e, f = slope(x + 0.5 * dt * a, y + 0.5 * dt * b, z + 0.5 * dt * c, sigma, rho, beta)
        g, h, i = slope(x + 0.5 * dt * d, y + 0.5 * dt * e, z + 0.5 * dt * f, sigma, rho, beta)
        j, k, l = slope(x + dt * g, y + dt * h, z + dt * i, sigma, rho, beta)
        x += dt / 6 * (a + 2 * d + 2 * g + j)
        y += dt / 6 * (b + 2 * e + 2 * h + k)
        z += dt / 6 * (c + 2 * f + 2 * i + l)
    return x, y, z


@njit
def ode(first, sigma, rho, beta, dt, steps):
    return np.array(lorenz(first[0], first[1], first[2], sigma, rho, beta, dt, steps))


@njit
def ensemble(first, dt, steps):
    out = np.empty_like(first)
    for m in range(len(first)):
        out[m, 0], out[m, 1], out[m, 2] = lorenz(first[m, 0], first[m, 1], first[m, 2], 10.0, 28.0, 8.0 / 3.0, dt, steps)
    return out


@njit
def newton(first, force, dt):
    x = first
    for t in range(1, len(force)):
        z = x
        for _ in range(5):
            z = z - (z + dt * z**3 - x - dt * force[t]) / (1.0 + 3.0 * dt * z**2)
        x = z
    return x


def case(kind, name):
    row, variant = name.split(".")
    f = globals().get(row) if variant == "forward" and row in ("colscan", "ode", "ensemble", "newton") else None
    return (lambda **inputs: [f(**{n: a if a.ndim else a.item() for n, a in inputs.items()})]) if f else None


def too_slow(name, quick):
    return False
