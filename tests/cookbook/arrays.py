"""docs/cookbook/arrays.md in NumPy."""

import numpy as np
from differences import derivative


def groups():
    value, group = np.array([4.0, 8, 1, 3, 6]), np.array([0, 1, 0, 0, 1])
    average = [value[group == g].mean() for g in (0, 1)]
    # The centred values are f32 differences, so their last digits are those of f32.
    f32 = np.float32
    return [average, [value[group == g].var() for g in (0, 1)], [f32(v) - f32(average[g]) for v, g in zip(value, group)]]


def groups_printed():
    counts = np.bincount([0, 1, 0, 0, 1])
    return [counts, *groups()]


def standardise():
    x = np.array([[1.0, 10], [2, 30], [3, 20]])
    return [x.mean(0), x.std(0), (x - x.mean(0)) / x.std(0)]


def windows():
    x = np.array([1.0, 3, 2, 6, 4, 5])
    view = np.lib.stride_tricks.sliding_window_view(x, 3)
    return [view[1], view.mean(1), view[::2].max(1)]


def fill():
    x = [2.0, np.nan, np.nan, 5.0, np.nan, 7.0]
    last = np.maximum.accumulate(np.where(np.isnan(x), 0, np.arange(6)))
    return [np.array(x)[last], np.isnan(x).sum()]


def moving(weight):
    average = [10.0]
    for price in [12.0, 11, 15, 14]:
        average.append(weight * price + (1 - weight) * average[-1])
    return np.array(average)


def top():
    score = np.array([[0.1, 0.9, 0.4, 0.8], [0.7, 0.2, 0.6, 0.3]])
    at = np.argsort(-score, axis=1)[:, :3]
    return [np.take_along_axis(score, at, 1), at]


def join():
    table = dict(zip([40, 10, 30], [4.0, 1.0, 3.0]))
    order = [10, 30, 99, 10]
    paid = [table.get(k, 0.0) for k in order]
    return [[k in table for k in order], paid, sum(paid)]


def nearest():
    point = np.array([[0.0, 0], [3, 4], [6, 8], [1, 1]])
    distance = np.linalg.norm(point[:, None] - point[None], axis=2)
    return [distance, np.argmin(distance + np.diag([np.inf] * 4), axis=1)]


def interpolate():
    at = [0.5, 1.0, 3.0, 3.5]
    return [np.searchsorted([0.0, 1, 2, 4], at, side="right") - 1, np.interp(at, [0, 1, 2, 4], [0, 10, 15, 35])]


def crosstab():
    table = np.zeros((2, 3))
    np.add.at(table, ([0, 1, 1, 0, 1], [2, 0, 2, 2, 1]), 1)
    return [table, table / table.sum(1, keepdims=True)]


def ranks():
    ra, rb = (np.argsort(np.argsort(v)) for v in ([3.0, 1, 4, 1.5, 9], [2.0, 0.5, 8, 1, 7]))
    return [ra, rb, np.corrcoef(ra, rb)[0, 1]]


TASKS = {
    "Mean and variance by group": groups_printed,
    "Standardise every column": standardise,
    "Sliding windows": windows,
    "Fill gaps with the last known value": fill,
    "Exponential moving average": lambda: [moving(0.5), derivative(lambda w: moving(w)[-1], 0.5)],
    "The three largest of each row": top,
    "Look up by key": join,
    "Nearest neighbours": nearest,
    "Interpolate in a table": interpolate,
    "Cross-tabulate two labels": crosstab,
    "Ranks and a rank correlation": ranks,
}
