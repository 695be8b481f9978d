"""Degenerate fits: every classifier on data no one would choose.

One class, one row, equal rows, constant and huge and tiny features, classes without rows, more classes than
rows, NaN and infinities. Each fit ends in probabilities that are numbers, or in one sentence.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.trials import Row
from workbench.arrays import Array
from workbench.classifiers import CLASSIFIERS, make_classifier
from workbench.errors import InputError

BRIEF = {
    "logistic-softmax-gibbs": {"n_samples": 20, "burn_in": 10},
    "svgp-softmax": {"max_iter": 5},
    "svgp-robust-max": {"max_iter": 5},
    "svgp-heaviside": {"max_iter": 5},
    "wasserstein": {"n_inducing": 8, "min_steps": 20, "epochs": 2},
    "large-margin-net": {"pretrain_epochs": 1, "joint_epochs": 1, "min_steps": 5, "n_inducing": 8},
    "softmax-net": {"epochs": 1, "min_steps": 5},
}
Data = tuple[Array, Array]


def run(count: int = 1000, seed: int = 0, names: Sequence[str] = tuple(CLASSIFIERS)) -> Row:
    """Fit `count` times, over the classifiers and all kinds of data in turn."""
    rng = np.random.default_rng(seed)
    kinds = list(KINDS)
    failures, refused, slowest = [], 0, (0.0, "")
    for number in range(count):
        name = names[number % len(names)]
        kind = kinds[(number // len(names)) % len(kinds)]
        X, y = KINDS[kind](rng)
        n_classes = max(2, int(y.max(initial=0)) + 1 + int(rng.integers(0, 2)))
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make_classifier(
                    name, classes=np.arange(n_classes), random_state=seed, **BRIEF.get(name, {})
                )
                p = model.fit(X, y).predict_proba(np.asarray(X, dtype=float)[:5])
        except InputError as error:
            refused += 1
            if len(str(error)) > 1000:
                failures.append(f"{name}, {kind}: a message of {len(str(error)):,} characters")
        except Exception as error:
            if "while a minimum of 1 is required" in str(
                error
            ):  # scikit-learn's own sentence, by its contract
                refused += 1
                continue
            failures.append(f"{name}, {kind}: {type(error).__name__}: {str(error)[:160]}")
        else:
            if p.shape[1] != n_classes or not np.isfinite(p).all() or abs(p.sum(axis=1) - 1).max() > 1e-6:
                failures.append(f"{name}, {kind}: probabilities {p.shape} that are none")
        slowest = max(slowest, (time.perf_counter() - began, f"{name}, {kind}"))
    return Row.of(
        f"degenerate fits over {len(names)} classifiers",
        count,
        failures,
        f"slowest {slowest[1]}",
        counts={"refused": refused},
        most={"s the slowest": slowest[0]},
    )


def _codes(rng: np.random.Generator, n: int, n_classes: int) -> Array:
    return rng.integers(0, n_classes, size=n)


def _with(value: float) -> Callable[[np.random.Generator], Data]:
    def make(rng: np.random.Generator) -> Data:
        X = rng.normal(size=(12, 3))
        X[int(rng.integers(12)), int(rng.integers(3))] = value
        return X, _codes(rng, 12, 3)

    return make


KINDS: dict[str, Callable[[np.random.Generator], Data]] = {
    "one class": lambda rng: (rng.normal(size=(9, 4)), np.zeros(9, dtype=int)),
    "one row": lambda rng: (rng.normal(size=(1, 4)), np.zeros(1, dtype=int)),
    "no rows": lambda rng: (np.empty((0, 4)), np.empty(0, dtype=int)),
    "two equal rows of two classes": lambda rng: (np.ones((2, 3)), np.array([0, 1])),
    "all rows equal": lambda rng: (np.full((15, 3), 2.5), _codes(rng, 15, 3)),
    "constant columns": lambda rng: (np.c_[np.ones((20, 3)), rng.normal(size=(20, 1))], _codes(rng, 20, 3)),
    "huge": lambda rng: (rng.normal(size=(20, 3)) * 1e150, _codes(rng, 20, 3)),
    "tiny": lambda rng: (rng.normal(size=(20, 3)) * 1e-150, _codes(rng, 20, 3)),
    "mixed scales": lambda rng: (rng.normal(size=(20, 3)) * [1e-8, 1, 1e8], _codes(rng, 20, 3)),
    "subnormal": lambda rng: (rng.normal(size=(20, 3)) * 5e-324, _codes(rng, 20, 3)),
    "each row its class": lambda rng: (rng.normal(size=(25, 3)), np.arange(25)),
    "classes without rows": lambda rng: (rng.normal(size=(20, 3)), _codes(rng, 20, 2) * 7),
    "more columns than rows": lambda rng: (rng.normal(size=(6, 200)), _codes(rng, 6, 2)),
    "one column": lambda rng: (rng.normal(size=(20, 1)), _codes(rng, 20, 3)),
    "no columns": lambda rng: (np.empty((20, 0)), _codes(rng, 20, 3)),
    "labels at odds": lambda rng: (np.repeat(rng.normal(size=(5, 3)), 6, axis=0), _codes(rng, 30, 3)),
    "integers": lambda rng: (rng.integers(-9, 9, size=(20, 3)), _codes(rng, 20, 3)),
    "booleans": lambda rng: (rng.random((20, 3)) < 0.5, _codes(rng, 20, 3)),
    "NaN": _with(np.nan),
    "infinite": _with(np.inf),
    "largest float": _with(np.finfo(float).max),
    "one of a thousand": lambda rng: (rng.normal(size=(300, 2)), np.r_[1, np.zeros(299, dtype=int)]),
}
