"""Training from a Python data loader: the batches come from Python, the step is an Einlang program, and its state (weights and
Adam's moments) stays in the program between steps.

    python examples/python/loader.py

When all data fit into memory, the loop belongs into the program, as in examples/mlp.ein: it is compiled as a whole then.
"""

import tempfile
from pathlib import Path

import numpy as np

import einlang

MODEL = """
use std::loss::bce_with_logits;
use std::nn::{linear, linear_init};

type Net = { hidden: { w: [f32; h, i], b: [f32; h] }, last: { w: [f32; o, h], b: [f32; o] } };

fn logits(net: Net, x: [f32; n, i]) -> [f32; n] {
    linear(net.last, tanh(linear(net.hidden, x)))[n, 0]
}
"""

START = einlang.compile(MODEL + """
use std::optim::adam_start;
let start = adam_start({ hidden: linear_init(1, 2, 16), last: linear_init(2, 16, 1) });
""")

STEP = einlang.compile(MODEL + """
use std::optim::adam;
let x: [f32; n, i];
let y: [f32; n];
let state: { p: Net, m: Net, v: Net, step: i32 };

let p = state.p;
let z = logits(p, x);
let loss = mean[n](bce_with_logits(z[n], y[n]));
let right = mean[n](if (z[n] > 0.0) == (y[n] > 0.5) { 1.0 } else { 0.0 });
let next = adam(state, @loss / @p, rate = 0.02);
""", outputs=["loss", "right", "next"])


class Moons:
    """Two half moons, in random order, with fresh noise in every epoch: what a loader does and a file does not."""

    def __init__(self, samples=2048, size=64, seed=0):
        self.samples, self.size, self.seed = samples, size, seed

    def epoch(self, number):
        rng = np.random.default_rng((self.seed, number))
        angle = rng.uniform(0, np.pi, self.samples)
        y = rng.integers(0, 2, self.samples)
        upper, lower = (np.cos(angle), np.sin(angle)), (1 - np.cos(angle), 0.5 - np.sin(angle))
        x = np.where(y == 0, upper, lower).T
        x += rng.normal(scale=0.15, size=x.shape)
        for k in range(0, self.samples, self.size):
            yield x[k:k + self.size].astype(np.float32), y[k:k + self.size].astype(np.float32)


def train(loop, loader, epochs):
    for number in epochs:
        seen = [loop(x=x, y=y) for x, y in loader.epoch(number)]
        yield number, np.mean([float(out.loss) for out in seen]), np.mean([float(out.right) for out in seen])


def start():
    """A loop before its first step. The number of steps is a literal in `adam_start`, and results have no literals."""
    loop = STEP.loop(state={"state": "next"})
    loop.state(state={**START().start, "step": 0})
    return loop


def main():
    loader, loop = Moons(), start()
    for number, loss, right in train(loop, loader, range(10)):
        print(f"epoch {number}: loss {loss:.3f}, right {right:.1%}")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "state.npz"
        loop.save(kept)
        other = STEP.loop(state={"state": "next"})
        other.load(kept)
    here, there = (list(train(each, loader, range(10, 12))) for each in (loop, other))
    print("goes on from a file to the same bits:", here == there)


if __name__ == "__main__":
    main()
