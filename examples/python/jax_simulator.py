"""A simulator written in Einlang inside jax.jit and jax.grad: hares and lynxes by Runge and Kutta's method. JAX fits the
rates and the first counts to noisy data, from many starts at once."""

import einlang
import jax
import jax.numpy as jnp

SIMULATOR = """
use std::ode::rk4;

let rate: [f32; r];
let first: [f32; species];
let steps: i64;

let counts = rk4(
    |t, y| {
        let slope[species in 0..2] = if species == 0 {
            y[0] * (rate[0] - rate[1] * y[1])
        } else {
            y[1] * (rate[2] * y[0] - rate[3])
        };
        slope
    },
    first,
    0.0,
    0.1,
    steps
);
"""
simulate = einlang.jax.function(einlang.compile(SIMULATOR, outputs=["counts"], name="hares"))
STEPS = 80

truth = {"rate": jnp.array([1.1, 0.8, 0.6, 0.9]), "first": jnp.array([1.0, 0.5])}
exact = simulate(**truth, steps=STEPS)
seen = exact * (1 + 0.02 * jax.random.normal(jax.random.PRNGKey(0), exact.shape))


def loss(parameters):
    """Parameters are logarithms, so that rates stay positive."""
    counts = simulate(rate=jnp.exp(parameters["rate"]), first=jnp.exp(parameters["first"]), steps=STEPS)
    return jnp.mean((jnp.log(counts) - jnp.log(seen)) ** 2)


def fit(start, steps=400):
    """Gradient descent with momentum, as one lax.scan."""
    def step(state, _):
        parameters, speed = state
        value, slope = jax.value_and_grad(loss)(parameters)
        speed = jax.tree.map(lambda v, g: 0.9 * v - 0.005 * jnp.clip(g, -5, 5), speed, slope)
        return (jax.tree.map(jnp.add, parameters, speed), speed), value

    (parameters, _), values = jax.lax.scan(step, (start, jax.tree.map(jnp.zeros_like, start)), None, length=steps)
    return parameters, values


keys = jax.random.split(jax.random.PRNGKey(1), 8)
starts = jax.vmap(lambda key: {"rate": 0.3 * jax.random.normal(key, (4,)), "first": jnp.zeros(2)})(keys)
fitted, values = jax.jit(jax.vmap(fit))(starts)
best = jnp.argmin(values[:, -1])
found = jnp.exp(fitted["rate"][best])
print("loss " + ", ".join(f"{a:.3f} → {b:.5f}" for a, b in values[:3, jnp.array([0, -1])].tolist()))
print("rates found " + ", ".join(f"{a:.3f}" for a in found.tolist()) + "; true 1.100, 0.800, 0.600, 0.900")
assert jnp.max(jnp.abs(found - truth["rate"])) < 0.02
