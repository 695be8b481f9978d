"""Common part of the models of a project's questions, measured once.

Every model of a pool takes the same geometry from it and leans on the same graph of neighbours. Several
yes / no questions share more: one of them chooses a geometry and a kernel, the others take these, and the
pool is projected once for all.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Protocol

from workbench.arrays import Array
from workbench.classifiers import Geometry
from workbench.pools.neighbours.graph import Neighbourhood
from workbench.pools.pool import Pool
from workbench.sessions.latents import PoolLatents
from workbench.sessions.smoothing import NeighbourhoodBuild, Smoothing

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


class Leader(Protocol):
    """A fitted model whose choices others take."""

    @property
    def estimator(self) -> Any:
        """The fitted classifier."""

    @property
    def smoothing(self) -> Smoothing:
        """Strength with which it leans on neighbours."""


@dataclass(frozen=True, eq=False)
class Beside:
    """That a model is one of several of yes / no questions.

    Attributes:
        leader: whose geometry and kernel it takes; None where it chooses for all.
    """

    leader: Leader | None = None
