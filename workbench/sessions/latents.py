"""Latents of a whole pool, round after round, without going back to the features."""

from threading import Lock
from typing import Any

from workbench.arrays import Array, Floats
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor, Projection
from workbench.classifiers.protocols import predictor_of

CACHED_BYTES = 128_000_000
MANY = 200_000
"""Items of a pool from which on nothing that one question needs is computed for all of them."""
LARGE_BYTES = 640_000_000
"""The same for what is new: a million rows at 64 points and what a choice adds to them."""


class PoolLatents:
    """The projection of a pool, cached while points and kernel stand: only the posterior changes.

    Above `CACHED_BYTES` everything kept is float32.

    Args:
        features: [N, D] of the pool.
        most: bytes that may be kept; `CACHED_BYTES` unless given.
    """

    def __init__(self, features: Array, most: int | None = None) -> None:
        self.features = features
        self.most = most
        self._lock = Lock()
        self._cached: tuple[Predictor, Projection] | None = None

    def of(self, estimator: Any) -> Latent | None:
        """Latents of every item from the cached projection, within 1e-5 of the prior variance.

        Args:
            estimator: fitted.

        Returns:
            None where the pool is too big to keep or the model has no projection.
        """
        predictor = predictor_of(estimator)
        if not isinstance(predictor, Predictor):
            return None
        projection = self._projection(predictor)
        return None if projection is None else predictor.latent_at(projection)

    def mean_of(self, estimator: Any) -> Floats | None:
        """The mean of `of` alone, to the same bytes; of a pool too big to keep, from its features."""
        predictor = predictor_of(estimator)
        if not isinstance(predictor, Predictor):
            return None
        projection = self._projection(predictor)
        return predictor.mean(self.features) if projection is None else predictor.mean_at(projection)

    def _projection(self, predictor: Predictor) -> Projection | None:
        P, B = len(predictor.whitener), len(predictor.points)
        rows, wide = len(self.features), B if B > P else 0
        compact = rows * (4 * P + 8 * B) > CACHED_BYTES
        if compact and rows * 4 * (P + wide) > (self.most or CACHED_BYTES):
            return None
        with self._lock:
            cached = self._cached
        if cached is not None and predictor.projects_like(cached[0]):
            return cached[1]
        with self._lock:  # two large ones at once would be twice the memory
            self._cached = None
        projector = predictor.projected
        projection = projector(self.features, compact=True) if compact else projector(self.features)
        if projection is not None:
            with self._lock:
                self._cached = (predictor, projection)
        return projection

    def __getstate__(self) -> dict[str, Any]:
        return {"features": self.features, "most": self.most}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["features"], state.get("most"))  # type: ignore[misc]
