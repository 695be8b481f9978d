"""Required and optional parts of a classifier.

The loop, policies, studies and pages ask these questions here and nowhere else, so that a model of
somebody else's, or of a later day, can do what it has the methods for: a `supports_...` says that it has
the methods of a protocol, a `..._of` gives what a fit may leave behind, or None. A `warm_start` option makes
`fit` go on from the present state. Nothing heavy is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeGuard

from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.progress import FitCallback

if TYPE_CHECKING:
    from workbench.arrays import Array, Floats, Ints


class Classifier(Protocol):
    """Required part of every classifier: scikit-learn's contract.

    Attributes:
        classes_: [C] labels, in the order of the columns; there once fitted.
    """

    classes_: Array

    def fit(self, X: Array, y: Array) -> Any:
        """Learn from X [N, D] and labels y [N]."""

    def predict(self, X: Array) -> Array:
        """[N] labels."""

    def predict_proba(self, X: Array) -> Floats:
        """[N, C] class probabilities."""


class SupportsLatent(Classifier, Protocol):
    """Latent functions with uncertainty; `has_latent = False` takes the promise back."""

    def predict_latent(self, X: Array) -> Latent:
        """q(f) at X [N, D]."""


class SupportsState(Classifier, Protocol):
    """A fit that is plain arrays: it can be saved, sent away and gone on from."""

    def get_state(self) -> dict[str, Array]:
        """Everything needed to predict and to start warm."""

    def set_state(self, state: Mapping[str, Array]) -> Self:
        """Become the fitted model whose state this is."""


class SupportsCallback(Classifier, Protocol):
    """A fit that reports and can be stopped."""

    def fit(self, X: Array, y: Array, callback: FitCallback | None = None) -> Any:
        """Fit; `callback(fraction, objective)` returning True stops it."""


class SupportsMean(Classifier, Protocol):
    """Latents with a prior mean a row: `fit`, `predict*` take `mean=` [N, C] or [J, N, C], and weigh it.

    Attributes:
        takes_mean: True.
        mean_weights_: [J] weights of the guesses; there once fitted with some.
    """

    takes_mean: ClassVar[bool]
    mean_weights_: Floats

    def fit(self, X: Array, y: Array, callback: FitCallback | None = None, mean: Any = None) -> Any:
        """Fit with guesses at the rows."""


class SupportsMeasuring(Classifier, Protocol):
    """An estimator that decides itself what it takes from a pool."""

    def measure(self, features: Array, *, seed: int, common_scale: bool) -> Geometry:
        """The geometry of the pool's trainable rows [N, D]."""


class LeaveOneOutScores(NamedTuple):
    """Score of labels on other features under a model.

    Attributes:
        log_likelihood: [n] log probability of each row's label without it.
        begun: makes the state from which a fit on these features goes on, what was chosen of the kernel
            included; None where nothing was chosen yet.
        carried: what a fit of the same rows on other features starts from, or None.
    """

    log_likelihood: Floats
    begun: Callable[[], dict[str, Array]] | None
    carried: Any = None


class SupportsLeaveOneOut(Classifier, Protocol):
    """Says how well it would predict labels left out on other features, and stays as it is."""

    def leave_one_out(
        self,
        X: Array,
        codes: Ints,
        geometry: Geometry,
        mean: Floats | None = None,
        as_new: Array | None = None,
        beside: LeaveOneOutScores | None = None,
    ) -> LeaveOneOutScores:
        """On features X [n, D] with their geometry, classes codes [n] and guesses [J, n, C].

        Each is judged by `as_new` [n, D], what it would be had it come later, where that is given. `beside`,
        of the same rows on other features, is a start.
        """


class SupportsSharing(Classifier, Protocol):
    """Fits as one of several models of the same features that share what was chosen of these."""

    def fit_beside(
        self,
        X: Array,
        codes: Ints,
        leader: Any,
        callback: FitCallback | None = None,
        mean: Floats | None = None,
    ) -> Any:
        """On features X [n, D] as the fitted leader sees them; None chooses for all."""


class Chosen(Protocol):
    """The last choice; its text says what the model sees."""

    @property
    def labels(self) -> int:
        """Number of labels at that time."""

    @property
    def own(self) -> bool:
        """True if it is of use to nobody but the labels it was chosen by."""


class LeaveOneOut(Protocol):
    """Left-out predictions: which rows, and how probable their own labels are without them.

    Attributes:
        rows: [n] positions among the rows of the fit; a sample where there are many.
        means: [n, C] latent means of these rows without their own labels.
        log_likelihood: [n] log probability of each row's label.
    """

    rows: Ints
    means: Floats
    log_likelihood: Floats


class LatentFunction(Protocol):
    """Predictor that a model leaves behind for scoring: X [N, D] -> Latent, without an engine."""

    def __call__(self, X: Array) -> Latent:
        """q(f) at X."""


class SupportsArrays(LatentFunction, Protocol):
    """A latent function that travels as plain arrays."""

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """The function that `to_arrays` took apart."""


class SupportsNetwork(Classifier, Protocol):
    """A network that attacks and feature maps can look into."""

    network_: str
    input_shape_: tuple[int, ...]
    weights_: tuple[Array, ...]
    has_latent: ClassVar[bool]


def _has(thing: Any, *names: str) -> bool:
    return all(hasattr(thing, name) for name in names)


def is_classifier(model: Any) -> TypeGuard[Classifier]:
    """True if it can be fitted and gives class probabilities."""
    return _has(model, "fit", "predict_proba")


def is_fitted(model: Any) -> TypeGuard[Classifier]:
    """True if a classifier knows its classes."""
    return _has(model, "predict_proba", "classes_")


def has_learnt(model: Any) -> bool:
    """True if a fitted classifier saw a label, and has two classes to tell apart."""
    return len(model.classes_) > 1 and getattr(model, "n_rows_", 1) > 0


NO_GUESS = "{!r} cannot start from a guess. Use the large-margin GP, or leave the guess out."
"""What whoever wants to begin with a guess is told, with the name of a classifier that cannot."""


def supports_mean(model: Any) -> TypeGuard[SupportsMean]:
    """True if it can start from a guess: a prior mean of its latents, a value a row."""
    return bool(getattr(model, "takes_mean", False))


def mean_weights_of(model: Any) -> Floats | None:
    """[J] weights of the guesses a fit was given, as `mean_weights_`; None where it had none."""
    return getattr(model, "mean_weights_", None)


def supports_latent(model: Any) -> TypeGuard[SupportsLatent]:
    """True if it has latent functions with uncertainty."""
    return _has(model, "predict_latent") and bool(getattr(model, "has_latent", True))


def supports_state(model: Any) -> TypeGuard[SupportsState]:
    """True if its fit is plain arrays."""
    return _has(model, "get_state", "set_state")


def supports_arrays(function: Any) -> TypeGuard[SupportsArrays]:
    """True if a latent function travels as plain arrays."""
    return _has(function, "to_arrays") and _has(type(function), "from_arrays")


def supports_measuring(estimator: Any) -> TypeGuard[SupportsMeasuring]:
    """True if it decides itself what it takes from a pool."""
    return _has(estimator, "measure")


def supports_leave_one_out(estimator: Any) -> TypeGuard[SupportsLeaveOneOut]:
    """True if features of several kinds can be compared by what it leaves out."""
    return _has(estimator, "leave_one_out")


def supports_sharing(estimator: Any) -> TypeGuard[SupportsSharing]:
    """True if several of its kind can share what is chosen of the features."""
    return _has(estimator, "fit_beside")


def supports_network(model: Any) -> TypeGuard[SupportsNetwork]:
    """True if it has a network to look into."""
    return _has(model, "network_", "weights_")


def supports_callback(estimator: Any) -> TypeGuard[SupportsCallback]:
    """True if its fit reports and can be stopped."""
    return "callback" in inspect.signature(estimator.fit).parameters


def predictor_of(model: Any) -> LatentFunction | None:
    """Predictor for scoring without an engine, as `predictor_`; None where a fit leaves nothing."""
    return getattr(model, "predictor_", None)


def latent_function_of(model: Any) -> LatentFunction | None:
    """The quickest way from features to latents: the predictor, `predict_latent`, or None."""
    return (predictor_of(model) or model.predict_latent) if supports_latent(model) else None


def projection_of(model: Any) -> Callable[[Array], Floats] | None:
    """`project` of the model's predictor, X [N, D] -> whitened features [N, P]; None where it has none."""
    return getattr(predictor_of(model), "project", None)


def covariance_of(model: Any) -> Callable[[Array, Array], Floats] | None:
    """`covariance` of the model's predictor, (X [n, D], others [m, D]) -> [C, n, m]; or None."""
    return getattr(predictor_of(model), "covariance", None)


def geometry_of(model: Any) -> Geometry | None:
    """Geometry that a fitted model took from the pool, as `geometry_`; or None."""
    return getattr(model, "geometry_", None)


def left_out_of(model: Any) -> LeaveOneOut | None:
    """Left-out predictions of a fit for its own rows without their labels, as `left_out_`; or None."""
    return getattr(model, "left_out_", None)


def choice_of(model: Any) -> Chosen | None:
    """Features that a model last chose, as `choice_`; None where it has not chosen."""
    return getattr(model, "choice_", None)


def temperature_of(model: Any) -> float | None:
    """`beta_` of softmax(beta_ f), or None where probabilities come about another way."""
    temperature = getattr(model, "beta_", getattr(model, "temperature", None) if callable(model) else None)
    return None if temperature is None else float(temperature)


def n_features_of(model: Any) -> int | None:
    """D of the rows that a classifier or a predictor takes, where it says so."""
    return getattr(model, "n_features_in_", getattr(model, "n_features", None))


def options_of(estimator: Any) -> dict[str, Any]:
    """Constructor options by name."""
    return dict(estimator.get_params(deep=False))


def fit(
    estimator: Any, X: Array, y: Array, callback: FitCallback | None = None, mean: Floats | None = None
) -> Any:
    """Fit, reporting where the estimator does; with a guess [N, C] or [J, N, C] where one is given."""
    if mean is not None:
        return estimator.fit(X, y, callback=callback, mean=mean)
    if callback is not None and supports_callback(estimator):
        return estimator.fit(X, y, callback=callback)
    return estimator.fit(X, y)
