"""The certificate of a project's frozen labels, from its checks and from what people said since."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.certificates import Certificate, Check, certificate_of
from workbench.sessions.checks import answers_of, decided_by
from workbench.sessions.finish_state import FinishState
from workbench.store import ProjectState
from workbench.versions import PROGRAM, version_of


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
    return {"workbench": version_of(PROGRAM) or "unknown", "numpy": np.__version__}
