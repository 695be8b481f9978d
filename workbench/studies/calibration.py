"""Galy-Fajou et al. 2019 in numbers: likelihoods on a toy, inference against Gibbs, inducing points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import process_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers import Geometry, make_classifier
from workbench.errors import InputError
from workbench.figures.records import CalibrationReport, Scores, TradeCurve
from workbench.metrics import (
    error_rate,
    expected_calibration_error,
    negative_log_likelihood,
    reliability_table,
)
from workbench.pools.datasets.generators import sample_three_gaussians, three_gaussians_probabilities
from workbench.studies.fits import compile_first, opened, split_arrays

NOISES = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5)
"""sigma^2 of the sweep; it starts above 0, where all points of a class coincide."""
N_TRAIN, N_TEST = 500, 2000
ORACLE = "bayes"
# the kernel of the paper's toy: the median distance as length scale, variance 1
KERNEL: Mapping[str, Any] = MappingProxyType({"length_scale_factor": 1.0, "variance": 1.0})


@dataclass(frozen=True)
class Likelihood:
    """A way from latent functions to class probabilities, with its inference.

    Attributes:
        title: for people.
        classifier: registry name, or "" for the exact probabilities.
        options: of the classifier.
    """

    title: str
    classifier: str
    options: Mapping[str, Any] = field(default_factory=dict)


OWN = MappingProxyType({"calibration": None})
"""Probabilities as the likelihood gives them."""
LIKELIHOODS: Mapping[str, Likelihood] = MappingProxyType(
    {
        ORACLE: Likelihood("Exact Bayes", ""),
        "logistic-softmax": Likelihood("Logistic-softmax, joint", "logistic-softmax", OWN),
        "robust-max": Likelihood("Robust-max", "svgp-robust-max", OWN),
        "softmax": Likelihood("Softmax", "svgp-softmax", OWN),
        "mean-field": Likelihood(
            "Logistic-softmax, mean-field",
            "logistic-softmax",
            OWN | {"bound": "mean-field", "prior_mean": 0.0},
        ),
        "heaviside": Likelihood("Heaviside + noise", "svgp-heaviside", OWN),
        "large-margin": Likelihood("Large-margin GP", "large-margin", {"choice": "fixed"}),
        "collapsed": Likelihood(
            "Mean-field, learned kernel",
            "logistic-softmax",
            OWN | {"bound": "mean-field", "prior_mean": 0.0, "hyperparameters": "learned"},
        ),
    }
)
SWEPT = tuple(name for name in LIKELIHOODS if name != "collapsed")
INFERENCES: Mapping[str, str] = MappingProxyType(
    {"plain": "VI, plain", "joint": "Augmented, joint", "mean-field": "Augmented, mean-field"}
)
"""Bounds of the logistic-softmax classifier that are held against Gibbs sampling."""
KERNELS: Mapping[bool, str] = MappingProxyType({True: "shared kernel", False: "a kernel for each class"})


class Toy(NamedTuple):
    """A draw of the toy.

    Attributes:
        X: [n, 2] training points.
        y: [n] their classes.
        X_test: [m, 2].
        y_test: [m].
    """

    X: Floats
    y: Ints
    X_test: Floats
    y_test: Ints


def toy(noise: float, seed: int = 0, n_train: int = N_TRAIN) -> Toy:
    """Three Gaussians at the corners of a triangle (Galy-Fajou et al. 2019, section 5.1).

    Args:
        noise: sigma^2.
        seed: of the draw.
        n_train: training points.

    Returns:
        The draw; more training points begin with the fewer.
    """
    X, y = sample_three_gaussians(N_TRAIN + N_TEST, noise, seed)
    if not 3 <= n_train <= N_TRAIN:
        raise InputError(f"The toy has 3 to {N_TRAIN} training points; got {n_train}.")
    return Toy(X[:n_train], y[:n_train], X[N_TRAIN:], y[N_TRAIN:])


def fitted(name: str, data: Toy, seed: int = 0, **more: Any) -> Any:
    """A likelihood's classifier, fitted to a draw with the paper's kernel.

    Args:
        name: in `LIKELIHOODS`, not the oracle.
        data: the draw.
        seed: of its inducing points.
        more: further options of the classifier.

    Raises:
        InputError: no such likelihood.
    """
    likelihood = _likelihood(name)
    model = make_classifier(
        likelihood.classifier, classes=np.arange(3), random_state=seed, **KERNEL, **likelihood.options, **more
    )
    return model.fit(data.X, data.y)


def probabilities(name: str, noise: float, seed: int = 0) -> tuple[Ints, Floats]:
    """Probabilities of a likelihood at the test points.

    Args:
        name: in `LIKELIHOODS`.
        noise: sigma^2.
        seed: of the draw.

    Returns:
        Test classes [m] and probabilities [m, 3].
    """
    data = toy(noise, seed)
    if name == ORACLE:
        return data.y_test, three_gaussians_probabilities(data.X_test, noise)
    return data.y_test, np.asarray(fitted(name, data, seed).predict_proba(data.X_test))


def scores(y: Ints, p: Floats) -> Scores:
    """Error, NLL and ECE of probabilities [m, C] for classes [m]."""
    return Scores(error_rate(y, p), negative_log_likelihood(y, p), expected_calibration_error(y, p))


def scores_of(name: str, noise: float, seed: int) -> Scores:
    """Error, NLL and ECE of a likelihood at a noise (sigma^2)."""
    return scores(*probabilities(name, noise, seed))


def calibration_report(title: str, y: Ints, p: Floats) -> CalibrationReport:
    """Reliability and confidence of probabilities [m, C] for classes [m]."""
    return CalibrationReport(title, len(y), scores(y, p), reliability_table(y, p))


@dataclass(frozen=True, eq=False)
class Inference:
    """Probabilities of one inference for the test items of a pool.

    Attributes:
        title: for people.
        error: on the test items.
        probabilities: [m, C].
        mean: [m, C] of the latent functions.
        variance: [m, C].
    """

    title: str
    error: float
    probabilities: Floats
    mean: Floats
    variance: Floats

    def against(self, exact: Inference) -> dict[str, tuple[Floats, Floats]]:
        """Columns of a scatter: quantity -> (exact values, ours)."""
        return {
            title: (getattr(exact, name), getattr(self, name))
            for title, name in (("p", "probabilities"), ("mean of f", "mean"), ("variance of f", "variance"))
        }

    def distance(self, exact: Inference) -> float:
        """Mean distance of the probabilities."""
        return float(np.abs(self.probabilities - exact.probabilities).mean())


def trade_fit(pool: str, points: int, shared: bool, rows: int, seed: int = 0) -> dict[str, float]:
    """One fit with learned hyperparameters, measured.

    Args:
        pool: as `load_pool` takes it, with known classes.
        points: inducing points of each class.
        shared: one kernel for all classes; else one binary problem a class, each with its own, whose
            probabilities are normalised.
        rows: of the pool, at most.
        seed: of the cut, the split and the fit.

    Returns:
        error, nll (nats), ece (15 bins) on n test items, and seconds of processor for the fit;
        the time for the inducing points, which are the same for both, is left out.
    """
    opened_pool = opened(pool, rows, seed)
    X, y, X_test, y_test = split_arrays(opened_pool)
    n_classes, present = int(max(y.max(), y_test.max())) + 1, np.unique(y)
    geometry = Geometry.of(X, points, seed, common_scale=opened_pool.common_scale)

    def make(count: int) -> Any:
        return make_classifier(
            "logistic-softmax",
            classes=np.arange(count),
            geometry=geometry,
            hyperparameters="learned",
            random_state=seed,
            **KERNEL,
            **OWN,
        )

    problems = [y] if shared else [(y == code).astype(np.int64) for code in present]
    count = n_classes if shared else 2
    compile_first(lambda: make(count), X, problems[0])
    began = process_time()
    models = [make(count).fit(X, codes) for codes in problems]
    seconds = process_time() - began
    if shared:
        p = np.asarray(models[0].predict_proba(X_test))
    else:
        p = np.full((len(y_test), n_classes), 1e-6)
        p[:, present] = np.column_stack([model.predict_proba(X_test)[:, 1] for model in models])
        p /= p.sum(axis=1, keepdims=True)
    return scores(y_test, p)._asdict() | {"seconds": seconds, "n": len(y_test)}


def trade_curves(points: Sequence[int], fits: Sequence[Mapping[str, float]]) -> tuple[TradeCurve, ...]:
    """Curves of fits.

    Args:
        points: [K] inducing points.
        fits: of `trade_fit`: up to K with a shared kernel, then up to K with own ones.
    """

    def curve(title: str, half: Sequence[Mapping[str, float]]) -> TradeCurve:
        error, nll, ece, seconds = (
            np.array([fit[name] for fit in half]) for name in ("error", "nll", "ece", "seconds")
        )
        at = np.asarray(points[: len(half)], dtype=np.float64)
        return TradeCurve(title, at, error, nll, ece, seconds, int(half[0]["n"]))

    halves = (fits[: len(points)], fits[len(points) :])
    return tuple(curve(title, half) for title, half in zip(KERNELS.values(), halves, strict=True) if half)


def _likelihood(name: str) -> Likelihood:
    if name not in LIKELIHOODS:
        raise InputError(f"There is no likelihood {name!r}. There are: {', '.join(LIKELIHOODS)}.")
    return LIKELIHOODS[name]
