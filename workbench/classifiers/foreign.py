"""Any scikit-learn classifier behind the contract of the others: classes known up front, a plain state."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.baselines import Baseline
from workbench.classifiers.geometry import prefixed, within
from workbench.classifiers.protocols import is_classifier, options_of, supports_state
from workbench.errors import InputError
from workbench.metrics.checks import check_sums
from workbench.reading import cut, reason

CHECKED_ROWS = 8  # whose probabilities are saved, to see that a model fitted again is the same one


class ForeignClassifier(Baseline):
    """A scikit-learn classifier as one of ours.

    Its columns are all of `classes`, also those without a label yet. Its state is what the fit left
    behind as arrays, numbers and texts; an estimator that keeps anything else (trees, a pipeline) is
    saved as its labelled rows and fitted again where it is needed, see `unsaved_`.

    Args:
        estimator: unfitted, with `fit` and `predict_proba`.
        classes: labels known up front, sorted in the columns; None takes those of y.
        random_state: passed on, if the estimator has the option and it is None.

    Attributes:
        classes_: [C] labels.
        estimator_: fitted on the codes of the classes that have labels.
        unsaved_: "" or a sentence: which attributes are no plain arrays, and what is saved instead.
    """

    geometry = None

    def __init__(self, estimator: Any, *, classes: Any = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.classes = classes
        self.random_state = random_state

    def _fresh(self) -> Any:
        estimator = clone(self.estimator)
        if "random_state" in (options := options_of(estimator)) and options["random_state"] is None:
            estimator.set_params(random_state=self.seed_ % 2**32)
        return estimator

    def _scale_of(self, X: Floats) -> None:
        return  # features reach somebody else's model as they are

    def _scaled(self, X: Floats) -> Floats:
        return X

    def _fit_present(self, scaled: Floats, codes: Ints) -> None:
        with self._explaining("fit"):
            self.estimator_ = self._fresh().fit(scaled, codes)

    def _predict_present(self, scaled: Floats) -> Floats:
        with self._explaining("predict"):
            p = np.asarray(self.estimator_.predict_proba(scaled), dtype=np.float64)
        return np.maximum(check_sums(p), 1e-15)

    @contextmanager
    def _explaining(self, act: str) -> Iterator[None]:
        """Say whose error it is: somebody else's model may fail for reasons of its own."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{type(self.estimator).__name__} could not {act}: {reason(error).rstrip('.')}. Change "
                "its options, or take another classifier."
            ) from error

    def _attributes(self) -> dict[str, Any]:
        """Attributes that the fit added to the estimator."""
        if len(self.present_) < 2:
            return {}
        options = options_of(self.estimator_)
        return {name: value for name, value in vars(self.estimator_).items() if name not in options}

    @property
    def unsaved_(self) -> str:
        """Attributes that cannot be saved as plain arrays, and what is saved instead; "" for none."""
        odd = [f"{k} ({type(v).__name__})" for k, v in self._attributes().items() if not _plain(v)]
        if any("__" in name for name in self.estimator.get_params()):  # a pipeline fits what it was given
            options = options_of(self.estimator).items()
            odd += [f"{k} ({type(v).__name__})" for k, v in options if not _plain(v)]
        if not odd:
            return ""
        return (
            f"{type(self.estimator).__name__} keeps {', '.join(odd)}, which are no plain arrays: its "
            "labelled rows are saved instead, and it is fitted again on them when it is loaded."
        )

    def _state(self) -> dict[str, Array]:
        state = {"codes_": self.codes_, "seed_": np.asarray(self.seed_)}
        if self.unsaved_:
            rows = self.X_[:CHECKED_ROWS]
            checked = self._probabilities(self._scaled(rows))
            return state | {"X_": self.X_, "checked": checked, "note": np.asarray(self.unsaved_)}
        attributes = self._attributes()
        arrays = prefixed("array", {k: v for k, v in attributes.items() if isinstance(v, np.ndarray)})
        values = {k: _value(v) for k, v in attributes.items() if not isinstance(v, np.ndarray)}
        return state | arrays | {"values": np.asarray(json.dumps(values))}

    def _set_state(self, state: Mapping[str, Array]) -> None:
        if "X_" in state:
            super()._set_state(state)
            probabilities = self._probabilities(self._scaled(self.X_[:CHECKED_ROWS]))
            if not np.allclose(probabilities, state["checked"], atol=1e-6):
                raise InputError(
                    f"Fitted again on its saved rows, {type(self.estimator).__name__} predicts otherwise "
                    "than when it was saved: another version of its package, or draws without random_state. "
                    "Run the command that made it again."
                )
            return
        names = ("codes_", "seed_", "values")
        self._require(names, state)
        self._take(names[:2], state)
        self.present_ = np.unique(self.codes_)
        if len(self.present_) < 2:
            return
        self.estimator_ = self._fresh()
        options = options_of(self.estimator_)
        for name, value in (within("array", state) | json.loads(str(np.asarray(state["values"])))).items():
            if name in options or callable(getattr(type(self.estimator_), name, None)):
                raise InputError(
                    f"The saved arrays would set {cut(name)}, which no fit does: they are damaged."
                )
            setattr(self.estimator_, name, tuple(value) if isinstance(value, list) else value)


def as_classifier(estimator: Any) -> Any:
    """An unfitted estimator as the loop needs it: itself if it has a state, else wrapped.

    Args:
        estimator: unfitted, with `fit` and `predict_proba`.

    Returns:
        The estimator, or a `ForeignClassifier` around it.

    Raises:
        InputError: it is a class and no object, or it gives no class probabilities.
    """
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise InputError(f"{estimator.__name__} is a class; give an object: {estimator.__name__}().")
    if not is_classifier(estimator):
        raise InputError(
            f"{name} gives no class probabilities (it has no predict_proba). Turn them on if it has an "
            "option for that, or put it into sklearn.calibration.CalibratedClassifierCV."
        )
    if supports_state(estimator):
        return estimator
    if not isinstance(estimator, BaseEstimator):
        raise InputError(f"{name} must be a scikit-learn estimator, or have get_state and set_state.")
    return ForeignClassifier(estimator)


def _plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype != object and value.dtype.names is None
    if isinstance(value, (list, tuple)):
        return all(_plain(item) and not isinstance(item, np.ndarray) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


def _value(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
