"""How far a finish is: what the checks say now, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from workbench.arrays import Floats
from workbench.certificates import Nested, first_reached, log_wealth, nested
from workbench.sessions.checks import (
    ENOUGH_TO_DOUBT,
    Evidence,
    Frozen,
    bound_after,
    evidence,
    to_go,
)
from workbench.store import Event, ProjectState

Phase = Literal["checking", "certified", "failed", "void"]
_AIM = 0.6  # of the allowed error, so that few checks suffice
_Z = 1.2815515655446004  # one-sided 90 %


@dataclass(frozen=True)
class SetState:
    """One set within the frozen labels: so many of the surest.

    Attributes:
        size: items.
        checks: draws that fell into it.
        wrong: of these.
        bound: at most this share is wrong, together with the bounds of the other sets.
        certified: whether it is, at the allowed error.
    """

    size: int
    checks: int
    wrong: int
    bound: float
    certified: bool


@dataclass(frozen=True, eq=False)
class FinishState:
    """What the checks of frozen labels say.

    Attributes:
        phase: "checking"; "certified"; "failed" where the checks say that the promise does not hold, or would
            take more of them than there are labels; "void" where what was frozen is not what is there now.
        frozen: the labels.
        evidence: the answers that count.
        size: of the set that is aimed at: the certified one, else the first of the test.
        checks: that fell into it.
        wrong: of these.
        curve: [checks + 1] the upper bound before the first and after each.
        left: about how many answers are to go; None where none would do at this rate.
        estimate: share of wrong ones so far; NaN before the first.
        labelled_since: frozen items that people labelled without being asked to check them.
        why: a sentence where it is void or failed.
        advice: items to label before the next attempt.
        certificate: document of the certificate that stands, or None.
    """

    phase: Phase
    frozen: Frozen
    evidence: Evidence
    size: int
    checks: int
    wrong: int
    curve: list[float]
    left: int | None
    estimate: float
    labelled_since: int
    why: str = ""
    advice: int = 0
    certificate: dict[str, Any] | None = None

    @property
    def bound(self) -> float:
        """The upper bound now."""
        return self.curve[-1]

    def sets(self) -> list[SetState]:
        """What the same checks say of every set, the smallest first."""
        found = self._nested(bounds=True)
        certified = found.certified[0]
        rows = zip(found.sizes, found.checks, found.wrong, found.bounds, certified, strict=True)
        return [SetState(int(n), int(t), int(s), float(b), bool(c)) for n, t, s, b, c in rows]

    def surest(self, errors: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)) -> list[tuple[float, int]]:
        """(allowed error, the largest set whose own bound is below it), for what a table says in passing."""
        found: dict[float, int] = {}
        for one in self.sets():
            for error in errors:
                if one.bound <= error:
                    found[error] = max(found.get(error, 0), one.size)
        return sorted(found.items())

    def _nested(self, *, bounds: bool) -> Nested:
        return tested(self.frozen, self.evidence, bounds=bounds)


def tested(frozen: Frozen, found: Evidence, *, bounds: bool) -> Nested:
    """The checks as evidence on every set of the test."""
    return nested(
        found.wrong.astype(int),
        found.places,
        np.asarray(frozen.sizes),
        frozen.error,
        frozen.confidence_here,
        bounds=bounds,
    )


def finish_state_of(frozen: Frozen, state: ProjectState) -> FinishState:
    """What the checks of the frozen labels say.

    Args:
        frozen: as started last.
        state: of the project.
    """
    found = evidence(frozen, state)
    certificate = standing_certificate(frozen, found, state)
    size = frozen.sizes[0]
    wrong = found.within(size)
    reached = certificate is not None or _is_certified(frozen, wrong, size)
    if reached and len(frozen.sizes) > 1:
        size = _largest(frozen, found)
        wrong = found.within(size)
    curve = bound_after(frozen, size, wrong)
    left = 0 if reached else to_go(wrong, size, frozen.error, frozen.confidence_here)
    if left:
        left = math.ceil(left * frozen.size / size)  # draws that fall beside the set count as answers too
    estimate = float(wrong.mean()) if len(wrong) else math.nan
    phase, why = _phase(frozen, state, wrong, size, reached, left)
    return FinishState(
        phase,
        frozen,
        found,
        size,
        len(wrong),
        int(wrong.sum()),
        curve,
        left,
        estimate,
        _labelled_since(frozen, state),
        why,
        advised(frozen, estimate) if phase == "failed" else 0,
        certificate,
    )


def standing_certificate(frozen: Frozen, found: Evidence, state: ProjectState) -> dict[str, Any] | None:
    """The certificate of these labels whose checks are still what they were."""
    now = list(zip(frozen.items[found.places].tolist(), found.wrong.tolist(), strict=True))
    for event in reversed(state.certified):
        if event.payload["started"] != frozen.started:
            continue
        then = [(int(item), bool(wrong)) for item, wrong in event.payload.get("checks", ())]
        if then == now[: len(then)]:
            return dict(event.payload["certificate"])
    return None


def void_because(frozen: Frozen, state: ProjectState) -> str:
    """Why the frozen labels are not what is there now; "" where they are."""
    gone = [key for key in frozen.classes if key in state.merged]
    if gone:
        one = gone[0]
        into = state.class_names.get(state.resolve(one), state.resolve(one))
        return (
            f"Class {one} was merged into {into} after the labels were frozen, so the checks answer another "
            "question. Start the checks anew."
        )
    return ""


def advised(frozen: Frozen, estimate: float) -> int:
    """How many of the least sure labels people had better give, that the rest is likely to hold."""
    risk = 1.0 - frozen.confidences
    if not np.isfinite(risk).all() or not np.isfinite(estimate):
        return 0
    mean: Floats = risk.cumsum() / np.arange(1, frozen.size + 1)
    scale = estimate / mean[-1] if mean[-1] > 0 else 1.0
    kept = np.flatnonzero(mean * scale <= _AIM * frozen.error)
    return int(frozen.size - (kept[-1] + 1 if kept.size else 0))


def _largest(frozen: Frozen, found: Evidence) -> int:
    held = tested(frozen, found, bounds=False)
    place = held.largest()
    return frozen.sizes[0] if place is None else int(held.sizes[place])


def _is_certified(frozen: Frozen, wrong: Any, size: int) -> bool:
    if not len(wrong):
        return False
    return bool(first_reached(log_wealth(wrong, size, frozen.error), frozen.confidence_here))


def _phase(
    frozen: Frozen, state: ProjectState, wrong: Any, size: int, reached: bool, left: int | None
) -> tuple[Phase, str]:
    if why := void_because(frozen, state):
        return "void", why
    if reached:
        return "certified", ""
    t, s = len(wrong), int(wrong.sum())
    if s >= math.floor(frozen.error * size + 1e-9) + 1:
        return "failed", f"{s:,} wrong labels were found: more than {frozen.error:.1%} of {size:,} may be."
    if t >= ENOUGH_TO_DOUBT and left is None and _low(s, t) > frozen.error:
        return "failed", ""
    return "checking", ""


def _low(wrong: int, checks: int) -> float:
    """Wilson's lower end: a share of wrong ones below it is unlikely; advice, no part of the guarantee."""
    p = wrong / checks
    middle = p + _Z * _Z / (2 * checks)
    half = _Z * math.sqrt(p * (1 - p) / checks + _Z * _Z / (4 * checks * checks))
    return (middle - half) / (1 + _Z * _Z / checks)


def _labelled_since(frozen: Frozen, state: ProjectState) -> int:
    place_of = frozen.place_of
    return sum(
        1
        for item, vote in state.standing.items()
        if item in place_of and vote.event > frozen.started and vote.role != "check"
    )


def last_frozen(state: ProjectState) -> Event | None:
    """The event that froze labels last."""
    return state.frozen[-1] if state.frozen else None
