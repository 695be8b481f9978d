"""Quality of a model, computed for pages: its calibration, and its labels predicted unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.app.serving import jobs
from workbench.app.serving.caching import kept
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.arrays import Floats, Ints

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.insight import Calibration


@kept
def calibration(
    model: FittedModel,
    items: Ints,
    codes: Ints,
    version: str,
    bins: int,
    code: int | None,
    crossed: Floats | None,
) -> Calibration:
    """Calibration of a model's probabilities, kept for the next look.

    Args:
        model: to measure.
        items: [n] it never trained on.
        codes: [n] their classes.
        version: of `insight.probability_versions`.
        bins: B.
        code: the class whose probability is binned, or None for the prediction.
        crossed: [n, C] probabilities from cross-validation, which then replace the model's.
    """
    from workbench.sessions import insight

    return insight.calibration(
        model,
        n_bins=bins,
        class_name=None if code is None else model.classes[code],
        held_out=(items, codes),
        version=version,
        probabilities=crossed,
    )


def cross_validation(session: Session, model: FittedModel) -> Job:
    """Predictions for the labelled items by models that did not see them; one job a model.

    Args:
        session: of a project without test labels.
        model: whose training set is predicted.

    Returns:
        The job; its result is (items [n], codes [n], probabilities [n, C]). One that failed or was cancelled
        stays until it is let go of.
    """
    settings = session.fits.made_with(model.number)
    # of the model, not of what was chosen since
    made_with = str(settings["classifier"]), dict(sorted(settings["options"].items()))
    return manager().compute(
        session.id,
        (model.uid, made_with, int(session.settings["seed"])),
        lambda job: jobs.compute(
            job, "crossed", session.store.url, session.id, model.number, *made_with, session=session
        ),
        title="Comparing labels",
        lane="short",
        limit=DAY,
    )
