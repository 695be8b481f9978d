"""Common part of the models of a project's questions, measured once, and whose geometry they take.

Every model of a pool takes the same geometry from it and leans on the same graph of neighbours. Several
yes / no questions share more: one of them chooses a geometry and a kernel, the others take these, and the
pool is projected once for all.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from workbench.arrays import Array, items_and_codes
from workbench.classifiers import Geometry, protocols
from workbench.classifiers.choice import ONE_FACTOR, due
from workbench.pools.neighbours.graph import Neighbourhood
from workbench.pools.pool import Pool
from workbench.sessions.fitted_model import FittedModel, PoolLatents
from workbench.sessions.published import Published
from workbench.sessions.smoothing import NeighbourhoodBuild

_VIEWS = 2  # of a pool's features whose projections are kept


class Common:
    """Of the questions over one pool; safe to use from several threads.

    Args:
        pool: as those questions have it, with its test split or without.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._lock = RLock()
        self._geometries: dict[Hashable, Geometry] = {}
        self._makings: dict[int | None, NeighbourhoodBuild] = {}
        self._latents: list[PoolLatents] = []

    def geometry(self, key: Hashable, make: Callable[[], Geometry]) -> Geometry:
        """Geometry that a model takes from the pool.

        Args:
            key: of all that it depends on but the pool.
            make: measures it.
        """
        with self._lock:
            if key not in self._geometries:
                self._geometries[key] = make()
            return self._geometries[key]

    def making(self, begun: int | None) -> NeighbourhoodBuild:
        """The graph of neighbours of the first `begun` items, or of all."""
        with self._lock:
            if begun not in self._makings:
                self._makings[begun] = NeighbourhoodBuild(Neighbourhood(self.pool, begun))
            return self._makings[begun]

    def latents(self, features: Array, most: int | None) -> PoolLatents:
        """The pool's projection for those models that share a kernel.

        Args:
            features: [N, D'] of the pool as they see it.
            most: bytes that may be kept.
        """
        with self._lock:
            pool_latents = next(
                (candidate for candidate in self._latents if candidate.features is features), None
            )
            if pool_latents is None:
                pool_latents = PoolLatents(features, most)
                self._latents = [*self._latents, pool_latents][-_VIEWS:]
            return pool_latents


@dataclass(frozen=True, eq=False)
class Beside:
    """That a model is one of several of yes / no questions.

    Attributes:
        leader: whose geometry and kernel it takes; None where it chooses for all.
    """

    leader: FittedModel | None = None


SHARED_FROM = 4
"""Yes / no questions from which on one chooses for all; three choose for themselves, at thrice the cost."""


def rarer(published: Published | None) -> int:
    """Number of labels of a fit of the class that has the fewest: what a choice by it rests on."""
    return 0 if published is None else fewest(published.training)


def fewest(training: Mapping[int, int]) -> int:
    """Number of some items' codes of the rarer of two classes."""
    counts = np.bincount(items_and_codes(training)[1], minlength=2)
    return int(counts.min())


def led_by(
    training: Mapping[int, int],
    chosen: Mapping[str, Any],
    own: Published | None,
    others: Iterable[Published | None],
) -> Beside:
    """Model whose geometry a question takes that is about to be fitted.

    The newest choice, until it is time for the next; then who has most labels of the rarer answer chooses.

    Args:
        training: item -> code, of this one.
        chosen: classifier and options of this one.
        own: its newest fit.
        others: those of the others, as they are in use in this process.
    """
    able = [candidate for candidate in others if candidate is not None and _may_lead(candidate, chosen)]
    own_choice = None if own is None else protocols.choice_of(own.model.estimator)
    n_labels = 0 if own_choice is None or own_choice.own else own_choice.labels
    fresh = max(able, key=lambda candidate: (_labels(candidate), rarer(candidate)), default=None)
    if (
        fresh is not None
        and _labels(fresh) >= n_labels
        and not due(len(training), 2, _labels(fresh), ONE_FACTOR)
    ):
        same = _labels(fresh) == n_labels and fewest(training) >= rarer(fresh)
        return Beside(None if same else fresh.model)
    best = max(able, key=rarer, default=None)
    return Beside(best.model if best is not None and rarer(best) > fewest(training) else None)


def _labels(published: Published) -> int:
    choice = protocols.choice_of(published.model.estimator)
    return 0 if choice is None else choice.labels


def _may_lead(published: Published, inputs: Mapping[str, Any]) -> bool:
    """True if it is a model of the same kind, and has chosen something that others can use."""
    choice = protocols.choice_of(published.model.estimator)
    same = all(published.chosen[name] == inputs[name] for name in ("classifier", "options"))
    return same and choice is not None and not choice.own
