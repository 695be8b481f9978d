"""Quality of a model, for pages: its calibration, and labels predicted by models that did not see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.serving import background
from workbench.app.serving.caching import computed, digest
from workbench.app.serving.jobs import Job, manager
from workbench.arrays import Floats, Ints

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.insight import Calibration


def probability_versions(model: FittedModel) -> dict[str, str]:
    """The ways this model's latents can be read as probabilities: name -> title."""
    from workbench.sessions import insight

    return insight.probability_versions(model)


@dataclass(frozen=True)
class CalibrationInputs:
    """Inputs of a calibration.

    Attributes:
        uid: of the model.
        version: of `probability_versions`.
        bins: B.
        code: the class whose probability is binned, or None for the prediction.
        measured: of items, codes and probabilities.
        model: to measure.
        items: [n] it never trained on.
        codes: [n] their classes.
        crossed: [n, C] probabilities from cross-validation, which then replace the model's.
    """

    uid: str
    version: str
    bins: int
    code: int | None
    measured: str
    model: FittedModel = field(repr=False, compare=False)
    items: Ints = field(repr=False, compare=False)
    codes: Ints = field(repr=False, compare=False)
    crossed: Floats | None = field(repr=False, compare=False)


def calibration(
    model: FittedModel,
    items: Ints,
    codes: Ints,
    version: str,
    bins: int,
    code: int | None,
    crossed: Floats | None,
) -> Calibration:
    """Calibration of a model's probabilities, kept for the next look; arguments as in `CalibrationInputs`."""
    arrays = [items, codes] if crossed is None else [items, codes, crossed]
    inputs = CalibrationInputs(
        model.uid, version, bins, code, digest(*map(np.asarray, arrays)), model, items, codes, crossed
    )
    return computed(inputs, _calibration)


def _calibration(given: CalibrationInputs) -> Calibration:
    from workbench.sessions import insight

    return insight.calibration(
        given.model,
        n_bins=given.bins,
        class_name=None if given.code is None else given.model.classes[given.code],
        held_out=(given.items, given.codes),
        version=given.version,
        probabilities=given.crossed,
    )


@dataclass(frozen=True)
class CrossValidationInputs:
    """Inputs of predictions of labels by models that did not see them.

    Attributes:
        uid: of the model whose training set is predicted.
        classifier: it was made with, not the one that was chosen since.
        options: of the classifier, printed.
        seed: of the project.
        number: of the model's round.
        given: the options.
        session: of the project.
    """

    uid: str
    classifier: str
    options: str
    seed: int
    number: int = field(repr=False, compare=False)
    given: Mapping[str, Any] = field(repr=False, compare=False)
    session: Session = field(repr=False, compare=False)


def cross_validation(session: Session, model: FittedModel) -> Job:
    """Predictions for the labelled items by models that did not see them; one job a model.

    Args:
        session: of a project without test labels.
        model: whose training set is predicted.

    Returns:
        The job; its result is (items [n], codes [n], probabilities [n, C]). One that failed or was cancelled
        stays until it is let go of.
    """
    made = session.made_with(model.number)
    options = made["options"]
    inputs = CrossValidationInputs(
        model.uid,
        str(made["classifier"]),
        repr(sorted(options.items())),
        int(session.settings["seed"]),
        model.number,
        options,
        session,
    )
    return manager().compute(session.id, inputs, _crossed, title="Comparing labels", lane="short")


def _crossed(job: Job, given: CrossValidationInputs) -> Any:
    session = given.session
    return background.compute(
        job,
        "crossed",
        session.store.url,
        session.id,
        given.number,
        given.classifier,
        dict(given.given),
        session=session,
    )
