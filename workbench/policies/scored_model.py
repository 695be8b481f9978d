"""One object for what is computed of a fitted model: latents, probabilities, temperature, covariances.

`belief_of`, scans, detection and exports take all of them from here, so a policy gives an item the same
utility by whichever way it is asked. It also travels as plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.classifiers import protocols
from workbench.classifiers.latent import Latent
from workbench.errors import InputError
from workbench.policies.belief import Belief

if TYPE_CHECKING:
    from workbench.arrays import Array, Floats, Ints


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
