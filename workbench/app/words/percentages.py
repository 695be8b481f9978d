"""Calibration in words: the verdict on a model's percentages, and the use of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.app.words.text import percent, plural

if TYPE_CHECKING:
    from workbench.metrics import CalibrationVerdict


def sentence(verdict: CalibrationVerdict, event: str = "") -> str:
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


def meaning(verdict: CalibrationVerdict, event: str = "") -> str:
    """The use of a model's percentages, by whether they are right; arguments as in `sentence`."""
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
            f"90\u00a0%, about nine in ten {right}."
        )
    if verdict.direction == "off both ways":
        return f"Do not take its percentages at their word: some are too high, others too low.{where}"
    if verdict.direction == "too modest":
        return f"Read its percentages as too low.{where}"
    check = "" if event else ": check by hand also what it seems sure of, or label more"
    return f"Read its percentages as too high{check}.{where}"
