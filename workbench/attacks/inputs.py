"""Checks of the images and strengths of attacks; no TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError

_EDGE = 1e-6


def check_strengths(strengths: Sequence[float] | Floats) -> Floats:
    """Strengths as an array [S].

    Raises:
        InputError: none, or one outside [0, 1].
    """
    grid = np.atleast_1d(np.asarray(strengths, dtype=np.float64))
    if grid.ndim != 1 or grid.size == 0:
        raise InputError("Give at least one strength.")
    bad = grid[~((grid >= 0) & (grid <= 1))]
    if bad.size:
        raise InputError(
            "A strength is the largest change of a pixel, between 0 (none) and 1 (black to white); "
            f"got {bad[0]:g}."
        )
    return grid


def check_images(X: Array) -> Floats:
    """Images as float64 [N, D] with every value in [0, 1].

    Raises:
        InputError: other shapes or values.
    """
    images = np.asarray(X, dtype=np.float64)
    if images.ndim != 2 or len(images) == 0:
        raise InputError(f"Attacks need images as rows of pixels, [N, D]; got shape {list(images.shape)}.")
    low, high = float(images.min()), float(images.max())
    if not (low >= -_EDGE and high <= 1.0 + _EDGE):
        raise InputError(
            f"Attacks need pixels between 0 and 1; these values reach from {low:.3g} to {high:.3g}. Fit the "
            "model on pixels divided by 255, not on PCA components or other features."
        )
    return np.clip(images, 0.0, 1.0)
