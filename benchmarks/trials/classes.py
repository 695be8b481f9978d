"""Classes that come one by one, and many fits in one process: nothing is compiled again, nothing is kept.

Models whose compiled functions have the number of classes open are fitted with 2, 3, 4 ... classes, two rows
each, as in a project whose classes are named while somebody labels; then every model with latents is fitted
thirty times to rows that grow. A trace, a probability that is no number, or a graph that stays is a failure.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials.fits import BRIEF
from workbench.arrays import Array
from workbench.classifiers import CLASSIFIERS, Geometry, make_classifier

OPEN = ("large-margin", "logistic-softmax", "bayesian-svm")
FITS = 30


def run(count: int = 120, seed: int = 0) -> Row:
    """Up to `count` classes with each of the open models, and thirty fits of each with latents."""
    failures: list[str] = []
    tried, most = 0, 0.0
    X, codes = _rows(count, seed)
    for name in OPEN:
        model = _made(name, X, warm_start=True)
        for n_classes in (2, count):  # both ways of listing rivals
            _made(name, X).fit(X[: 2 * n_classes], codes[: 2 * n_classes]).predict_proba(X)
        before, memory = _traces(), _megabytes()
        for n_classes in range(2, count + 1):
            p = model.fit(X[: 2 * n_classes], codes[: 2 * n_classes]).predict_proba(X[:5])
            tried += 1
            if p.shape != (5, n_classes) or not np.isfinite(p).all():
                failures.append(f"{name}, {n_classes} classes: probabilities of shape {p.shape}")
        if _traces() != before:
            failures.append(f"{name}: traced again on the way to {count} classes")
        most = max(most, _megabytes() - memory)
    X, codes = X[: 2 * FITS + 60], codes[: 2 * FITS + 60] % 3
    grown = 0.0
    for name in (name for name, entry in CLASSIFIERS.items() if entry.has_latent):
        for number in range(FITS):
            _made(name, X).fit(X[: 60 + number], codes[: 60 + number]).predict_proba(X[:10])
            tried += 1
            if number == 4:
                before, graphs, memory = _traces(), _graphs(), _megabytes()
        if _traces() != before or _graphs() > graphs:
            failures.append(f"{name}: traced again, or kept graphs, in {FITS} fits")
        grown = max(grown, _megabytes() - memory)
    trial = (
        f"2 to {count:,} classes one by one ({', '.join(OPEN)}), and {FITS} fits of every model with latents"
    )
    memory_of = {"MB more at most on the way to all classes": most, f"MB more in {FITS - 5} fits": grown}
    return Row.of(f"{trial}: traces, graphs, probabilities", tried, failures, most=memory_of)


def _rows(n_classes: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), 2)
    return rng.standard_normal((n_classes, 4))[codes] * 2 + 0.5 * rng.standard_normal((len(codes), 4)), codes


def _made(name: str, X: Array, **options: Any) -> Any:
    model = make_classifier(name, random_state=0, **BRIEF.get(name, {}))
    options["geometry"] = Geometry.of(X, 16, 0)
    return model.set_params(**{key: value for key, value in options.items() if key in model.get_params()})


def _traces() -> int:
    from tensorflow.types.experimental import PolymorphicFunction

    return sum(
        thing.experimental_get_tracing_count()
        for thing in gc.get_objects()
        if issubclass(type(thing), PolymorphicFunction)
    )


def _graphs() -> int:
    from tensorflow.python.framework.func_graph import FuncGraph

    gc.collect()
    return sum(type(thing) is FuncGraph for thing in gc.get_objects())


def _megabytes() -> float:
    import psutil

    gc.collect()
    return float(psutil.Process().memory_info().rss) / 1e6
