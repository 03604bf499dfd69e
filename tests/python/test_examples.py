"""The programs of examples/python, beside NumPy's, xarray's and scikit-learn's own answers."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import einlang

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
ELSEWHERE = {"torch_layer.py", "jax_simulator.py"}  # tests/python/test_torch.py, test_jax.py
HERE = ["regression.py", "loader.py", "climate.py", "estimator.py"]


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # so that its classes can be pickled
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.name for path in FOLDER.glob("*.py")} <= {*HERE, *ELSEWHERE}


@pytest.mark.parametrize("name", HERE)
def test_runs_by_itself(name, tmp_path):
    here = str(pathlib.Path(einlang.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-B", FOLDER / name], capture_output=True, text=True, timeout=120, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": here})
    assert done.returncode == 0, done.stderr
    assert done.stdout and not done.stderr
    assert list(tmp_path.iterdir()) == []


def test_regression_is_at_the_minimum():
    example = load("regression")
    x, y, _ = example.data()
    w, losses = example.descend(x, y)
    assert all(later < earlier for earlier, later in zip(losses, losses[1:]))
    w, steepness = example.newton(x, y, w)
    assert steepness < 1e-12
    # The gradient by hand.
    by_hand = x.T @ (1 / (1 + np.exp(-x @ w)) - y) / len(y) + 0.01 * w
    np.testing.assert_allclose(by_hand, 0, atol=1e-12)
    start = np.linspace(-1, 1, 4)
    ours = example.program.grad("loss", wrt="w")(x=x, y=y, w=start)
    p = 1 / (1 + np.exp(-x @ start))
    np.testing.assert_allclose(ours.grads.w, x.T @ (p - y) / len(y) + 0.01 * start, rtol=1e-10)
    np.testing.assert_allclose(float(ours.loss), -np.mean(np.log(np.where(y > 0.5, p, 1 - p))) + 0.005 * start @ start, rtol=1e-12)


def test_loader_trains_as_by_hand():
    """The network, its derivative and Adam written out in NumPy, in f64."""
    example = load("loader")
    loader, loop = example.Moons(), example.start()
    names = ("hidden.w", "hidden.b", "last.w", "last.b")
    p = {name: loop.state()[f"state.p.{name}"].numpy().astype(np.float64) for name in names}
    m, v = ({name: np.zeros_like(p[name]) for name in names} for _ in range(2))
    for step, (x, y) in enumerate(loader.epoch(0), 1):
        out = loop(x=x, y=y)
        a = np.tanh(x @ p["hidden.w"].T + p["hidden.b"])
        z = a @ p["last.w"][0] + p["last.b"][0]
        np.testing.assert_allclose(float(out.loss), np.mean(np.logaddexp(0, z) - z * y), rtol=1e-4)
        np.testing.assert_allclose(float(out.right), np.mean((z > 0) == (y > 0.5)), atol=0.02)
        dz = (1 / (1 + np.exp(-z)) - y) / len(y)
        da = np.outer(dz, p["last.w"][0]) * (1 - a * a)
        g = {"hidden.w": da.T @ x, "hidden.b": da.sum(0), "last.w": (dz @ a)[None], "last.b": dz.sum(keepdims=True)}
        for name in names:
            m[name] = 0.9 * m[name] + 0.1 * g[name]
            v[name] = 0.999 * v[name] + 0.001 * g[name] ** 2
            p[name] = p[name] - 0.02 * m[name] / (1 - 0.9**step) / (np.sqrt(v[name] / (1 - 0.999**step)) + 1e-8)
    for name in names:
        np.testing.assert_allclose(loop.state()[f"state.p.{name}"], p[name], atol=2e-3)
    last = list(example.train(loop, loader, range(1, 10)))[-1]
    assert last[2] > 0.95


def test_climate_agrees_with_xarray():
    example = load("climate")
    t2m = example.data()
    found = example.analyse(t2m)
    weights = np.cos(np.deg2rad(t2m.lat))
    np.testing.assert_allclose(found.global_mean, t2m.weighted(weights).mean(("lat", "lon")), rtol=1e-5)
    anomaly = t2m - t2m.mean("time")
    np.testing.assert_allclose(found.anomaly, anomaly.transpose(*found.anomaly.dims), atol=1e-5)
    fitted = t2m.astype(np.float64).polyfit("time", 1).polyfit_coefficients.sel(degree=1) * 10
    np.testing.assert_allclose(found.trend, fitted, atol=1e-4)
    for name in ("time", "lat", "lon"):
        np.testing.assert_array_equal(found[name], t2m[name])
    with pytest.raises(einlang.DimsError, match="lat"):
        example.analyse(t2m.transpose("lat", "time", "lon"))


def test_estimator():
    from sklearn.linear_model import LinearRegression
    from sklearn.utils.estimator_checks import check_estimator

    example = load("estimator")
    check_estimator(example.HuberRegressor())
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.01 * rng.normal(size=80)
    # Where no point is far away, Huber's loss is half of the squares.
    ours = example.HuberRegressor(delta=1e6, steps=2000).fit(X, y)
    theirs = LinearRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
