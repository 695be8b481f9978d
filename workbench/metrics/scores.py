"""Errors of predictions, and the confidence behind them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

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
    is_present = involved > 0
    return float(np.mean(2.0 * hits[is_present] / involved[is_present]))


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
    likelihoods = p[np.arange(codes.shape[0]), codes]
    return float(np.mean(-np.log(np.clip(likelihoods, SMALLEST_PROBABILITY, 1.0))))


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
