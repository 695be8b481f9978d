"""Logistic-softmax against GPflow's robust-max, and its own bounds and options against each other.

All times are process time of this one process. The paired runs take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.engine.runtime import prepare


def _overlapping(seed: int) -> tuple[Any, ...]:
    """Paper 002's toy at sigma^2 = 0.5: 500 items to train, 2,000 to test."""
    from workbench.pools.datasets.generators import sample_three_gaussians

    X, y = sample_three_gaussians(2500, 0.5, seed)
    return X[:500], y[:500], X[500:], y[500:]


def _nll(p: Any, y: Any) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())


def _robust_max(
    data: tuple[Any, ...], n_inducing: int, seconds: float, every: float
) -> list[tuple[float, float]]:
    """GPflow's SVGP with the robust-max likelihood under Adam, batches of 200 as in Galy-Fajou et al. 2019.

    Returns (process seconds spent training, test NLL) now and then.
    """
    import gpflow
    import tensorflow as tf

    from workbench.classifiers import Geometry

    X, y, X_test, y_test = data
    geometry = Geometry.of(X, n_inducing, 0)
    Z, scaled = geometry.inducing, geometry.transform(X)
    kernel = gpflow.kernels.SquaredExponential(1.0, lengthscales=geometry.length_scale)
    likelihood = gpflow.likelihoods.MultiClass(3, invlink=gpflow.likelihoods.RobustMax(3))
    model = gpflow.models.SVGP(kernel, likelihood, Z.copy(), num_latent_gps=3, num_data=len(X))
    gpflow.set_trainable(model.inducing_variable, False)
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    xs, ys = tf.constant(scaled), tf.constant(y[:, None])
    rows = tf.data.Dataset.range(len(X)).shuffle(len(X), seed=0).repeat().batch(200)
    batches = iter(rows)

    @tf.function
    def step(batch: Any) -> None:
        with tf.GradientTape() as tape:
            loss = model.training_loss((tf.gather(xs, batch), tf.gather(ys, batch)))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))

    test = tf.constant(geometry.transform(X_test))
    step(next(batches))  # tracing and k-means are not charged
    spent, marks = 0.0, []
    while spent < seconds:
        since = time.process_time()
        while time.process_time() - since < every:
            step(next(batches))
        spent += time.process_time() - since
        p = model.predict_y(test)[0].numpy()
        marks.append((spent, _nll(p / p.sum(axis=1, keepdims=True), y_test)))
    return marks


def _ours(data: tuple[Any, ...], n_inducing: int) -> list[tuple[float, float]]:
    """LogisticSoftmaxClassifier, cold: geometry, projection and sweeps, sweep by sweep."""
    from workbench.classifiers.logistic_softmax import LogisticSoftmaxClassifier

    X, y, X_test, y_test = data
    # the callback only takes the time; the NLL after k sweeps is measured on a fit of k sweeps
    at: list[float] = []
    began = time.process_time()
    model = LogisticSoftmaxClassifier(n_inducing=n_inducing, random_state=0)
    model.fit(X, y, callback=lambda *_: at.append(time.process_time() - began) and None)
    total = time.process_time() - began
    marks = []
    for k, spent in enumerate(at, start=1):
        short = LogisticSoftmaxClassifier(n_inducing=n_inducing, random_state=0, max_sweeps=k)
        marks.append((spent, _nll(short.fit(X, y).predict_proba(X_test), y_test)))
    marks.append((total, _nll(model.predict_proba(X_test), y_test)))
    return marks


def robust_max_race(*, quick: bool = False) -> float:
    """Share of robust-max's 8 s that logistic-softmax needs for the NLL robust-max has then.

    The strictest reading counts: the best NLL robust-max had at any time in those seconds.
    """
    prepare()
    seconds, seeds = (2.0, 1) if quick else (8.0, 3)
    print(f"Overlapping synthetic set (three Gaussians, sigma^2 = 0.5), {seconds:g} s of robust-max")
    print(
        "seed  robust-max: NLL at the end  best on the way (s)   ours: time to each (s)       final NLL (s)"
    )
    shares = []
    _ours(_overlapping(99), 64)  # the one trace of the process
    for seed in range(seeds):
        data = _overlapping(seed)
        ours = _ours(data, 64)
        theirs = _robust_max(data, 64, seconds, every=0.25)
        end, (best_at, best) = theirs[-1][1], min(theirs, key=lambda mark: mark[1])
        reached = [next((t for t, nll in ours if nll <= goal), np.inf) for goal in (end, best)]
        share = reached[1] / seconds
        shares.append(share)
        print(
            f"{seed:4d}  {end:27.3f}  {best:9.3f} ({best_at:4.1f})   "
            f"{reached[0]:9.3f} {reached[1]:9.3f}   {ours[-1][1]:12.3f} ({ours[-1][0]:.3f})"
        )
    worst = max(shares)
    print(f"largest share of robust-max's time: {worst:.4f} (wanted: under 0.1)")
    return float(worst)


def bounds(*, quick: bool = False) -> float:
    """Bounds of logistic-softmax on data sets scikit-learn carries: time, error, NLL.

    Returns the joint bound's mean NLL over the mean-field bound's.
    """
    prepare()
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.model_selection import train_test_split

    from workbench.classifiers.logistic_softmax import LogisticSoftmaxClassifier

    sets: dict[str, Callable[..., Any]] = {"wine": load_wine, "breast cancer": load_breast_cancer}
    if not quick:
        sets["digits"] = load_digits
    options: dict[str, dict[str, Any]] = {
        "joint": {},
        "joint, m0 = 0": {"prior_mean": 0.0},
        "mean-field": {"bound": "mean-field"},
        "minibatches of 100": {"batch_size": 100},
        "learned kernel": {"hyperparameters": "learned"},
    }
    print(f"{'set':14s} {'model':20s} {'fit s':>8s} {'error':>7s} {'NLL':>7s} {'sweeps':>7s}")
    totals: dict[str, list[float]] = {name: [] for name in options}
    for name, load in sets.items():
        X, y = load(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
        for label, option in options.items():
            model = LogisticSoftmaxClassifier(random_state=0, **option)
            model.fit(X, y)
            began = time.process_time()
            model.fit(X, y)
            spent = time.process_time() - began
            p = model.predict_proba(X_test)
            totals[label].append(_nll(p, y_test))
            error = float((p.argmax(axis=1) != y_test).mean())
            row = f"{name:14s} {label:20s} {spent:8.3f} {error:7.4f} {totals[label][-1]:7.4f}"
            print(row, f"{model.n_iter_:7d}")
    return float(np.mean(totals["joint"]) / np.mean(totals["mean-field"]))


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks of this file."""
    parser = argparse.ArgumentParser(prog="benchmarks.logistic_softmax", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, 2 s of robust-max, small sets")
    quick = parser.parse_args(arguments).quick
    share = robust_max_race(quick=quick)
    print()
    bounds(quick=quick)
    return 0 if share < 0.1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
