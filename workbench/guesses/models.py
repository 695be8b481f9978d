"""Scores of a pool by a person's own fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.guesses.columns import of_probabilities
from workbench.guesses.guess import Guess


def of_model(
    model: Any,
    features: Array,
    classes: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    source: str = "model",
) -> Guess:
    """The probabilities of a fitted scikit-learn estimator, or of a saved model of ours.

    Args:
        model: with `predict_proba` and `classes_`.
        features: [N, D] what it was fitted on, of this pool.
        classes: names of the C classes, by code.
        names: the class of each of its columns; `classes_` unless given.
        source: what the guess is called.

    Raises:
        InputError: it gives no probabilities, wants other features, or knows none of the classes.
    """
    if not hasattr(model, "predict_proba") or (names is None and not hasattr(model, "classes_")):
        raise InputError(f"{source}: {type(model).__name__} gives no class probabilities or is not fitted.")
    wanted = getattr(model, "n_features_in_", None)
    if wanted is not None and wanted != features.shape[1]:
        raise InputError(f"{source} was fitted on {wanted} features and this pool has {features.shape[1]}.")
    p = np.asarray(model.predict_proba(features))
    given = [str(name) for name in (model.classes_ if names is None else names)]
    return of_probabilities(p, classes, given=given, source=source)
