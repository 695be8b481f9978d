"""Checks of arguments that every function of this folder makes, in one place."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array
from workbench.errors import InputError

MOST_ITEMS = 1 << 31


def size_of(size: int) -> int:
    """A number of items.

    Raises:
        InputError: no whole number from 1 on.
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size < MOST_ITEMS:
        raise InputError(f"A set to certify has from 1 item on; got {size!r}.")
    return int(size)


def error_of(error: float) -> float:
    """A share of wrong labels that is allowed.

    Raises:
        InputError: not between 0 and 1.
    """
    if not _between(error):
        raise InputError(
            f"The allowed error is a share between 0 and 1, as 0.05; got {error!r}. "
            "Where no label may be wrong, every label has to be looked at."
        )
    return float(error)


def confidence_of(confidence: float) -> float:
    """A confidence.

    Raises:
        InputError: not between 0 and 1.
    """
    if not _between(confidence):
        raise InputError(f"The confidence is a share between 0 and 1, as 0.95; got {confidence!r}.")
    return float(confidence)


def _between(value: float) -> bool:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < 1.0


def checks_of(wrong: ArrayLike, size: int) -> Array:
    """Answers of checks as booleans.

    Args:
        wrong: [..., t]; 1 where the draw was wrong.
        size: of the set they were drawn from.

    Raises:
        InputError: something else than 0 and 1, or more draws than items.
    """
    checks = np.asarray(wrong)
    if checks.ndim == 0 or (checks.dtype.kind not in "biuf" and checks.size > 0):
        raise InputError("Checks are a list of 0 (right) and 1 (wrong), in the order they were drawn.")
    if checks.dtype.kind != "b" and not np.isin(checks, (0, 1)).all():
        raise InputError("Checks are 0 (right) or 1 (wrong); leave out what nobody has answered.")
    if checks.shape[-1] > size:
        raise InputError(f"{checks.shape[-1]:,} checks of {size:,} items: every item is drawn once at most.")
    return checks.astype(bool)


def too_many(size: int, error: float) -> int:
    """The smallest number of wrong items that breaks the promise "at most `error` of `size`"."""
    # the product of a share and a count may fall just under a whole number that it is
    return int(np.floor(error * size + 1e-9)) + 1
