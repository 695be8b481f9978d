"""What one refit made, as questions are taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.arrays import Floats, Ints
    from workbench.sessions.model import FittedModel
    from workbench.store import ProjectState


@dataclass(frozen=True, eq=False)
class Published:
    """What one refit made; replaced as a whole, never changed.

    Attributes:
        model: the fitted one.
        training: item -> code of what it was fitted on.
        keys: of the classes behind the codes.
        merged: key -> key it had been merged into when the model was fitted.
        chosen: classifier, options, policy and what it starts from ("guess").
        queue: items to ask next, best first.
        utilities: [N] the policy's, NaN where it gave none.
    """

    model: FittedModel
    training: Mapping[int, int]
    keys: tuple[str, ...]
    chosen: Mapping[str, Any]
    queue: Ints
    utilities: Floats
    merged: Mapping[str, str] = field(default_factory=dict)

    def code_of(self, key: str, state: ProjectState) -> int:
        """The model's code of the items that somebody, or the pool, says are of class `key`.

        That of the class itself, else of what it had been merged into when the model was fitted, or has been
        since; -1 where the model does not know it.
        """
        for merged in (self.merged, state.merged):
            while key not in self.keys and key in merged:
                key = merged[key]
        return self.keys.index(key) if key in self.keys else -1

    def is_of(self, state: ProjectState, training: Mapping[int, int], chosen: Mapping[str, Any]) -> bool:
        """Whether a refit on this training set would give nothing new."""
        return (
            self.keys == state.keys
            and self.model.classes == state.classes
            and (self.training is training or self.training == training)
            and self.chosen == chosen
        )
