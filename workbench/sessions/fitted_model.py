"""A fitted classifier, what it says of every item of its pool, and the policy that it can serve."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from secrets import token_hex
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints, standardised
from workbench.classifiers import CLASSIFIERS, Geometry, protocols
from workbench.classifiers.latent import Latent
from workbench.classifiers.predictor import Predictor, Projection
from workbench.classifiers.protocols import predictor_of
from workbench.errors import InputError
from workbench.metrics.checks import check_sums
from workbench.policies import POLICIES, Belief
from workbench.policies.belief import belief_of
from workbench.policies.default_policy import EffectivePolicy, effective_policy
from workbench.pools.neighbours.graph import Seen
from workbench.pools.pool import IdsAt, Pool
from workbench.sessions.smoothing import Smoothing

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


_WORTH_KEEPING = 1000  # items


@dataclass(frozen=True, eq=False)
class Explained:
    """A policy's utilities as cards give them for a reason.

    Attributes:
        policy: its name.
        looked: [m] the items it looks at in the model's round; None for all.
        utilities: [N] NaN where it does not look.
    """

    policy: str
    looked: Ints | None
    utilities: Floats


@dataclass(frozen=True, eq=False)
class Known:
    """Facts of a fitted model whose classifier is not made here yet.

    Attributes:
        probabilities: [N, C] of every item.
        geometry: that it measures distances in, or None.
        has_latent: whether it has latent functions.
        explained: the utilities that cards give for a reason.
    """

    probabilities: Floats
    geometry: Geometry | None
    has_latent: bool
    explained: Explained | None


class Scored(NamedTuple):
    """Items that a slow classifier gave probabilities of.

    Attributes:
        items: [m] ascending.
        probabilities: [m, C].
    """

    items: Ints
    probabilities: Floats


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted classifier and its view of the whole pool; never changes once published.

    Attributes:
        pool: what it looks at.
        classes: names of the C classes; their positions are the codes.
        making: gives the fitted classifier, always the same one.
        number: of the round that fitted it.
        items: [n] items it was trained on.
        codes: [n] their class codes.
        seconds: wall time of the fit.
        latents: of the pool, shared by the models of one run; None for a model that stands alone.
        uid: of this fit in this process: what was computed from another model has another.
        mean: [J, N, C] the guesses at every item that it was fitted with, or None.
        smoothing: how much it leans on neighbours.
        seen: the pool as it sees it; None where it leans on none.
        beside: whether it is one of several that share a projection of the pool.
        known: what needs no classifier, where another process has computed it: it is then made here when
            somebody first looks at more.
        among: [m] items that questions were chosen among in its round; None for all that were open.
        scored: the items that a slow classifier gave probabilities of in time; None for all.
    """

    pool: Pool
    classes: tuple[str, ...]
    making: Callable[[], Any]
    number: int
    items: Ints
    codes: Ints
    seconds: float = 0.0
    utilities: Floats | None = field(default=None)
    latents: PoolLatents | None = None
    uid: str = field(default_factory=lambda: token_hex(8))
    mean: Floats | None = None
    smoothing: Smoothing = field(default_factory=Smoothing)
    seen: Seen | None = None
    beside: bool = False
    known: Known | None = None
    among: Ints | None = None
    scored: Scored | None = None

    @cached_property
    def estimator(self) -> Any:
        """The fitted classifier."""
        return self.making()

    @cached_property
    def geometry(self) -> Geometry | None:
        """Geometry that the classifier took from the pool, or None."""
        return protocols.geometry_of(self.estimator) if self.known is None else self.known.geometry

    @property
    def has_latent(self) -> bool:
        """True if the classifier has latent functions with uncertainty."""
        return protocols.supports_latent(self.estimator) if self.known is None else self.known.has_latent

    @property
    def explained(self) -> Explained | None:
        """The utilities that cards give for a reason, where the process that fitted it has told them."""
        return None if self.known is None else self.known.explained

    @property
    def known_probabilities(self) -> Floats | None:
        """[N, C] as `probabilities`; None where nobody has made them yet."""
        if self.known is not None:
            return self.known.probabilities
        return self.__dict__.get("probabilities")

    @property
    def features(self) -> Array:
        """[N, D'] of every item, as the model sees them."""
        return self.pool.features if self.seen is None else self.seen.features

    def as_seen(self, features: Array) -> Array:
        """[n, D'] rows of features [n, D] that are not the pool's, as the model sees them."""
        return features if self.seen is None else self.seen.view.transform(np.asarray(features))

    @property
    def n_labelled(self) -> int:
        """Size of its training set."""
        return int(self.items.size)

    @cached_property
    def latent(self) -> Latent | None:
        """q(f) of every item of the pool, or None for a model without latents."""
        if not protocols.supports_latent(self.estimator):
            return None
        posterior = None if self.latents is None else self.latents.of(self.estimator)
        if posterior is None:
            latent: Latent = self.estimator.predict_latent(self.features, **self._guess())
            return latent
        shift = self._moved
        return posterior if shift is None else Latent(posterior.mean + shift, posterior.variance)

    @cached_property
    def _moved(self) -> Floats | None:
        """[N, C] what the guesses add to the latents' means, or None."""
        weights = protocols.mean_weights_of(self.estimator)
        if self.mean is None or weights is None:
            return None
        return np.tensordot(weights, self.mean, axes=1)

    def _guess(self, items: Any = slice(None)) -> dict[str, Floats]:
        """The guesses at some items, as the estimator takes them; nothing where it had none."""
        if self.mean is None or protocols.mean_weights_of(self.estimator) is None:
            return {}
        return {"mean": self.mean[:, items]}

    @property
    def begins_with_a_guess(self) -> bool:
        """True if a guess is its prior mean."""
        return bool(self._guess(slice(0, 0)))

    def guess_alone(self, items: Ints) -> Floats:
        """[n, C] class probabilities of some items before any label, where it begins with a guess."""
        from sklearn.base import clone

        X, none = self.features, slice(0, 0)
        before = clone(self.estimator).set_params(classes=self.estimator.classes_.tolist())
        before.fit(X[none], [], **self._guess(none))
        return np.asarray(before.predict_proba(X[items], **self._guess(items)))

    def guess_of(self, item: int, n: int) -> dict[str, Floats]:
        """Prior mean of an item for n rows made from it, as the estimator takes it; else nothing."""
        return self._guess(np.full(n, item))

    def predict_proba(self, items: Ints) -> Floats:
        """[n, C] class probabilities of some items, computed anew."""
        if not items.size:  # scikit-learn's classifiers refuse no rows
            return np.empty((0, len(self.classes)))
        p = np.asarray(self.estimator.predict_proba(self.features[items], **self._guess(items)))
        return check_sums(p)

    @cached_property
    def latent_mean(self) -> Floats | None:
        """The mean of `latent`, without the work of the variances where nobody has asked for these."""
        if "latent" not in self.__dict__ and self.latents is not None:
            mean = self.latents.mean_of(self.estimator)
            if mean is not None:
                shift = self._moved
                return mean if shift is None else mean + shift
        latent = self.latent
        return None if latent is None else latent.mean

    @cached_property
    def probabilities(self) -> Floats:
        """[N, C] class probabilities of every item of the pool."""
        if self.known is not None:
            return self.known.probabilities
        beta = protocols.temperature_of(self.estimator) if self.beside else None
        mean = None if beta is None else self.latent_mean
        if beta is not None and mean is not None:  # from the projection that all share
            from workbench.classifiers.calibration import softmax

            return softmax(mean, beta)
        return check_sums(np.asarray(self.estimator.predict_proba(self.features, **self._guess())))

    def probabilities_of(self, item: int) -> Floats:
        """[C] class probabilities of one item; of a very large pool they are not made of all for its sake."""
        p: Floats = self.probabilities_kept(np.array([item]))[0]
        return p

    def quick_probabilities(self, item: int) -> Floats | None:
        """[C] class probabilities of one item; None of one that a slow classifier has not scored in time."""
        return self.probabilities_of(item) if self.in_time(np.array([item])).size else None

    def probabilities_kept(self, items: Ints) -> Floats:
        """[n, C] class probabilities of some items; of a small pool those of all are made, and kept."""
        whole = len(self.pool) <= MANY and self.scored is None
        return self.probabilities[items] if whole else self.probabilities_at(items)

    def in_time(self, items: Ints) -> Ints:
        """Those of some items that were scored."""
        return items if self.scored is None else items[np.isin(items, self.scored.items)]

    def probabilities_at(self, items: Ints) -> Floats:
        """[n, C] class probabilities of some items; those of the whole pool only where somebody made them."""
        if self.known_probabilities is not None:
            return self.probabilities[items]
        if self.scored is not None:
            places = np.searchsorted(self.scored.items, items).clip(max=self.scored.items.size - 1)
            p, rest = self.scored.probabilities[places], self.scored.items[places] != items
            if rest.any():
                p[rest] = self.predict_proba(items[rest])
            return p
        if items.size < _WORTH_KEEPING:
            return self.predict_proba(items)
        # what tells how a fit goes is asked again of this one when the next is there
        key = items.tobytes()
        cache: tuple[tuple[bytes, Floats], ...] = self.__dict__.get("_kept", ())
        for cached_key, p in cache:
            if cached_key == key:
                return p
        probabilities = self.predict_proba(items)
        # replaced whole: another thread may be reading it
        self.__dict__["_kept"] = (*cache[-1:], (key, probabilities))
        return probabilities

    @cached_property
    def scaled(self) -> Array:
        """[N, D] features in the space the model measures distances in."""
        geometry = self.geometry
        if geometry is None:
            return standardised(self.features, self.pool.common_scale)
        scaled: Array = geometry.transform(self.features)
        return scaled

    def scaled_at(self, items: Ints) -> Array:
        """[n, D] the same of some items; the others are looked at only where the model has no geometry."""
        geometry = self.geometry
        if geometry is None or "scaled" in self.__dict__:
            return self.scaled[items]
        scaled: Array = geometry.transform(self.features[items])
        return scaled

    @property
    def state(self) -> dict[str, Array]:
        """The posterior as plain arrays."""
        state: dict[str, Array] = self.estimator.get_state()
        return state | self.smoothing.to_state()

    @cached_property
    def _never_asked(self) -> Array:
        shut = np.ones(len(self.pool), dtype=bool)
        shut[self.pool.trainable] = False
        shut[self.items] = True
        return shut

    def shut(self, closed: Ints | None = None) -> Array:
        """[N] mask of the items that may not be asked about; `closed` as for `belief`."""
        shut = self._never_asked.copy()
        if closed is not None:
            shut[closed] = True
        return shut

    def belief(self, closed: Ints | None = None) -> Belief:
        """Belief for a policy.

        Args:
            closed: further items that must not be asked; the training set and the test split never are.
        """
        rows = np.flatnonzero(self.shut(closed))
        labels = np.full(len(self.pool), -1, dtype=np.int64)
        labels[self.items] = self.codes
        return belief_of(
            self.estimator,
            self.features,
            labelled=rows,
            labels=labels[rows],
            latent=lambda: self.latent,
            latent_mean=lambda: self.latent_mean,
            probabilities=lambda: self.probabilities,
            scaled=lambda: self.scaled,
            ids=self.pool.items.ids,
        )

    def belief_at(self, rows: Ints) -> Belief:
        """Belief for a policy that looks at some items only, by their places in `rows`.

        Args:
            rows: [m] ascending items; of these the training set must not be asked.
        """
        X = np.asarray(self.features[rows])
        places = np.isin(rows, self.items).nonzero()[0]
        code = dict(zip(self.items.tolist(), self.codes.tolist(), strict=True))
        labels = np.array([code[item] for item in rows[places].tolist()], dtype=np.int64)
        guess = self._guess(rows)
        latent: Any = None
        if guess and protocols.supports_latent(self.estimator):
            latent = cache(lambda: self.estimator.predict_latent(X, **guess))
        return belief_of(
            self.estimator,
            X,
            labelled=places,
            labels=labels,
            latent=latent,
            latent_mean=None if guess else _mean_at(self.estimator, X),
            probabilities=(lambda: self.probabilities_at(rows)) if guess or self.scored is not None else None,
            scaled=None if self.geometry is not None else lambda: self.scaled[rows],
            ids=IdsAt(self.pool.items.ids, rows),
        )


def _mean_at(estimator: Any, X: Array) -> Callable[[], Floats] | None:
    """Latent means of rows without the variances, made once; None where the model cannot give them so."""
    predictor = protocols.predictor_of(estimator)
    return cache(lambda: predictor.mean(X)) if isinstance(predictor, Predictor) else None


def asking_policy(model: FittedModel, policy: Any) -> EffectivePolicy:
    """The policy that asks in a project now; it may look for a class that nobody has seen yet.

    Args:
        model: the published one.
        policy: the project's.
    """
    if model.mean is not None:
        return EffectivePolicy(policy)  # with a guess a class is predicted before anybody has seen it
    return effective_policy(policy, model.classes, model.codes, has_latent=model.has_latent)


def check_policy(policy: Any, classifier: Any) -> None:
    """Refuse a policy the classifier cannot serve, before anything is fitted.

    Raises:
        InputError: no such policy, or one that needs latents the classifier lacks.
    """
    if not isinstance(policy, str) or not isinstance(classifier, str):
        return
    from workbench.policies.registry import find

    entry, _ = find(policy)
    model = CLASSIFIERS.get(classifier)
    if entry is not None and model is not None and "latent" in entry.needs and not model.has_latent:
        can = [e.name for e in POLICIES.values() if "latent" not in e.needs and e.kind == entry.kind]
        raise InputError(
            f"{policy} needs latent functions with uncertainty, and {classifier} gives class probabilities "
            f"only. Use {', '.join(can)}; or a Bayesian model such as large-margin."
        )
