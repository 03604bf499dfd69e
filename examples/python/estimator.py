"""An Einlang program as a scikit-learn estimator, which works in pipelines, cross-validation and grid search.

    python examples/python/estimator.py
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import einlang

# The model is one function; the loss is the program around it.
PROGRAM = einlang.compile("""
pub fn predict(x: [f64; n, i], w: [f64; i], b: f64) -> [f64; n] {
    [sum[i](x[n, i] * w[i]) + b | n in 0..extent(x, 0)]
}
let x: [f64; n, i];
let y: [f64; n];
let w: [f64; i];
let b: f64;
let delta: f64;
let miss[n] = abs(predict(x, w, b)[n] - y[n]);
// Huber's loss: far points count by their distance, not by its square.
let huber[n] = if miss[n] < delta { 0.5 * miss[n] ** 2.0 } else { delta * (miss[n] - 0.5 * delta) };
let loss = mean[n](huber[n]);
""")


class HuberRegressor(RegressorMixin, BaseEstimator):
    """Linear regression that outliers do not upset, by gradient descent."""

    def __init__(self, delta=1.0, rate=0.5, steps=300):
        self.delta, self.rate, self.steps = delta, rate, steps

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = y.astype(np.float64)
        gradient = PROGRAM.grad("loss", wrt=["w", "b"])
        w, b = np.zeros(X.shape[1]), 0.0
        for _ in range(self.steps):
            r = gradient(x=X, y=y, w=w, b=b, delta=float(self.delta))
            w, b = w - self.rate * np.asarray(r.grads.w), b - self.rate * float(r.grads.b)
        self.coef_, self.intercept_ = w, b
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(PROGRAM.fn.predict(X, self.coef_, self.intercept_))


def main():
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [2.0, -1.0, 0.5] + 3.0 + 0.1 * rng.normal(size=200)
    y[::20] += 25.0  # ten outliers
    for model in (LinearRegression(), HuberRegressor()):
        model.fit(X, y)
        print(f"{type(model).__name__:16} {np.round(model.coef_, 2)} + {model.intercept_:.2f}")
    search = GridSearchCV(make_pipeline(StandardScaler(), HuberRegressor(steps=100)),
                          {"huberregressor__delta": [0.1, 1.0, 10.0]}, scoring="neg_median_absolute_error")
    print("grid search chooses", search.fit(X, y).best_params_)


if __name__ == "__main__":
    main()
