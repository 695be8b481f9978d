"""Result of one refit, as questions are taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from workbench.arrays import Floats, Ints
    from workbench.sessions.fitted_model import Explained, FittedModel
    from workbench.store import ProjectState

RANKED = 1000
"""Items that a fit puts in order, for as many questions as people ask before the next one."""


@dataclass(frozen=True, eq=False)
class Made:
    """Round that another process has stored, with what it has computed of it anyway.

    Attributes:
        number: of the round.
        utilities: [N] the policy's, NaN where it gave none.
        probabilities: [N, C] of every item; None of a pool that is not scored whole.
        explained: for cards; None where no policy of ours asks.
    """

    number: int
    utilities: Floats
    probabilities: Floats | None = None
    explained: Explained | None = None


@dataclass(frozen=True, eq=False)
class Published:
    """Result of one refit; replaced as a whole, never changed.

    Attributes:
        model: the fitted one.
        training: item -> code of what it was fitted on.
        keys: of the classes behind the codes.
        merged: key -> key it had been merged into when the model was fitted.
        chosen: classifier, options, policy and what it starts from ("guess").
        queue: items to ask next, best first.
        utilities: [N] the policy's, NaN where it gave none.
        learnable: of the state that it was made from.
    """

    model: FittedModel
    training: Mapping[int, int]
    keys: tuple[str, ...]
    chosen: Mapping[str, Any]
    queue: Ints
    utilities: Floats
    merged: Mapping[str, str] = field(default_factory=dict)
    learnable: str = ""

    @cached_property
    def ranked(self) -> Ints:
        """[n] the `RANKED` items of largest utility, best first; of equal ones the first."""
        items = np.flatnonzero(~np.isnan(self.utilities))
        if items.size > RANKED:
            values = self.utilities[items]
            least = np.partition(values, items.size - RANKED)[items.size - RANKED]
            above = items[values > least]
            items = np.sort(np.concatenate([above, items[values == least][: RANKED - above.size]]))
        return items[np.argsort(-self.utilities[items], kind="stable")]

    def code_of(self, key: str, state: ProjectState) -> int:
        """The model's code of the items that somebody, or the pool, says are of class `key`.

        That of the class itself, else of what it had been merged into when the model was fitted, or has been
        since; -1 where the model does not know it.
        """
        for merged in (self.merged, state.merged):
            while key not in self.keys and key in merged:
                key = merged[key]
        return self.keys.index(key) if key in self.keys else -1

    def named(self, state: ProjectState, row: Floats) -> dict[str, float]:
        """Name of a class as it is called now -> its probability in a row [C] of the model's, in that order.

        Its probabilities are of the keys that it was fitted with: a class that was renamed since is called by
        its new name, and those of classes that count as one by now add up.
        """
        probabilities: dict[str, float] = {}
        for name, p in zip(self.names(state), row, strict=True):
            probabilities[name] = probabilities.get(name, 0.0) + float(p)
        return probabilities

    def names(self, state: ProjectState) -> tuple[str, ...]:
        """Names of the model's classes as they are now; several that count as one have its name."""
        return tuple(map(state.class_name, self.keys))

    def is_of(self, state: ProjectState, chosen: Mapping[str, Any]) -> bool:
        """Tell whether it was made from the same votes, classes and settings; costs nothing that grows."""
        return (
            self.learnable == state.learnable
            and self.keys == state.keys
            and self.model.classes == state.classes
            and self.chosen == chosen
        )
