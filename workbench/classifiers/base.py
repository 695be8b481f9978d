"""Base of every classifier here: labels, classes given up front, validation, state."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import calibration as cal
from workbench.classifiers import guess_weights
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.classifiers.options import check_options, estimator, fitted
from workbench.errors import InputError
from workbench.progress import FitCallback

_PARAMETERS: dict[type, list[str]] = {}
_TOLD = (
    "objective_",
    "objective_trace_",
    "n_iter_",
    "mean_weights_",
    "mean_weighed_",
    "measured_rows_",
    "power_",
)
OUTGROWN = 2  # times the rows that a geometry was measured on: a warm start begins anew
_FREE = ("classes", "warm_start", "random_state")  # what may change between two fits of one warm model
_BASE_KEYS = ("classes_", "classes_object", "n_features_in_", "n_rows_")


class FitInputs(NamedTuple):
    """Arguments of a fit beside its rows and their codes.

    Attributes:
        sources: [J, N, C] guesses at the rows, or None.
        leader: model whose geometry and kernel are taken; the draft itself where it chooses for others; None
            where it is fitted alone.
    """

    sources: Floats | None = None
    leader: Any = None


@estimator
class BaseBayesianClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier with classes known up front and a state of plain arrays.

    A subclass is an `@estimator` that declares its options (`workbench.classifiers.options`; they
    are checked before it is called) and implements:

    * `_fit_codes(X, codes, callback)`: fit on validated X [N, D] (N >= 1) and codes [N] in
      0..C-1 (C >= 2; not every class need occur); sets `objective_`, `objective_trace_`,
      `n_iter_` where they mean something.
    * `_probabilities(X)`: [N, C], rows summing to 1.
    * `_latent(X)`: Latent [N, C], where the model has latents (and `has_latent = True`).
    * `_state()` and `_set_state(state)`: its own part of `get_state`/`set_state`. By default
      both walk `_state_names`, attributes that are arrays or numbers, and `geometry_`.

    A fit is a value. `fit` works on a draft, an estimator of the same class with its own copy of the
    options and, on a warm start, the former fit's attributes; when it is whole it is published at once.
    Everything that predicts, the latent functions and `get_state` take that value once and read nothing
    else: an interrupted fit leaves the old model whole, options that are set later count for the next fit,
    and a thread that predicts while another fits sees one fit or the other. Fitted attributes are read
    through it.

    It is never called with no rows or with a single class: this class answers those itself.
    Helpers for it: `_numpy_dtype()`, `_seed()`, `_resolve_geometry(...)`, `_warm()`.
    """

    has_latent: ClassVar[bool] = False
    binary_only: ClassVar[bool] = False
    takes_mean: ClassVar[bool] = False
    _state_names: ClassVar[tuple[str, ...]] = ()
    _transient_names: ClassVar[tuple[str, ...]] = ("_gpflow_model",)

    classes: Any = None
    random_state: Any = None

    classes_: Array = fitted()
    n_features_in_: int = fitted()
    mean_weights_: Floats = fitted()
    mean_weighed_: int = fitted()
    measured_rows_: int = fitted()
    power_: float = fitted()
    _most_power: ClassVar[float] = np.inf
    _guess_scale: ClassVar[float] = 1.0  # of its margins, beside the large-margin model's
    _inputs = FitInputs()  # of a draft

    # ------------------------------------------------------------------ for subclasses to write

    @abstractmethod
    def _fit_codes(self, X: Floats, codes: Ints, callback: FitCallback | None) -> None: ...

    @abstractmethod
    def _probabilities(self, X: Floats) -> Floats: ...

    def _latent(self, X: Floats) -> Latent:
        raise NotImplementedError

    def _probabilities_with(self, X: Floats, mean: Floats) -> Floats:
        """As `_probabilities`, with the guess's mean [N, C] added to the latents; where `takes_mean`."""
        raise NotImplementedError

    def _prior_beta(self) -> float:
        """Temperature of a guess that no label has spoken about."""
        return 1.0

    def _prior_variance(self) -> float:
        """Latent variance where nothing was seen."""
        return float(getattr(self, "variance", None) or 1.0)

    def _state(self) -> dict[str, Array]:
        return {name: np.asarray(getattr(self, name)) for name in self._state_names}

    def _set_state(self, state: Mapping[str, Array]) -> None:
        self._require(self._state_names, state)
        self._take(self._state_names, state)

    def _require(self, names: Iterable[str], state: Mapping[str, Array]) -> None:
        """Refuse a state that lacks some of these arrays."""
        missing = [name for name in names if name not in state]
        if missing:
            raise InputError(f"This is not a saved {type(self).__name__}: it lacks {', '.join(missing)}.")

    def _take(self, names: tuple[str, ...], state: Mapping[str, Array]) -> None:
        for name in names:
            if name in state:
                value = np.asarray(state[name])
                setattr(self, name, value.item() if value.ndim == 0 else value)

    def _left_out(self, X: Floats, codes: Ints, rows: Ints) -> Floats | None:
        """Own probabilities [n, C] of some rows as if each had not been there; None where it has none."""
        return None

    def _sharpened(self, p: Floats) -> Floats:
        """Own probabilities [n, C] to the power that the labels left out ask for."""
        return cal.powered(p, self.power_)

    # ------------------------------------------------------------------ scikit-learn's verbs

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at every call, and a round sets up two estimators
        if cls not in _PARAMETERS:
            _PARAMETERS[cls] = super()._get_param_names()
        return list(_PARAMETERS[cls])

    def fit(self, X: Any, y: Any, callback: FitCallback | None = None, mean: Any = None) -> Self:
        """Fit.

        Args:
            X: [N, D] finite features. With `classes=` given, N may be 0.
            y: [N] labels, of any type scikit-learn accepts as classes.
            callback: called now and then with (fraction, objective); returning True stops the
                fit, which then keeps its best state.
            mean: [N, C] a guess at the rows, or [J, N, C] several: the prior mean of the latents is
                sum_j a_j mean_j, columns in the order of `classes_` (sorted). The weights a_j >= 0 are
                chosen from the labels (`mean_weights_`). Give standardised guesses
                (`workbench.guesses.standardised`). Only where `takes_mean`.

        Returns:
            self.

        Raises:
            InputError: labels outside `classes`, or options that do not fit together.
            ValueError: what scikit-learn's validation refuses.
        """
        check_options(self)
        self._publish(self._draft()._fitted_to(X, y, callback, mean, self.__dict__.get("_fit")))
        return self

    def _fitted_to(
        self, X: Any, y: Any, callback: FitCallback | None, mean: Any, former: Self | None
    ) -> Self:
        """The draft, fitted; arguments as in `fit`, and the fit that was there before."""
        draft = self
        class_list = None if draft.classes is None else _as_classes(draft.classes)
        empty_ok = class_list is not None
        if mean is not None and not self.takes_mean:
            raise InputError(_NO_MEAN.format(type(self).__name__))
        if isinstance(draft.random_state, (int, np.integer)) and draft.random_state < 0:
            raise InputError(f"random_state must be None or at least 0; got {draft.random_state}.")
        check_labels(y)
        if empty_ok and y is not None and len(y) == 0:
            X = draft._validated(X, ensure_min_samples=0)
            codes: Ints = np.empty(0, dtype=np.int64)
            classes = class_list
        else:
            X, y = draft._validated(X, y)
            if y.dtype.kind not in "iub":  # whole numbers are classes, and asking costs half a millisecond
                check_classification_targets(y)
            classes, codes = _encode(np.asarray(y), class_list)
        assert classes is not None
        if self.binary_only and len(classes) > 2:
            raise InputError(
                f"{type(self).__name__}: only binary classification is supported; got "
                f"{len(classes)} classes. Use a model for several classes."
            )
        draft.classes_ = np.array(classes)
        draft.n_rows_ = len(codes)
        if mean is not None:
            sources = _sources(mean, len(codes), len(classes))
            draft._inputs = draft._inputs._replace(sources=sources)
        if draft._trivial():
            if draft._inputs.sources is not None:
                draft.mean_weights_ = draft._prior_weights(len(draft._inputs.sources))
            draft.objective_trace_ = np.zeros(0)
            draft.objective_ = 0.0
            draft.n_iter_ = 1
        else:
            if former is not None and former._leads_to(draft):
                draft._previous_classes = former.classes_
                attributes = former._fitted()
                draft.__dict__ |= {
                    name: attributes[name] for name in attributes if name not in draft.__dict__
                }
            draft._fit_codes(X, codes, callback)
            if not np.isfinite(getattr(draft, "objective_", 0.0)):
                raise InputError(
                    f"The fit of {type(self).__name__} ended in an objective that is no number "
                    f"({draft.objective_}). Take dtype='float64', a smaller variance or learning rate."
                )
            n = len(codes)
            rng = np.random.default_rng([draft._draw, 2])
            rows = np.sort(rng.choice(n, min(n, cal.SAMPLE), replace=False))
            p = None if getattr(draft, "calibration", None) is None else draft._left_out(X, codes, rows)
            draft.power_ = 1.0 if p is None else min(draft._most_power, cal.own_power(p, codes, rows))
        return draft

    def _draft(self) -> Self:
        """Draft of a fit: the options of now, kernels of one's own as they are now, and no fit."""
        draft = object.__new__(type(self))
        draft.__dict__.update({name: getattr(self, name) for name in self._get_param_names()})
        kernel = draft.__dict__.get("kernel")
        if kernel is not None and not isinstance(kernel, str):
            from workbench.engine.kernels import as_kernel

            draft.__dict__["kernel"] = as_kernel(kernel)
        draft._previous_classes = None
        return draft

    def _fitted(self) -> dict[str, Any]:
        """Attributes of a draft that its fit left behind."""
        others = {*self._transient_names, "_inputs", "_previous_classes", "feature_names_in_"}
        options = others.union(self._get_param_names())
        return {name: value for name, value in self.__dict__.items() if name not in options}

    def _leads_to(self, draft: Self) -> bool:
        """True where a warm start of the draft may go on from this fit.

        It must be the same model of the same columns, and its geometry the pool's, or measured on a good part
        of the labels that there are now.
        """
        if self._trivial() or not getattr(draft, "warm_start", False):
            return False
        if self.n_features_in_ != draft.n_features_in_:
            return False
        if draft.n_rows_ >= OUTGROWN * self.__dict__.get("measured_rows_", np.inf):
            return False
        names = [name for name in self._get_param_names() if name not in _FREE]
        return all(same_value(self.__dict__[name], draft.__dict__[name]) for name in names)

    def _publish(self, draft: Self) -> None:
        """Become the fitted model that the draft is, by one assignment: readers see the old fit or this."""
        draft._inputs = FitInputs()  # of the rows, not of the fit
        draft._previous_classes = None
        self.__dict__["_fit"] = draft

    def __getattr__(self, name: str) -> Any:
        # what a fit left behind is read through it
        fit = None if name.startswith("_") else self.__dict__.get("_fit")
        if fit is not None and name in fit.__dict__:
            return fit.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "classes_" in self._value().__dict__

    def predict(self, X: Any, mean: Any = None) -> Array:
        """[N] the most probable class of each row of X [N, D]; `mean` as in `predict_proba`."""
        fit = self._value()
        probabilities = fit.predict_proba(X) if mean is None else fit.predict_proba(X, mean=mean)
        return fit.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Any, mean: Any = None) -> Floats:
        """Class probabilities.

        Args:
            X: [N, D].
            mean: [N, C] or [J, N, C] the same guesses at these rows that the fit was given; a row of
                zeros, or none at all, leaves the guess out.

        Returns:
            [N, C], columns as in `classes_`. Without any labels they are those of the guess, or uniform.

        Raises:
            InputError: a guess that the fit did not have.
        """
        fit = self._value()
        X = fit._checked(X)
        n_classes = len(fit.classes_)
        m = fit._mean_at(mean, len(X))
        if m is not None and n_classes > 1:
            if not fit._trivial():
                return fit._sharpened(fit._probabilities_with(X, m))
            scores = np.exp(fit._prior_beta() * (m - m.max(axis=1, keepdims=True)))
            return scores / scores.sum(axis=1, keepdims=True)
        if fit._trivial():
            return np.full((len(X), n_classes), 1.0 / n_classes)
        return fit._sharpened(fit._probabilities(X))

    def predict_latent(self, X: Any, mean: Any = None) -> Latent:
        """q(f(x)) for X [N, D]; `mean` as in `predict_proba`.

        Returns:
            Latent with mean and variance [N, C].

        Raises:
            InputError: the model has no latent functions.
        """
        if not self.has_latent:
            raise InputError(f"{type(self).__name__} has no latent functions; ask for predict_proba.")
        fit = self._value()
        X = fit._checked(X)
        m = fit._mean_at(mean, len(X))
        if fit._trivial():
            shape = (len(X), len(fit.classes_))
            return Latent(np.zeros(shape) if m is None else m, np.full(shape, fit._prior_variance()))
        latent = fit._latent(X)
        return latent if m is None else Latent(latent.mean + m, latent.variance)

    # ------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Array]:
        """Everything needed to predict and to start warm: plain arrays, nothing pickled.

        Returns:
            name -> array; `set_state` on an unfitted clone makes it equal to this one.
        """
        fit = self._value()
        check_is_fitted(fit)
        return fit._whole_state()

    def _whole_state(self) -> dict[str, Array]:
        classes = np.asarray(self.classes_)
        state: dict[str, Array] = {
            "classes_": _plain(classes),
            "classes_object": np.asarray(classes.dtype == object),
            "n_features_in_": np.asarray(self.n_features_in_),
            "n_rows_": np.asarray(self.n_rows_),
        }
        if hasattr(self, "feature_names_in_"):
            state["feature_names_in_"] = np.asarray(self.feature_names_in_, dtype=np.str_)
        for name in _TOLD:
            if hasattr(self, name):
                state[name] = np.asarray(getattr(self, name))
        if self._trivial():
            return state
        geometry = getattr(self, "geometry_", None)
        if geometry is not None:
            state |= {f"geometry.{key}": value for key, value in geometry.to_arrays().items()}
        return state | self._state()

    def set_state(self, state: Mapping[str, Array]) -> Self:
        """Become the fitted model whose `get_state` this is.

        Args:
            state: from `get_state` of an estimator with the same options.

        Returns:
            self.

        Raises:
            InputError: arrays are missing.
        """
        self._require(_BASE_KEYS, state)
        draft = self._draft()
        classes = np.array(state["classes_"])
        draft.classes_ = classes.astype(object) if bool(state["classes_object"]) else classes
        draft.n_features_in_ = int(state["n_features_in_"])
        draft.n_rows_ = int(state["n_rows_"])
        if "feature_names_in_" in state:
            draft.feature_names_in_ = np.asarray(state["feature_names_in_"]).astype(object)
        draft.power_ = 1.0  # of a fit that has only begun
        draft._take(_TOLD, state)
        if not draft._trivial():
            try:
                geometry = Geometry.of_state(state)
                if geometry is not None:
                    draft.geometry_ = geometry
                draft._set_state(state)
            except KeyError as error:
                self._require(error.args, {})
        self._publish(draft)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # GPflow modules are rebuilt from the state when asked for; they need not travel
        state = dict(super().__getstate__())
        for name in self._transient_names:
            state.pop(name, None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.binary_only:
            tags.classifier_tags.multi_class = False
        return tags

    # ------------------------------------------------------------------ helpers

    def _value(self) -> Self:
        """The fit; within a fit, the draft itself."""
        return self.__dict__.get("_fit", self)

    def _mean_at(self, mean: Any, n: int) -> Floats | None:
        """[n, C] the weighted guess at n rows, or None where none was given."""
        if mean is None:
            return None
        weights = self.__dict__.get("mean_weights_")
        if weights is None:
            raise InputError("This model was fitted without a guess; give `mean=` to `fit` as well.")
        sources = _sources(mean, n, len(self.classes_))
        if len(sources) != len(weights):
            raise InputError(f"This model knows {len(weights)} guesses and mean holds {len(sources)}.")
        return np.tensordot(weights, sources, axes=1)

    def _prior_weights(self, n_sources: int) -> Floats:
        """[J] weights of guesses that no label has spoken about."""
        return np.full(n_sources, self._prior_weight())

    def _prior_weight(self) -> float:
        return self._guess_scale * guess_weights.prior_weight(len(self.classes_))

    def _choose_weights(self, n: int, centre: float, judge: Callable[[Any, Floats], cal.LeftOut]) -> None:
        """Choose the weights of the guesses, if there are some and it is time to (math.md, 13).

        Args:
            n: rows of the fit.
            centre: of the prior on log beta.
            judge: (rows, weights [J]) -> how well fits to some of the rows predict the others.
        """
        sources = self._inputs.sources
        if sources is None:
            self.__dict__.pop("mean_weights_", None)
            self.__dict__.pop("mean_weighed_", None)
            return
        if self._weights_of(sources) is None:
            self.mean_weights_, self.mean_weighed_ = self._prior_weights(len(sources)), 0
        last = int(self.__dict__.get("mean_weighed_", 0))
        if not guess_weights.due(n, last):
            return
        rows: Any = slice(None)
        max_rows = max(guess_weights.ENTRIES // len(self.classes_), guess_weights.FOLDS)
        if n > max_rows:
            rows = np.sort(np.random.default_rng([self._draw, 5]).choice(n, max_rows, replace=False))
        start = self._prior_weights(len(sources)) if last == 0 else self.mean_weights_
        self.mean_weights_ = guess_weights.weigh(
            lambda weights: judge(rows, weights), start, self._prior_weight(), centre
        )
        self.mean_weighed_ = n

    def _weights_of(self, sources: Floats) -> Floats | None:
        """[J] weights chosen for as many guesses, or None."""
        weights = self.__dict__.get("mean_weights_")
        return None if weights is None or len(weights) != len(sources) else weights

    def _offset(self, rows: Any = slice(None), weights: Floats | None = None) -> Floats | None:
        """[n, C] the guess's mean at rows of the data, or None where no guess was given."""
        sources = self._inputs.sources
        if sources is None:
            return None
        if weights is None:
            weights = self._weights_of(sources)
        if weights is None:
            weights = self._prior_weights(len(sources))
        return np.tensordot(weights, sources[:, rows], axes=1).astype(self._numpy_dtype(), copy=False)

    @property
    def _draw(self) -> int:
        """Seed of everything drawn in a fit; a constant where none was given, so fits repeat."""
        state = self.random_state
        return int(state) if isinstance(state, (int, np.integer)) else 0

    def _trivial(self) -> bool:
        """Nothing to learn: no rows, or a single possible class."""
        return self.n_rows_ == 0 or len(self.classes_) < 2

    def _checked(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, *y: Any, **options: Any) -> Any:
        """scikit-learn's validation, with a sentence of ours for what is not finite."""
        with np.errstate(over="ignore"):  # a number beyond float32 is refused below
            data = validate_data(self, X, *y, dtype=self._numpy_dtype(), ensure_all_finite=False, **options)
        check_finite(data[0] if y else data, getattr(self, "feature_names_in_", None))
        return data

    def _numpy_dtype(self) -> type[np.float32] | type[np.float64]:
        dtype = np.dtype(getattr(self, "dtype", None) or np.float64)
        if dtype == np.float64:
            return np.float64
        if dtype == np.float32:
            return np.float32
        raise InputError(f"dtype must be 'float64' or 'float32'; got {getattr(self, 'dtype', None)!r}.")

    def _seed(self) -> int:
        """An integer for NumPy generators; the same for the same integer `random_state`."""
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _warm(self) -> bool:
        """True if this fit should continue from the present state (its classes may differ)."""
        return bool(getattr(self, "warm_start", False)) and self._previous_classes is not None

    def _given_geometry(self, X: Floats) -> Geometry | None:
        """The option `geometry`, which must be of X's features."""
        geometry: Geometry | None = getattr(self, "geometry", None)
        if geometry is not None and geometry.n_features != X.shape[1]:
            raise InputError(f"The geometry is for {geometry.n_features} features and X has {X.shape[1]}.")
        return geometry

    def _resolve_geometry(self, X: Floats, n_inducing: int, *, method: str = "k-means++") -> Geometry:
        """The geometry given, else the present one on a warm start, else one measured on X.

        Args:
            X: [N, D] raw features.
            n_inducing: P, if one is measured.
            method: "k-means++" or "random", if one is measured.

        Returns:
            The geometry, also stored as `geometry_`.

        Raises:
            InputError: the given geometry has another number of features.
        """
        geometry, present = self._given_geometry(X), getattr(self, "geometry_", None)
        if geometry is not None:
            self.geometry_ = geometry
        elif not (self._warm() and present is not None and present.n_features == X.shape[1]):
            self.geometry_ = Geometry.of(X, n_inducing, self._seed(), method=method)
            self.measured_rows_ = len(X)
        return self.geometry_


_NO_MEAN = (
    "{} cannot start from a guess (`mean=`) with these options. Use large-margin, or leave the guess out."
)


def _sources(mean: Any, n: int, n_classes: int) -> Floats:
    """Guesses [J, n, C] from one [n, C] or several."""
    guesses: Floats = np.asarray(mean, dtype=np.float64)
    guesses = guesses[None] if guesses.ndim == 2 else guesses
    if guesses.ndim != 3 or guesses.shape[1:] != (n, n_classes):
        raise InputError(
            f"mean must have the shape [{n}, {n_classes}] or [J, {n}, {n_classes}]: the rows of X and the "
            f"classes; "
            f"got {list(np.shape(mean))}."
        )
    if not np.isfinite(guesses).all():
        raise InputError("mean holds numbers that are not finite; a row without a guess is a row of zeros.")
    return guesses


def same_value(one: Any, other: Any) -> bool:
    """True if two options are the same: numbers, texts, arrays, geometries, kernels.

    Args:
        one: an option's value.
        other: another.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same_value(one[k], other[k]) for k in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if hasattr(one, "__dataclass_fields__"):
        return same_value(vars(one), vars(other))
    return bool(one == other)


def check_labels(y: Any) -> None:
    """Refuse rows without a label.

    Args:
        y: labels as a user gives them.

    Raises:
        InputError: names the rows and says what to do.
    """
    labels = np.asarray(y) if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return
    missing = [row for row, label in enumerate(labels.tolist()) if _is_missing(label)]
    if missing:
        rows = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise InputError(
            f"y contains NaN or None: {len(missing)} of {len(labels)} rows have no label "
            f"(row {rows}, from 0). Fit on the others: known = pandas.notna(y); fit(X[known], y[known])."
        )


def _is_missing(label: Any) -> bool:
    """None, NaN, NaT or pandas.NA, which is equal to nothing, not even to itself."""
    if isinstance(label, str):
        return False
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label


def check_finite(X: Floats, names: Array | None = None) -> None:
    """Refuse features that are not finite.

    Args:
        X: [N, D].
        names: [D] of the columns, for the message.

    Raises:
        InputError: names the first place and says what to do.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()) or np.isfinite(X).all():  # the sum alone is quick, and may overflow
            return
    row, column = np.argwhere(~np.isfinite(X))[0]
    where = f"column {column}" if names is None else f"column {str(names[column])!r}"
    kind = "NaN (a missing value)" if np.isnan(X[row, column]) else f"inf (infinity, or beyond {X.dtype})"
    raise InputError(
        f"Input X contains {kind} in row {row}, {where}. Fill it in (sklearn.impute.SimpleImputer) or leave "
        "the row or the column out."
    )


def _as_classes(classes: Any) -> Array:
    labels = np.array(classes)
    if labels.ndim != 1 or labels.size == 0:
        raise InputError("classes must be a non-empty list of labels.")
    if labels.dtype == object and not all(isinstance(label, str) for label in labels):
        raise InputError("classes must be all numbers or all strings.")
    values, counts = np.unique(labels, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"classes names {values[counts > 1][0]!r} more than once.")
    return values


def _encode(y: Array, class_list: Array | None) -> tuple[Array, Ints]:
    if class_list is None:
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes.reshape(-1).astype(np.int64)
    code_of = {label: code for code, label in enumerate(class_list.tolist())}
    labels = y.tolist()
    unknown = sorted({str(label) for label in labels if label not in code_of})
    if unknown:
        raise InputError(
            f"y holds labels that are not among the given classes: {', '.join(unknown[:5])}"
            f"{', ...' if len(unknown) > 5 else ''}. Known classes: {', '.join(map(str, class_list[:20]))}."
        )
    return class_list, np.fromiter((code_of[label] for label in labels), np.int64, len(labels))


def _plain(classes: Array) -> Array:
    if classes.dtype != object:
        return classes
    if not all(isinstance(label, str) for label in classes):
        raise InputError("Only classes that are all numbers or all strings can be saved.")
    return classes.astype(np.str_)
