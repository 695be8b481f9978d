"""Belief of a model: what is computed of it once, as a policy sees it, and the policy's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import protocols
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


class Shipped(NamedTuple):
    """A model as it travels to another process: a class to import and arrays, no live model.

    Attributes:
        target: "module:Class" that is rebuilt, or "" for a plain function that travels as it is.
        options: constructor options of a classifier.
        arrays: saved parameters.
        function: the plain function.
        temperature: of a function without a classifier; a classifier brings its own.
    """

    target: str
    options: Mapping[str, Any] | None
    arrays: Mapping[str, Array]
    function: Callable[[Array], Latent] | None
    temperature: float | None

    def unpack(self) -> ScoredModel:
        """The model again."""
        if not self.target:
            return as_scored_model(self.function, self.temperature)
        module, _, name = self.target.partition(":")
        kind: Any = import_module(module)
        for attribute in name.split("."):
            kind = getattr(kind, attribute)
        if self.options is not None:
            return as_scored_model(kind(**self.options).set_state(self.arrays))
        return as_scored_model(kind.from_arrays(self.arrays), self.temperature)


def unpacked(token: str, shipped: Shipped) -> ScoredModel:
    """The model of a scan in a worker, which keeps that of one scan at a time."""
    model = _unpacked.get(token)
    if model is None:
        _unpacked.clear()
        model = _unpacked[token] = shipped.unpack()
    return model


_unpacked: dict[str, ScoredModel] = {}


class ScoredModel:
    """A predictor or a fitted classifier, as policies, scans, detection and exports use it.

    All of them take latents, probabilities and covariances from here, so a policy gives an item the same
    utility by whichever way it is asked. It also travels as plain arrays.

    Args:
        predictor: X [n, D] -> Latent, or None for classifiers without latents.
        classifier: with predict_proba, or None.
        temperature: beta of softmax(beta f), or None where the model has none.

    Attributes:
        project: X [n, D] -> whitened features [n, P] of the model's inducing points, or None.
        covariance: (X [n, D], others [m, D]) -> [C, n, m] posterior covariances, or None.
        geometry: what the model took from the pool, or None.
    """

    def __init__(self, predictor: Any, classifier: Any, temperature: float | None) -> None:
        self.predictor = predictor
        self.classifier = classifier
        self.temperature = temperature
        self.project = None if classifier is None else protocols.projection_of(classifier)
        self.covariance = None if classifier is None else protocols.covariance_of(classifier)
        self.geometry = None if classifier is None else protocols.geometry_of(classifier)
        self._n_classes = 0 if classifier is None else len(classifier.classes_)

    @property
    def n_classes(self) -> int:
        """C, or 0 before the first latents of a plain function were seen."""
        return self._n_classes

    @property
    def n_features(self) -> int | None:
        """D the model was fitted on, where it says so."""
        return protocols.n_features_of(self.predictor) or protocols.n_features_of(self.classifier)

    @property
    def has_probabilities(self) -> bool:
        """True if class probabilities can be had."""
        return self.classifier is not None or self.temperature is not None

    def require_probabilities(self, policy: str) -> None:
        """Refuse a policy that needs probabilities of a model that has none.

        Raises:
            InputError: says what to give.
        """
        if not self.has_probabilities:
            raise InputError(
                f"{policy} needs class probabilities, and a bare predictor has latent functions only. "
                "Give the fitted model, or the temperature of its softmax."
            )

    def require_latent(self, policy: str) -> None:
        """Refuse a policy that needs latents of a classifier that has none.

        Raises:
            InputError: says what to use.
        """
        if self.predictor is None:
            raise InputError(
                f"{policy} needs latent functions with uncertainty, and {type(self.classifier).__name__} "
                "gives class probabilities only. Use entropy, margin or least-confident, or a Bayesian model."
            )

    def check_width(self, features: Array) -> None:
        """Refuse features the model was not fitted on.

        Raises:
            InputError: another number of columns.
        """
        width = self.n_features
        if width is not None and features.shape[1] != width:
            raise InputError(
                f"The model was fitted on {width} features and the rows have {features.shape[1]}. "
                "Give the feature map saved beside the model, or the columns to use."
            )

    def latent(self, features: Array) -> Latent | None:
        """Latent [n, C] of features [n, D], or None."""
        if self.predictor is None:
            return None
        latent = Latent(*self.predictor(features))
        self._n_classes = latent.mean.shape[1]
        return latent

    def probabilities(self, features: Array, latent: Latent | None) -> Floats:
        """[n, C] class probabilities."""
        if self.classifier is not None:
            return np.asarray(self.classifier.predict_proba(features))
        from workbench.classifiers.calibration import softmax

        self.require_probabilities("This policy")
        assert latent is not None and self.temperature is not None
        return softmax(latent.mean, self.temperature)

    def ship(self) -> Shipped:
        """The model as plain arrays.

        Raises:
            InputError: the model cannot be saved.
        """
        if self.classifier is not None:
            options = protocols.options_of(self.classifier)
            return Shipped(_target(self.classifier), options, self.classifier.get_state(), None, None)
        if protocols.supports_arrays(self.predictor):
            arrays = self.predictor.to_arrays()
            return Shipped(_target(self.predictor), None, arrays, None, self.temperature)
        return Shipped("", None, {}, self.predictor, self.temperature)


def as_scored_model(predictor: Any, temperature: float | None = None) -> ScoredModel:
    """A predictor, fitted classifier or function X -> Latent as a ScoredModel.

    Args:
        predictor: any of them.
        temperature: see `score_pool`.

    Returns:
        The model.

    Raises:
        InputError: none of them, or a temperature for a classifier.
    """
    if isinstance(predictor, ScoredModel):
        return predictor
    if protocols.is_classifier(predictor):
        if not protocols.is_fitted(predictor):
            raise InputError("The model is not fitted yet; fit it first.")
        if temperature is not None:
            raise InputError("A model has its own temperature; leave `temperature` out.")
        return ScoredModel(
            protocols.latent_function_of(predictor), predictor, protocols.temperature_of(predictor)
        )
    if not callable(predictor):
        raise InputError(f"A model is a predictor or a fitted one; got a {type(predictor).__name__}.")
    if temperature is None:
        temperature = protocols.temperature_of(predictor)
    return ScoredModel(predictor, None, temperature)


def belief_of(
    model: Any,
    features: Array,
    *,
    labelled: Ints | None = None,
    labels: Ints | None = None,
    latent: Latent | Callable[[], Latent | None] | None = None,
    latent_mean: Callable[[], Floats | None] | None = None,
    probabilities: Floats | Callable[[], Floats] | None = None,
    scaled: Array | Callable[[], Array] | None = None,
    ids: Sequence[str] | None = None,
) -> Belief:
    """Belief of a fitted classifier about rows: the one place where beliefs are made.

    Args:
        model: a fitted classifier, a predictor or a `ScoredModel`.
        features: [N, D].
        labelled: [L] indices that must not be asked; none unless given.
        labels: [L] their int codes, -1 where there is no label.
        latent: its latents, where somebody has computed them already.
        latent_mean: a function giving their means, where that is cheaper.
        probabilities: its probabilities, likewise.
        scaled: features as the model measures distances; unless given, by its geometry.
        ids: names of items for messages.

    Returns:
        The belief; what is not given is computed by the model when first asked for.
    """
    scored = as_scored_model(model)
    geometry, project, between = scored.geometry, scored.project, scored.covariance
    if latent is None and scored.predictor is not None:
        latent = lambda: scored.latent(features)  # noqa: E731
    if scaled is None and geometry is not None:
        scaled = lambda: geometry.transform(features)  # noqa: E731
    if probabilities is None and scored.has_probabilities:
        probabilities = lambda: scored.probabilities(features, belief.latent)  # noqa: E731
    closed = np.empty(0, dtype=np.int64) if labelled is None else np.asarray(labelled, dtype=np.int64)
    belief: Belief = Belief(
        features=features,
        labelled=closed,
        labels=np.full(len(closed), -1, dtype=np.int64) if labels is None else labels,
        n_classes=scored.n_classes,
        latent=latent,
        latent_mean=latent_mean,
        probabilities=probabilities,
        scaled=scaled,
        inducing_projection=None if project is None else lambda which: project(features[which]),
        covariance=None if between is None else lambda a, b: between(features[a], features[b]),
        temperature=1.0 if scored.temperature is None else scored.temperature,
        ids=ids,
    )
    return belief


def _target(thing: Any) -> str:
    return f"{type(thing).__module__}:{type(thing).__qualname__}"
