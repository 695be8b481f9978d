"""Attacks on image classifiers and what their uncertainty says about them.

Attacks move every pixel by at most a strength (epsilon) and stay inside [0, 1]. Listing them imports
no TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.registry import Entry, Registry, written_entries

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
