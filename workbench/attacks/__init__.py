"""Attacks on image classifiers and what their uncertainty says about them.

Attacks move every pixel by at most a strength (epsilon) and stay inside [0, 1]. Listing them imports
no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.registry import Entry, Registry, lazy, written_entries

if TYPE_CHECKING:
    from workbench.attacks.methods import attack as attack
    from workbench.attacks.robustness import DETECTORS as DETECTORS
    from workbench.attacks.robustness import Robustness as Robustness
    from workbench.attacks.robustness import measure as measure


@dataclass(frozen=True)
class AttackEntry(Entry):
    """One registered attack.

    Attributes:
        loss: what it raises, unless told otherwise; empty for noise.
        needs_variance: whether it needs latent functions with uncertainty.
        needs_surrogate: whether it is computed on another model and carried over.
    """

    loss: str = "cross-entropy"
    needs_variance: bool = False
    needs_surrogate: bool = False


@dataclass(frozen=True)
class LossEntry(Entry):
    """One registered loss.

    Attributes:
        needs_variance: whether it needs latent functions with uncertainty.
    """

    needs_variance: bool = False


_HERE = "workbench.attacks.methods"

_FOLDER = Path(__file__).parent
ATTACKS: Registry[AttackEntry] = Registry("attack", written_entries(_FOLDER / "attacks.toml", AttackEntry))
LOSSES: Registry[LossEntry] = Registry("loss", written_entries(_FOLDER / "losses.toml", LossEntry))

_LATER = "workbench.attacks.robustness"
__getattr__ = lazy(
    __name__,
    {"attack": _HERE, "measure": _LATER, "Robustness": _LATER, "DETECTORS": _LATER},
)
__all__ = ["ATTACKS", "LOSSES", "AttackEntry", "LossEntry"]

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


def loss_of(attack: str, loss: str | None, has_variance: bool) -> str:
    """The loss that an attack raises, checked against the model that its gradient is of.

    Args:
        attack: a name in `ATTACKS`.
        loss: a name in `LOSSES`, or None for the attack's own; an attack that needs variances keeps its own.
        has_variance: whether that model, the surrogate of a transfer, has latent functions with a variance.

    Raises:
        InputError: a loss that needs variances of a model that has none.
    """
    entry = ATTACKS[attack]
    if not entry.loss:
        return ""
    loss_entry = LOSSES[entry.loss if loss is None or entry.needs_variance else loss]
    if loss_entry.needs_variance and not has_variance:
        model = "the softmax network it is computed on" if entry.needs_surrogate else "this model"
        raise InputError(
            f"{entry.title} cannot raise the loss {loss_entry.title!r}: {model} has no latent functions "
            "with a variance. Use cross-entropy or hinge, or attack a large-margin model."
        )
    return loss_entry.name
