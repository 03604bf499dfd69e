"""Stencils and ensembles in Warp: a kernel for a step, launched once a step. Gradients by its tape, which keeps every step."""

import numpy as np
import warp as wp

KINDS = ["warp"]


def prepare(threads):
    wp.config.quiet = True
    wp.init()  # a processor runs its kernels in one thread


def load(array):
    return array


@wp.kernel
def warm(u: wp.array2d[wp.float32], after: wp.array2d[wp.float32]):
    i, j = wp.tid()
    here = u[i, j]
    if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1:
        after[i, j] = here + 0.2 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * here)
    else:
        after[i, j] = here


@wp.func
def slope(p: wp.vec3d):
    return wp.vec3d(wp.float64(10.0) * (p[1] - p[0]), p[0] * (wp.float64(28.0) - p[2]) - p[1],
                    p[0] * p[1] - wp.float64(8.0) / wp.float64(3.0) * p[2])


@wp.func
def runge_kutta(p: wp.vec3d, dt: wp.float64):
    half = wp.float64(0.5) * dt
    a = slope(p)
    b = slope(p + half * a)
    c = slope(p + half * b)
    d = slope(p + dt * c)
    return p + dt / wp.float64(6.0) * (a + wp.float64(2.0) * b + wp.float64(2.0) * c + d)


@wp.kernel
def lorenz(first: wp.array[wp.vec3d], dt: wp.float64, steps: int, last: wp.array[wp.vec3d]):
    m = wp.tid()
    p = first[m]
    for _ in range(steps):
        p = runge_kutta(p, dt)
    last[m] = p


@wp.kernel
def lorenz_step(p: wp.array[wp.vec3d], dt: wp.float64, after: wp.array[wp.vec3d]):
    m = wp.tid()
    after[m] = runge_kutta(p[m], dt)


@wp.kernel
def laplace(u: wp.array3d[wp.float32], lap: wp.array3d[wp.float32]):
    k, j, i = wp.tid()
    lap[k, j, i] = 4.0 * u[k, j + 1, i + 1] - (u[k, j + 1, i + 2] + u[k, j + 1, i] + u[k, j + 2, i + 1] + u[k, j, i + 1])


@wp.func
def limited(d: wp.float32, rise: wp.float32):
    return wp.where(d * rise > 0.0, 0.0, d)


@wp.kernel
def diffuse(u: wp.array3d[wp.float32], lap: wp.array3d[wp.float32], c: wp.float32, y: wp.array3d[wp.float32]):
    k, j, i = wp.tid()
    here, middle = u[k, j + 2, i + 2], lap[k, j + 1, i + 1]
    right = limited(lap[k, j + 1, i + 2] - middle, u[k, j + 2, i + 3] - here)
    left = limited(middle - lap[k, j + 1, i], here - u[k, j + 2, i + 1])
    below = limited(lap[k, j + 2, i + 1] - middle, u[k, j + 3, i + 2] - here)
    above = limited(middle - lap[k, j, i + 1], here - u[k, j + 1, i + 2])
    y[k, j, i] = here - c * (right - left + below - above)


def launched(kernel, values, arguments, steps):
    """`values[t + 1]` from `values[t]`; two arrays are used in turn when no more are given."""
    for t in range(steps):
        wp.launch(kernel, dim=values[0].shape, inputs=[values[t % len(values)], *arguments],
                  outputs=[values[(t + 1) % len(values)]], device="cpu")
    return values[steps % len(values)]


def heat(first, w, steps):
    u = wp.array(first, dtype=wp.float32, device="cpu")
    return [launched(warm, [u, wp.empty_like(u)], [], int(steps)).numpy()]


def by_first(kernel, first, seed, arguments, steps):
    """The last state, and the gradient by the first one of its sum weighted by `seed`."""
    values = [first, *(wp.empty_like(first, requires_grad=True) for _ in range(steps))]
    tape = wp.Tape()
    with tape:
        last = launched(kernel, values, arguments, steps)
    tape.backward(grads={last: seed})
    return last.numpy(), first.grad.numpy()


def heat_gradient(first, w, steps):
    u = wp.array(first, dtype=wp.float32, device="cpu", requires_grad=True)
    last, gradient = by_first(warm, u, wp.array(w, dtype=wp.float32, device="cpu"), [], int(steps))
    return [(w * last).sum(), gradient]


def ensemble(first, dt, steps):
    p = wp.array(first, dtype=wp.vec3d, device="cpu")
    last = wp.empty_like(p)
    wp.launch(lorenz, dim=p.shape, inputs=[p, float(dt), int(steps)], outputs=[last], device="cpu")
    return [last.numpy()]


def ensemble_gradient(first, dt, steps):
    p = wp.array(first, dtype=wp.vec3d, device="cpu", requires_grad=True)
    seed = wp.array(np.ones_like(first), dtype=wp.vec3d, device="cpu")
    last, gradient = by_first(lorenz_step, p, seed, [float(dt)], int(steps))
    return [last.sum(), gradient]


def hdiff(u, c):
    k, j, i = u.shape
    cells = wp.array(u, dtype=wp.float32, device="cpu")
    lap = wp.empty((k, j - 2, i - 2), dtype=wp.float32, device="cpu")
    y = wp.empty((k, j - 4, i - 4), dtype=wp.float32, device="cpu")
    wp.launch(laplace, dim=lap.shape, inputs=[cells], outputs=[lap], device="cpu")
    wp.launch(diffuse, dim=y.shape, inputs=[cells, lap, float(c)], outputs=[y], device="cpu")
    return [y.numpy()]


CALLS = {"heat.forward": heat, "heat.gradient": heat_gradient, "ensemble.forward": ensemble,
         "ensemble.gradient": ensemble_gradient, "hdiff.forward": hdiff}


def case(kind, name):
    return CALLS.get(name)


def too_slow(name, quick):
    return False
