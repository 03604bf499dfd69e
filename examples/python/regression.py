"""Logistic regression on NumPy data: gradients for a few steps of descent, then Newton's method with a Hessian.

    python examples/python/regression.py
"""

import numpy as np

import einlang

program = einlang.compile("""
let x: [f64; sample, feature];
let y: [f64; sample];
let w: [f64; feature];

let z[sample] = sum[feature](x[sample, feature] * w[feature]);
// -log of the probability that the model gives the right answer, without overflow
let wrong[sample] = max(z[sample], 0.0) - z[sample] * y[sample] + log(1.0 + exp(-abs(z[sample])));
let loss = mean[sample](wrong[sample]) + 0.005 * sum[feature](w[feature] ** 2.0);
""")


def data(samples=500, seed=0):
    """Points of three numbers and a constant; the answers are drawn from a model whose weights we know."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(samples, 3)), np.ones(samples)])
    true = np.array([1.5, -2.0, 0.5, 0.3])
    y = (rng.random(samples) < 1 / (1 + np.exp(-x @ true))).astype(np.float64)
    return x, y, true


def descend(x, y, steps=20, rate=1.0):
    """Gradient descent. `gradient` gives the loss and its gradient in one call."""
    gradient = program.grad("loss", wrt="w")
    w, losses = np.zeros(x.shape[1]), []
    for _ in range(steps):
        r = gradient(x=x, y=y, w=w)
        losses.append(float(r.loss))
        w = w - rate * np.asarray(r.grads.w)
    return w, losses


def newton(x, y, w, steps=6):
    """Newton's method: the Hessian is an array with the coordinates of `w` twice."""
    gradient, hessian = program.grad("loss", wrt="w"), program.hessian("loss", wrt="w")
    for _ in range(steps):
        g = gradient(x=x, y=y, w=w)
        h = hessian(x=x, y=y, w=w).hessian.w.w
        w = w - np.linalg.solve(h, g.grads.w)
    return w, float(np.abs(np.asarray(gradient(x=x, y=y, w=w).grads.w)).max())


def main():
    x, y, true = data()
    w, losses = descend(x, y)
    print(f"descent: loss {losses[0]:.4f} → {losses[-1]:.4f}")
    w, steepness = newton(x, y, w)
    print(f"Newton:  loss {float(program(x=x, y=y, w=w).loss):.4f}, largest part of the gradient {steepness:.0e}")
    print("weights ", np.round(w, 2), "made with", true)
    right = np.mean((x @ w > 0) == (y > 0.5))
    print(f"right    {right:.1%}")


if __name__ == "__main__":
    main()
