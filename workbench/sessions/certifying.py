"""Events that freeze labels and certify them, from the checks and from what people said since."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import workbench
from workbench.certificates import Certificate, Check, Promise, certificate_of, check_spent, checksum_of
from workbench.sessions.checks import Candidates, answers_of, decided_by, plan_of
from workbench.sessions.finish_state import FinishState, finish_state_of, last_frozen, void_because
from workbench.store import Event, ProjectState
from workbench.store.events import now as utc_now


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
    names = {key: state.class_names.get(key, state.removed.get(key, key)) for key in frozen.classes}
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
    labels = {}
    for place in range(now.size):
        item = int(frozen.items[place])
        if item not in answered:
            key = frozen.key(place)
            name = state.class_names.get(key, state.removed.get(key, key))
            labels[item] = name, float(frozen.confidences[place])
    return labels


def _check(finish: FinishState, state: ProjectState, names: dict[str, str], draw: int) -> Check:
    place = int(finish.evidence.places[draw])
    item = int(finish.frozen.items[place])
    answers = answers_of(finish.frozen, state, item)
    first, decided = answers[0], decided_by(state, item, answers)
    return Check(
        draw + 1,
        finish.frozen.ids[place],
        names[finish.frozen.key(place)],
        _name(first.key, state),
        place,
        first.annotator,
        first.time,
        tuple((answer.annotator, _name(answer.key, state)) for answer in answers) if len(answers) > 1 else (),
        _name(decided, state),
    )


def _name(key: str, state: ProjectState) -> str:
    return state.class_names.get(key, state.removed.get(key, key))


def versions() -> dict[str, str]:
    """Programs that a certificate was made with: ours, and the NumPy that drew the checks."""
    return {"workbench": workbench.__version__, "numpy": np.__version__}
