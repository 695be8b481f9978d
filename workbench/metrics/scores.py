"""Errors of predictions, and the confidence behind them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.metrics.checks import check_predictions, check_scores

SMALLEST_PROBABILITY = (
    1e-12  # docs/math.md, 8: a class given less counts as this much, so that NLL stays finite
)


def error_rate(y: ArrayLike, predicted: ArrayLike) -> float:
    """Share of items whose predicted class is wrong.

    Args:
        y: [N] true class codes.
        predicted: [N, C] probabilities (the first largest wins) or [N] predicted codes.

    Returns:
        A share in [0, 1].

    Raises:
        InputError: nothing to measure on, or shapes and codes that do not fit.
    """
    codes, guesses, _ = check_predictions(y, predicted)
    return float(np.mean(codes != guesses))


def balanced_error_rate(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over the classes present in `y` of the share of their items that is wrong.

    Args:
        y: [N] true class codes.
        predicted: [N, C] probabilities or [N] predicted codes.

    Returns:
        A share in [0, 1]; every class counts the same however few its items.

    Raises:
        InputError: as `error_rate`.
    """
    codes, guesses, n_classes = check_predictions(y, predicted)
    members = np.bincount(codes, minlength=n_classes)
    wrong = np.bincount(codes, weights=(codes != guesses).astype(np.float64), minlength=n_classes)
    present = members > 0
    return float(np.mean(wrong[present] / members[present]))


def macro_f1(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over classes of the harmonic mean of precision and recall.

    Args:
        y: [N] true class codes.
        predicted: [N, C] probabilities or [N] predicted codes.

    Returns:
        A number in [0, 1]. Classes neither present nor predicted do not count; a class that is
        only present or only predicted counts 0.

    Raises:
        InputError: as `error_rate`.
    """
    codes, guesses, n_classes = check_predictions(y, predicted)
    hits = np.bincount(codes[codes == guesses], minlength=n_classes)
    involved = np.bincount(codes, minlength=n_classes) + np.bincount(guesses, minlength=n_classes)
    seen = involved > 0
    return float(np.mean(2.0 * hits[seen] / involved[seen]))


def hamming_loss(y: ArrayLike, predicted: ArrayLike) -> float:
    """Share of answers that are wrong, over items and questions of several labels.

    Args:
        y: [N, Q] true answers, 0 or 1.
        predicted: [N, Q] predicted ones.

    Raises:
        InputError: other shapes, nothing, or other numbers.
    """
    truth, said = _switches(y, predicted)
    return float(np.mean(truth != said))


def subset_error(y: ArrayLike, predicted: ArrayLike) -> float:
    """Share of items that have a wrong answer to any question; arguments as of `hamming_loss`."""
    truth, said = _switches(y, predicted)
    return float(np.mean((truth != said).any(axis=1)))


def macro_f1_of_labels(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over questions of the F1 of "yes"; arguments as of `hamming_loss`.

    Questions where nobody says yes, rightly or wrongly, do not count; 1 where there are only such ones.
    """
    truth, said = _switches(y, predicted)
    hits, involved = (truth & said).sum(axis=0), truth.sum(axis=0) + said.sum(axis=0)
    seen = involved > 0
    return float(np.mean(2.0 * hits[seen] / involved[seen])) if seen.any() else 1.0


def _switches(y: ArrayLike, predicted: ArrayLike) -> tuple[Array, Array]:
    truth, said = np.asarray(y), np.asarray(predicted)
    if truth.ndim != 2 or truth.shape != said.shape or not truth.size:
        raise InputError(
            "Answers of several labels are two tables [items, questions] of one size, not empty; "
            f"got {list(truth.shape)} and {list(said.shape)}."
        )
    if not (np.isin(truth, (0, 1)).all() and np.isin(said, (0, 1)).all()):
        raise InputError("Answers of several labels are 0 and 1.")
    return truth.astype(bool), said.astype(bool)


def negative_log_likelihood(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean of -log of the probability given to the true class (nats).

    Args:
        y: [N] true class codes.
        probabilities: [N, C].

    Returns:
        A number >= 0; probabilities below 1e-12 count as 1e-12.

    Raises:
        InputError: nothing to measure on, or shapes and codes that do not fit.
    """
    codes, p = check_scores(y, probabilities)
    given = p[np.arange(codes.shape[0]), codes]
    return float(np.mean(-np.log(np.clip(given, SMALLEST_PROBABILITY, 1.0))))


def brier_score(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean squared distance between the probabilities and the one-hot truth.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].

    Returns:
        A number in [0, 2] (summed over classes, Brier's own form; the two-class form that stops
        at 1 is half of it).

    Raises:
        InputError: nothing to measure on, or shapes and codes that do not fit.
    """
    codes, p = check_scores(y, probabilities)
    # |p - e_y|^2 = |p|^2 - 2 p_y + 1 needs no one-hot copy, but cancels badly near 0
    difference = p.copy()
    difference[np.arange(codes.shape[0]), codes] -= 1.0
    return float(np.mean(np.einsum("nc,nc->n", difference, difference)))
