"""Parts that every fit shares: its result, the callback it reports to, and its minibatches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.progress import FitCallback


class FitResult(NamedTuple):
    """Result of a fit.

    Attributes:
        posterior: the best state met, in the family's own form.
        objective: its objective.
        trace: [T] objectives along the way.
        n_iter: sweeps, epochs or steps done.
        stopped: a callback asked to stop before the end.
    """

    posterior: Any
    objective: float
    trace: Floats
    n_iter: int
    stopped: bool = False


class Hyper(NamedTuple):
    """Parts that a projection is made with.

    Attributes:
        length_scale: one, or [D].
        variance: of the kernel.
        inducing: [P, D] inducing points, scaled units.
    """

    length_scale: Any
    variance: Any
    inducing: Any


def minibatches(n: int, size: int, count: int, rng: np.random.Generator) -> Ints:
    """Row numbers of `count` steps, pass after pass over the rows in random order.

    Args:
        n: rows.
        size: rows a step; capped at n. The last step of a pass is filled from its beginning.
        count: T steps.
        rng: source of randomness; not used where one step holds every row.

    Returns:
        [T, min(size, n)] int32.
    """
    size = max(1, min(size, n))
    if size == n:
        return np.tile(np.arange(n, dtype=np.int32), (count, 1))
    per_pass = -(-n // size)
    passes = [np.resize(rng.permutation(n), (per_pass, size)) for _ in range(-(-count // per_pass))]
    return np.concatenate([*passes, np.zeros((0, size))])[:count].astype(np.int32)


class Progress:
    """The callbacks of the parts of a fit as one callback; it remembers whether that said stop.

    Args:
        callback: of the whole fit, or None.
        low: where this part begins, as a share of the whole.
        high: where it ends.
        whole: of which this is a part; itself unless given.
    """

    def __init__(
        self, callback: FitCallback | None, low: float = 0.0, high: float = 1.0, whole: Progress | None = None
    ) -> None:
        self._callback, self._low, self._high = callback, low, high
        self._whole = whole or self
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """True if the callback asked to stop before the end."""
        return self._whole._stopped

    def __call__(self, fraction: float, objective: float) -> bool:
        """Report; True to stop."""
        at = self._low + fraction * (self._high - self._low)
        if self._callback is not None and self._callback(at, objective) and at < 1.0:
            self._whole._stopped = True
        return self.stopped

    @property
    def callback(self) -> FitCallback | None:
        """This part's callback; None where nobody listens, so that a fit can be one call."""
        return None if self._callback is None else self

    def part(self, low: float, high: float) -> Progress:
        """A share [low, high] of this part."""
        width = self._high - self._low
        return Progress(self._callback, self._low + low * width, self._low + high * width, self._whole)
