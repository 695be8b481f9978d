"""Does uncertainty tell attacked images from clean ones? Scores, ROC curves and their areas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench import metrics
from workbench.arrays import Array, Floats
from workbench.classifiers.protocols import supports_latent
from workbench.errors import InputError
from workbench.policies.registry import POLICIES, PolicyEntry
from workbench.policies.scored_model import belief_of
from workbench.registry import Registry

DETECTORS: Registry[PolicyEntry] = Registry(
    "detector", [], lambda: [entry for entry in POLICIES.values() if entry.detects]
)
"""The policies whose utility judges every image by itself; higher = more suspicious."""


def detectors_for(model: Any) -> tuple[str, ...]:
    """Names of the detectors a model can feed.

    Args:
        model: a classifier.
    """
    latent = supports_latent(model)
    return tuple(name for name, entry in DETECTORS.items() if latent or "latent" not in entry.needs)


class Scores(NamedTuple):
    """Scores of a model for images.

    Attributes:
        codes: [N] predicted classes.
        confidence: [N] their probabilities.
        suspicion: [K, N] one row a detector, higher = more suspicious.
    """

    codes: Array
    confidence: Floats
    suspicion: Floats


def score(model: Any, X: Array, detectors: Sequence[str], seed: int = 0) -> Scores:
    """Predictions and suspicion of images; the same images always get the same numbers.

    Args:
        model: a fitted classifier.
        X: [N, D].
        detectors: K names in `DETECTORS`.
        seed: of detectors that draw samples; the same draws serve clean and attacked images.

    Returns:
        The scores.

    Raises:
        InputError: a detector the model cannot feed.
    """
    has_latent = supports_latent(model)
    for name in detectors:
        if "latent" in DETECTORS[name].needs and not has_latent:
            raise InputError(
                f"Detector {name!r} needs latent functions with uncertainty and {type(model).__name__} has "
                f"none. Use one of: {', '.join(detectors_for(model))}."
            )
    probabilities = model.predict_proba(X)
    belief = belief_of(model, X, probabilities=probabilities)
    rows = [DETECTORS[name].load()(belief, np.random.default_rng([seed, 0xDE7])) for name in detectors]
    suspicion = np.stack(rows) if rows else np.empty((0, len(X)))
    return Scores(probabilities.argmax(axis=1), probabilities.max(axis=1), suspicion)


def area_under_roc(clean: Floats, attacked: Floats) -> float:
    """Probability that an attacked image is more suspicious than a clean one; ties count half.

    Args:
        clean: [n] scores.
        attacked: [m] scores.

    Returns:
        In [0, 1]; exactly 0.5 for equal scores; NaN when either is empty or holds no finite number.
    """
    truth, scores = _pooled(clean, attacked)
    if not len(clean) or not len(attacked) or not np.isfinite(scores).all():
        return float("nan")
    return metrics.area_under_roc(truth, scores)


def roc(clean: Floats, attacked: Floats) -> metrics.RocCurve:
    """The ROC curve of scores: attacked images are what is to be found.

    Args:
        clean: [n], at least one.
        attacked: [m], at least one.
    """
    return metrics.roc_curve(*_pooled(clean, attacked))


def _pooled(clean: Floats, attacked: Floats) -> tuple[Array, Floats]:
    """True for attacked rows, and the scores."""
    return np.repeat([False, True], [len(clean), len(attacked)]), np.concatenate([clean, attacked])


def threshold_at(clean: Floats, rate: float) -> float:
    """The lowest threshold that flags at most `rate` of the clean images (flagged: score >= threshold).

    Args:
        clean: [n] scores.
        rate: in [0, 1].
    """
    ordered = np.sort(clean)[::-1]
    allowed = int(np.floor(rate * len(ordered) + 1e-9))
    if allowed >= len(ordered):
        return float(ordered[-1])
    # just above the first score that may not be flagged, so that its ties are spared as well
    return float(np.nextafter(ordered[allowed], np.inf))


class Confusion(NamedTuple):
    """Counts at a threshold.

    Attributes:
        clean_flagged: false alarms.
        clean_passed: rightly let through.
        attacked_flagged: rightly found.
        attacked_passed: missed.
    """

    clean_flagged: int
    clean_passed: int
    attacked_flagged: int
    attacked_passed: int


def confusion_at(clean: Floats, attacked: Floats, threshold: float) -> Confusion:
    """Shares of both kinds of images that a threshold flags.

    Args:
        clean: [n] scores.
        attacked: [m] scores.
        threshold: flagged where the score is at least this.
    """
    false, hits = int((clean >= threshold).sum()), int((attacked >= threshold).sum())
    return Confusion(false, len(clean) - false, hits, len(attacked) - hits)
