"""Quality of a model, for pages: its calibration in numbers and words, and labels predicted unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.app.serving import jobs
from workbench.app.serving.caching import kept
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.words.text import percent, plural
from workbench.arrays import Floats, Ints

if TYPE_CHECKING:
    from workbench.metrics import CalibrationVerdict
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


def calibration_meaning(verdict: CalibrationVerdict, event: str = "") -> str:
    """The use of a model's percentages, by whether they are right; arguments as in `calibration_sentence`."""
    from workbench.sessions.measure import TOLD

    n = verdict.error.n
    share = f"it is {event} in" if event else "it is right in"
    places = sorted(verdict.bins, key=lambda place: -place[2] * abs(place[0] - place[1]))[:2]
    where = " and ".join(
        f"where it says {percent(confidence, 0)}, {share} {percent(did, 0)}" for confidence, did, _ in places
    )
    where = f" {where[0].upper()}{where[1:]}." if where else ""
    if verdict.direction == "calibrated":
        if n < TOLD:
            return (
                f"{plural(n, 'measured item')} are too few to tell whether its percentages are right: "
                f"{TOLD} tell more."
            )
        right = f"are {event}" if event else "are right"
        far = percent(verdict.error.high, 0)
        return (
            f"You can take its percentages at their word, to within {far} in the mean: of what it gives "
            f"90 %, about nine in ten {right}."
        )
    if verdict.direction == "off both ways":
        return f"Do not take its percentages at their word: some are too high, others too low.{where}"
    if verdict.direction == "too modest":
        return f"Read its percentages as too low.{where}"
    check = "" if event else ": check by hand also what it seems sure of, or label more"
    return f"Read its percentages as too high{check}.{where}"


def calibration_sentence(verdict: CalibrationVerdict, event: str = "") -> str:
    """Verdict on a model's sureness, in a sentence.

    Args:
        verdict: on the items that were measured.
        event: the class whose probability is meant; "" for the prediction.

    Returns:
        "Says 90 %, is right 83 %: too sure (n = 359)."; a gap that chance alone can make is called one.
    """
    from workbench.sessions.measure import TOLD

    confidence, share = percent(verdict.confidence, 0), percent(verdict.accuracy, 0)
    few = "too few to tell" if verdict.error.n < TOLD else "within chance"
    word = few if verdict.direction == "calibrated" else verdict.direction
    did = f"it is {event} in {share}" if event else f"is right {share}"
    return f"Says {confidence}, {did}: {word} (n\u00a0=\u00a0{verdict.error.n:,})."


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
