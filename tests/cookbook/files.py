"""docs/cookbook/files.md in NumPy."""

import numpy as np

TASKS = {
    "Read a CSV file": lambda: [np.mean([0, 7.5, 1.5, 2]), [1, 0, 1, 0], [np.mean([4, 6]), 18.5]],
    "Write a table with headings": lambda: [[[s, s * s / 2] for s in (0, 1, 2)]],
    "Save weights by name, and read them back": lambda: [2 * (np.array([[1, 2], [3, 4]]).sum(1) + [0.5, -0.5])],
    "Draw a curve and an image": lambda: [[41, 41], 1],
}
