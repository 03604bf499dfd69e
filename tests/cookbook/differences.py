"""Derivatives by central differences in f64, which share nothing with the compiler."""

import numpy as np


def derivative(f, x, step=1e-5):
    """The derivative of `f`, a function of an array, by each cell of `x`: the shape of f(x), then that of x."""
    x = np.asarray(x, float)
    columns = []
    for at in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[at] = step
        # Five points: the error is of fourth order.
        columns.append((8 * (np.asarray(f(x + moved)) - f(x - moved)) - (np.asarray(f(x + 2 * moved)) - f(x - 2 * moved))) / (12 * step))
    stacked = np.stack(columns, axis=-1) if columns else np.zeros(0)
    return stacked.reshape(np.shape(columns[0]) + x.shape)
