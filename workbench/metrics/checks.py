"""Checks of the arguments of every metric."""

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats, Ints
from workbench.errors import InputError


def check_codes(y: ArrayLike) -> Ints:
    """True class codes as an integer array [N].

    Raises:
        InputError: empty, not one-dimensional, not whole numbers, or with an unknown (negative) class.
    """
    codes = np.asarray(y)
    if codes.ndim != 1:
        raise InputError(f"True classes must be one code an item, shape [N]; got shape {list(codes.shape)}.")
    if codes.size == 0:
        raise InputError("There is nothing to measure on: no item with a known class was given.")
    if codes.dtype.kind not in "iu":
        if codes.dtype.kind not in "fb" or not ((codes == np.floor(codes)) & (np.abs(codes) < 1 << 53)).all():
            raise InputError("True classes must be whole-number codes (0, 1, ...); encode names first.")
        codes = codes.astype(np.int64)
    if int(codes.min()) < 0:
        raise InputError(
            f"Item {int(np.argmin(codes))} has no known class (code {int(codes.min())}); "
            "leave such items out."
        )
    return codes


def check_level(level: float) -> None:
    """Check the level of an interval.

    Raises:
        InputError: not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"The level of an interval lies between 0 and 1; got {level}.")


ENOUGH = 20
"""Measured items from which on an error is told as one figure."""
_SUM = 1e-3  # that a row of probabilities may miss 1 by


def check_sums(probabilities: Floats) -> Floats:
    """Probabilities [N, C] as they came, whose rows sum to one within 0.001.

    Raises:
        InputError: a row that does not, with its number and its sum.
    """
    sums = probabilities.sum(axis=1)
    off = np.abs(sums - 1.0) > _SUM  # rows that are no number are refused with their items' names elsewhere
    below = (probabilities < -1e-9).any(axis=1)
    if below.any():
        raise InputError(f"Row {int(np.flatnonzero(below)[0])} has a probability below 0.")
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise InputError(
            f"The probabilities of row {row} sum to {sums[row]:.4g}, not to 1: these are scores. The "
            "classifier's predict_proba must divide each row by its sum, or give a softmax."
        )
    return probabilities


def check_scores(y: ArrayLike, probabilities: ArrayLike) -> tuple[Ints, Floats]:
    """True codes [N] and probabilities [N, C] that belong together.

    Raises:
        InputError: shapes that disagree, a code outside the columns, a probability that is not
            a number or outside [0, 1], or a row that does not sum to one.
    """
    codes = check_codes(y)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.shape[0] != codes.shape[0] or p.shape[1] == 0:
        raise InputError(
            f"Probabilities must have one row an item and one column a class, [{codes.shape[0]}, C]; "
            f"got shape {list(p.shape)}."
        )
    if int(codes.max()) >= p.shape[1]:
        raise InputError(f"Class code {int(codes.max())} has no column: there are {p.shape[1]} of them.")
    sound = np.isfinite(p) & (p >= -1e-9) & (p <= 1.0 + 1e-6)
    if not sound.all():
        row = int(np.flatnonzero(~sound.all(axis=1))[0])
        raise InputError(f"Item {row} has a probability that is not a number in [0, 1].")
    return codes, check_sums(p)


def check_predictions(y: ArrayLike, predicted: ArrayLike) -> tuple[Ints, Ints, int]:
    """True codes [N], predicted codes [N] and C, from predicted codes [N] or probabilities [N, C].

    Raises:
        InputError: as `check_codes` and `check_scores`.
    """
    predictions = np.asarray(predicted)
    if predictions.ndim == 2:
        codes, p = check_scores(y, predictions)
        return codes, p.argmax(axis=1), int(p.shape[1])
    codes = check_codes(y)
    guesses = check_codes(predictions)
    if guesses.shape != codes.shape:
        raise InputError(f"{codes.shape[0]} true classes but {guesses.shape[0]} predictions.")
    return codes, guesses, int(max(codes.max(), guesses.max())) + 1
