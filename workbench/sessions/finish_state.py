"""State of a finish: what the checks say now, what to do next, and the certificate that they earn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

import workbench
from workbench.arrays import Floats
from workbench.certificates import (
    Bound,
    Certificate,
    Check,
    Promise,
    SecondLooks,
    certificate_of,
    check_spent,
    checksum_of,
    least_checks,
    looks_broken,
    range_to_go,
)
from workbench.sessions.checks import (
    Candidates,
    Evidence,
    Frozen,
    answers_of,
    bound_after,
    certified_of,
    decided_by,
    evidence,
    frozen_of,
    plan_of,
)
from workbench.store import Event, ProjectState
from workbench.store.events import now as utc_now

Phase = Literal["checking", "certified", "failed", "void"]
_AIM = 0.6  # of the allowed error, so that few checks suffice
_DEAR = 0.5  # of what is left: from so many checks on, looking at all of it is hardly more


@dataclass(frozen=True)
class SetState:
    """One set within the frozen labels: so many of the surest.

    Attributes:
        size: items.
        checks: draws that fell into it.
        wrong: of these.
        bound: at most this share is wrong, together with the bounds of the other sets; of a certified set no
            more than was promised.
        certified: whether it is, at the allowed error.
    """

    size: int
    checks: int
    wrong: int
    bound: float
    certified: bool


@dataclass(frozen=True, eq=False)
class FinishState:
    """Result of the checks of frozen labels.

    Attributes:
        phase: "checking"; "certified"; "failed" where the checks say that the promise does not hold, or would
            take more of them than there are labels; "void" where what was frozen is not what is there now.
        frozen: the labels.
        evidence: the answers that count.
        size: of the set that is aimed at: the certified one, else the first of the test.
        checks: that fell into it.
        wrong: of these.
        curve: [checks + 1] the upper bound before the first and after each.
        certified: size of the largest set that is; 0 where none is.
        to_go: fewest and most answers that are likely to go, the second None where none may do; None where
            none would do at this rate.
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
    certified: int
    to_go: tuple[int, int | None] | None
    estimate: float
    labelled_since: int
    why: str = ""
    advice: int = 0
    certificate: dict[str, Any] | None = None

    @property
    def bound(self) -> float:
        """The upper bound now."""
        return self.curve[-1]

    @property
    def promise(self) -> Promise:
        """Promise about the frozen labels."""
        return self.frozen.promise

    @property
    def to_go_words(self) -> str:
        """The forecast in a few words: "44 to 90 to go"."""
        if self.to_go is None:
            return "not enough at this rate"
        low, high = self.to_go
        if high is None:
            return f"at least {low:,} to go"
        return f"about {low:,} to go" if low == high else f"{low:,} to {high:,} to go"

    @property
    def second_looks(self) -> SecondLooks:
        """Checks that a second person was asked, and what came of it."""
        return self.evidence.second_looks

    def sets(self) -> list[SetState]:
        """Bounds of every set by the same checks, the smallest first; all bounds hold together."""
        promise, rows = self.promise, []
        confidence = 1.0 - promise.delta / len(promise.sizes)
        for size in promise.sizes:
            bound, wrong = Bound(size, confidence, [promise.error]), self.evidence.within(size)
            for answer in wrong.tolist():
                bound.add(answer)
            certified = size <= self.certified
            # the test of the promise is sharper than the bounds of all sets together
            least = min(bound.curve[-1], promise.error) if certified else bound.curve[-1]
            rows.append(SetState(size, len(wrong), int(wrong.sum()), least, certified))
        return rows


def finish_state_of(frozen: Frozen, state: ProjectState) -> FinishState:
    """Result of the checks of the frozen labels.

    Args:
        frozen: as started last.
        state: of the project.
    """
    findings, promise = evidence(frozen, state), frozen.promise
    certificate = standing_certificate(frozen, findings, state)
    certified = certified_of(frozen, findings)
    reached = certificate is not None or certified > 0
    size = certified or promise.sizes[0]
    wrong = findings.within(size)
    curve = bound_after(frozen, size, findings)
    ends = None if reached else range_to_go(wrong, size, promise.error, promise.confidence_here)
    # draws beside the set count as answers, too
    low, high = ends or (None, None)
    answers = [None if n is None else math.ceil(max(1, n) * frozen.size / size) for n in (low, high)]
    to_go = (0, 0) if reached else None if answers[0] is None else (answers[0], answers[1])
    estimate = float(wrong.mean()) if len(wrong) else math.nan
    phase, why = _phase(frozen, state, wrong, size, reached, to_go is None)
    return FinishState(
        phase,
        frozen,
        findings,
        size,
        len(wrong),
        int(wrong.sum()),
        curve,
        certified,
        to_go,
        estimate,
        _labelled_since(frozen, state),
        why,
        advised(frozen, estimate) if phase == "failed" else 0,
        certificate,
    )


def standing_certificate(frozen: Frozen, found: Evidence, state: ProjectState) -> dict[str, Any] | None:
    """The certificate of these labels whose checks are still what they were."""
    checks = list(zip(frozen.items[found.places].tolist(), found.wrong.tolist(), strict=True))
    for event in reversed(state.certified):
        if event.payload["started"] != frozen.started:
            continue
        certified_checks = [(int(item), bool(wrong)) for item, wrong in event.payload.get("checks", ())]
        if certified_checks == checks[: len(certified_checks)]:
            return dict(event.payload["certificate"])
    return None


def void_because(frozen: Frozen, state: ProjectState) -> str:
    """Why the frozen labels are not what is there now; "" where they are."""
    if not state.merged and not state.removed:
        return ""
    answered = {
        check.key
        for checks in state.checks.values()
        for check in checks.values()
        if check.started == frozen.started
    }
    frozen_keys = {frozen.classes[code] for code in np.flatnonzero(np.bincount(frozen.codes)).tolist()}
    merged_keys = sorted((answered | set(frozen.classes)) & state.merged.keys())
    removed_keys = sorted(frozen_keys & state.removed.keys())
    if removed_keys:
        return (
            f"Class {state.removed[removed_keys[0]]} was taken away, and frozen labels name it. Start the "
            "checks anew once the labels name none but the project's classes."
        )
    if merged_keys:
        key = merged_keys[0]
        into = state.class_name(key)
        return (
            f"Class {key} was merged into {into} after the labels were frozen, so the checks answer another "
            "question. Start the checks anew."
        )
    return ""


def advised(frozen: Frozen, estimate: float) -> int:
    """Number of the least sure labels that people had better give, so that the rest is likely to hold."""
    risk = 1.0 - frozen.confidences
    if not np.isfinite(risk).all() or not np.isfinite(estimate):
        return 0
    mean: Floats = risk.cumsum() / np.arange(1, frozen.size + 1)
    scale = estimate / mean[-1] if mean[-1] > 0 else 1.0
    places = np.flatnonzero(mean * scale <= _AIM * frozen.promise.error)
    return int(frozen.size - (places[-1] + 1 if places.size else 0))


def is_census(size: int, error: float, confidence: float) -> bool:
    """True if a certificate would take checks of half of the labels or more: people had better give them all.

    Args:
        size: labels that would be frozen.
        error: allowed share.
        confidence: of this attempt.
    """
    return least_checks(size, error, confidence) >= _DEAR * size


def census_words(size: int, error: float, confidence: float) -> str:
    """Better ways than a certificate where few labels are left.

    Args:
        size: labels that would be frozen.
        error: allowed share.
        confidence: of this attempt.
    """
    needed = least_checks(size, error, confidence)
    return (
        f"Only {size:,} items are left, and a certificate would take {needed:,} checks of them or more. "
        f"Label all {size:,}: a census. Then no label is the machine's, and there is nothing to certify."
    )


def _phase(
    frozen: Frozen, state: ProjectState, wrong: Any, size: int, reached: bool, is_endless: bool
) -> tuple[Phase, str]:
    if why := void_because(frozen, state):
        return "void", why
    if reached:
        return "certified", ""
    t, s = len(wrong), int(wrong.sum())
    allowed = frozen.promise.error
    if s >= (forbidden := frozen.promise.forbidden(size)):
        labels = "1 wrong label was" if s == 1 else f"{s:,} wrong labels were"
        surest = "" if size == frozen.size else "the surest "
        return "failed", f"{labels} found: of {surest}{size:,} at most {forbidden - 1:,} may be wrong."
    if is_endless and looks_broken(s, t, allowed):
        return "failed", ""
    return "checking", ""


def _labelled_since(frozen: Frozen, state: ProjectState) -> int:
    place_of = frozen.place_of
    return sum(
        1
        for item, vote in state.standing.items()
        if vote.event > frozen.started
        and vote.role != "check"
        and item < len(place_of)  # the pool may have grown since
        and place_of[item] >= 0
    )


def last_frozen(state: ProjectState, ids: Sequence[str]) -> Frozen | None:
    """The labels that were frozen last.

    Args:
        state: of the project.
        ids: [N] of the pool's items.
    """
    return frozen_of(state.frozen[-1], ids) if state.frozen else None


def freezing(
    state: ProjectState, ids: Sequence[str], candidates: Candidates, promise: Promise
) -> list[Event]:
    """Events that freeze labels, and give back the checks that somebody has of earlier ones.

    Args:
        state: of the project.
        ids: [N] of the pool's items.
        candidates: the labels.
        promise: about them.

    Returns:
        The events; none where these labels are frozen with this promise.

    Raises:
        InputError: more attempts than there can be.
    """
    promise = replace(promise, attempt=len(state.frozen) + 1)  # refuses one too many
    payload = plan_of(promise, candidates, ids, checksum_of(candidates.named(ids, state.class_names)))
    before = last_frozen(state, ids)
    if before is not None and not void_because(before, state):
        same = replace(promise, attempt=before.promise.attempt)
        if (before.promise, before.checksum) == (same, payload["checksum"]):
            return []
    earlier = [Promise.from_document(event.payload["promise"]) for event in state.frozen]
    check_spent(promise.confidence, [(previous.confidence, previous.attempt) for previous in earlier])
    waiting = [state.asks[i] for asks in state.waiting.values() for i in asks]
    given_back = [ask.id for ask in waiting if ask.role == "check" and not ask.released]
    return [*([Event.released(given_back)] if given_back else []), Event.checks_started(payload)]


def certification(state: ProjectState, ids: Sequence[str], project: str) -> list[Event]:
    """The event that records the certificate which the checks earn; none where it is none, or no other one.

    Args:
        state: of the project.
        ids: [N] of the pool's items.
        project: its name.
    """
    frozen = last_frozen(state, ids)
    finish = None if frozen is None else finish_state_of(frozen, state)
    if finish is None or finish.phase != "certified":
        return []
    made = utc_now()
    if finish.certificate is not None:
        previous = Certificate.from_json(finish.certificate)
        if issued(finish, state, ids, project, previous.made).id == previous.id:
            return []
    document = issued(finish, state, ids, project, made).document()
    items = finish.frozen.items[finish.evidence.places].tolist()
    checks = list(zip(items, finish.evidence.wrong.tolist(), strict=True))
    return [Event.certified(finish.frozen.started, checks, document)]


def issued(now: FinishState, state: ProjectState, ids: Sequence[str], project: str, made: str) -> Certificate:
    """The certificate as the checks have it now.

    Args:
        now: what they say.
        state: of the project.
        ids: [N] of the pool's items.
        project: its name.
        made: when, ISO 8601.
    """
    frozen = now.frozen
    names = {key: state.class_name(key) for key in frozen.classes}
    labels = state.labels
    return certificate_of(
        frozen.promise,
        frozen.named(names),
        {item: place for place, item in enumerate(frozen.ids)},
        [_check(now, state, names, draw) for draw in range(now.evidence.checks)],
        drawn_from=frozen.drawn_from,
        project=project,
        labelled={str(ids[item]): name for item, name in state.decided.items()},  # as the set is exported
        apart=[name for item, name in zip(frozen.items.tolist(), frozen.ids, strict=True) if item in labels],
        made=made,
        versions=versions(),
    )


def machine_part(now: FinishState, state: ProjectState) -> dict[int, tuple[str, float]]:
    """Item -> (class, confidence) of the machine labels that a certificate covers and no person has replaced.

    Args:
        now: what the checks say; "certified".
        state: of the project.
    """
    frozen = now.frozen
    answered = state.codes.keys() | set(frozen.items[now.evidence.places].tolist())
    return {
        item: (state.class_name(frozen.key(place)), float(frozen.confidences[place]))
        for place, item in enumerate(frozen.items[: now.size].tolist())
        if item not in answered
    }


def _check(finish: FinishState, state: ProjectState, names: dict[str, str], draw: int) -> Check:
    place = int(finish.evidence.places[draw])
    item = int(finish.frozen.items[place])
    answers = answers_of(finish.frozen, state, item)
    first, decided = answers[0], decided_by(state, item, answers)
    return Check(
        draw + 1,
        finish.frozen.ids[place],
        names[finish.frozen.key(place)],
        state.class_name(first.key),
        place,
        first.annotator,
        first.time,
        tuple((answer.annotator, state.class_name(answer.key)) for answer in answers)
        if len(answers) > 1
        else (),
        state.class_name(decided),
    )


def versions() -> dict[str, str]:
    """Programs that a certificate was made with: ours, and the NumPy that drew the checks."""
    return {"workbench": workbench.__version__, "numpy": np.__version__}
