"""Attacks on image classifiers and what their uncertainty says about them.

Attacks move every pixel by at most a strength (epsilon) and stay inside [0, 1]. Listing them imports
no TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.registry import Entry, Registry

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

ATTACKS: Registry[AttackEntry] = Registry(
    "attack",
    [
        AttackEntry(
            "fgsm",
            f"{_HERE}:fgsm",
            "FGSM",
            "One step: each pixel moves the way that misleads most (Goodfellow et al. 2015).",
        ),
        AttackEntry(
            "pgd",
            f"{_HERE}:pgd",
            "PGD",
            "Many small steps of that kind from a random start (Madry et al. 2018); the best one is kept.",
        ),
        AttackEntry(
            "adaptive-pgd",
            f"{_HERE}:pgd",
            "Adaptive PGD",
            "Knows the detector: looks for images the model is wrong about and certain of.",
            loss="adaptive",
            needs_variance=True,
        ),
        AttackEntry(
            "transfer",
            f"{_HERE}:fgsm",
            "Transfer",
            "FGSM computed on a softmax network and shown to this model.",
            needs_surrogate=True,
        ),
        AttackEntry(
            "noise",
            f"{_HERE}:noise",
            "Random signs",
            "No attack: every pixel moves by the strength, up or down at random. The control.",
            loss="",
        ),
    ],
)

LOSSES: Registry[LossEntry] = Registry(
    "loss",
    [
        LossEntry(
            "cross-entropy",
            "workbench.attacks.methods:cross_entropy",
            "Cross-entropy",
            "Of the softmax of the latent means, at the model's own temperature.",
        ),
        LossEntry(
            "hinge",
            "workbench.attacks.methods:hinge",
            "Hinge",
            "One plus the best rival's mean minus the true class's.",
        ),
        LossEntry(
            "objective",
            "workbench.attacks.methods:objective",
            "Training objective",
            "The large-margin model's own loss; also raises the variance.",
            needs_variance=True,
        ),
        LossEntry(
            "adaptive",
            "workbench.attacks.methods:adaptive",
            "Adaptive",
            "How surely the best wrong class is the largest: wrong and certain.",
            needs_variance=True,
        ),
    ],
)

_LAZY = {
    "attack": _HERE,
    "measure": "workbench.attacks.robustness",
    "Robustness": "workbench.attacks.robustness",
    "DETECTORS": "workbench.attacks.robustness",
}

__all__ = ["ATTACKS", "LOSSES", "AttackEntry", "LossEntry"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
