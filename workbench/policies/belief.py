"""Belief of a model, as a policy sees it, and the policy's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.latent import Latent
from workbench.errors import InputError

PolicyFn = Callable[["Belief", Generator], Floats]
Selector = Callable[["Belief", int, Generator], Ints]


class Belief:
    """Belief of the model about the pool; fields are computed when first asked for.

    Args:
        features: [N, D] of the whole pool.
        labelled: [L] indices of items that must not be asked (labelled, skipped, leased, test).
        labels: [L] int codes of `labelled`, -1 where there is no label.
        latent: Latent, or a function giving one, or None for models without latents.
        latent_mean: a function giving the mean of `latent`, where that is cheaper than both moments.
        probabilities: [N, C], or a function giving them.
        n_classes: C.
        scaled: the features as the model measures distances (standardised), or a function giving
            them; batch selectors cluster in this space. Defaults to `features`.
        inducing_projection: a function of row indices giving [n, P] whitened features phi, with
            which selectors form posterior covariances; None where the model has none.
        covariance: a function of two lists of row indices giving [C, n, m] posterior covariances of the
            latents; None where the model has none.
        temperature: beta of softmax(beta f), where the model turns latents into class
            probabilities that way.
        ids: names of items for messages; row numbers where None.
    """

    def __init__(
        self,
        *,
        features: Array,
        labelled: Ints,
        labels: Ints,
        n_classes: int,
        latent: Latent | Callable[[], Latent | None] | None = None,
        latent_mean: Callable[[], Floats | None] | None = None,
        probabilities: Floats | Callable[[], Floats] | None = None,
        scaled: Array | Callable[[], Array] | None = None,
        inducing_projection: Callable[[Ints], Array] | None = None,
        covariance: Callable[[Ints, Ints], Floats] | None = None,
        temperature: float = 1.0,
        ids: Sequence[str] | None = None,
    ) -> None:
        self.features = features
        self.labelled = np.asarray(labelled, dtype=np.int64)
        self.labels = np.asarray(labels, dtype=np.int64)
        self.n_classes = n_classes
        self.inducing_projection = inducing_projection
        self.covariance = covariance
        self.temperature = temperature
        self.ids = ids
        self.utilities: Floats | None = None
        self._latent = latent
        self._latent_mean = latent_mean
        self._probabilities = probabilities
        self._scaled = scaled

    def __len__(self) -> int:
        return int(self.features.shape[0])

    @property
    def latent(self) -> Latent | None:
        """q(f) for every item, or None for a model without latents."""
        if callable(self._latent):
            self._latent = self._latent()
        return self._latent

    @property
    def latent_mean(self) -> Floats | None:
        """[N, C] means of q(f), or None for a model without latents."""
        if self._latent_mean is not None and callable(self._latent):
            return self._latent_mean()
        latent = self.latent
        return None if latent is None else latent.mean

    @property
    def probabilities(self) -> Floats:
        """[N, C] class probabilities.

        Raises:
            InputError: the model gives none.
        """
        if callable(self._probabilities):
            self._probabilities = self._probabilities()
        if self._probabilities is None:
            raise InputError("This policy needs class probabilities and the model gives none.")
        return self._probabilities

    @property
    def scaled(self) -> Array:
        """[N, D] features in the space the model measures distances in."""
        if callable(self._scaled):
            self._scaled = self._scaled()
        return self.features if self._scaled is None else self._scaled

    def with_utilities(self, utilities: Floats) -> Belief:
        """A view of this belief that also carries a policy's utilities, for selectors to spread out.

        Args:
            utilities: [N], NaN where an item may not be asked or is not in the running.
        """
        view = copy(self)
        view.utilities = utilities
        return view

    def name_of(self, index: int) -> str:
        """Name of item `index` in messages: its row number, and its id where there is one."""
        return str(index) if self.ids is None else f"{index} (id {self.ids[index]!r})"

    @property
    def askable(self) -> Ints:
        """[M] ascending indices of items that may be asked about."""
        mask = np.ones(len(self), dtype=bool)
        mask[self.labelled] = False
        return np.flatnonzero(mask)


class Query(NamedTuple):
    """The answer of a policy.

    Attributes:
        indices: [k] items to ask about, best first.
        utilities: [N] utility of every item; NaN where it may not be asked, or where bounds showed
            that it cannot be among the best, so that it was not computed. `utilities(...)` of
            workbench.policies computes all of them.
        warnings: what a person should know: fewer items left than asked for, a weak selector.
        uniform: [k] which items were drawn uniformly, whatever the policy; None for none.
    """

    indices: Ints
    utilities: Floats
    warnings: tuple[str, ...] = ()
    uniform: Array | None = None
