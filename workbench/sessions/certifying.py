"""The certificate of a project's frozen labels, from its checks and from what people said since."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from workbench.certificates import Certificate, Check, Strata, certificate_of
from workbench.certificates.certificate import BY_CLASS
from workbench.sessions.checks import BANDS, Frozen, answers_of
from workbench.sessions.finish_state import FinishState
from workbench.store import ProjectState


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
    labels = frozen.named(ids, names)
    people = state.labels
    return certificate_of(
        labels,
        {str(ids[item]): place for place, item in enumerate(frozen.items.tolist())},
        [_check(now, state, ids, names, draw) for draw in range(now.evidence.checks)],
        error=frozen.error,
        confidence=frozen.confidence,
        sizes=frozen.sizes,
        also=frozen.also,
        strata=_strata(frozen, names),
        per_class=frozen.per_class,
        drawn_from=frozen.drawn_from,
        attempt=frozen.attempt,
        project=project,
        of=frozen.of,
        people=frozen.n_labelled,
        labelled={str(ids[item]): name for item, name in state.decided.items()},  # as the set is exported
        apart=[str(ids[item]) for item in frozen.items.tolist() if item in people],
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
    found = {}
    for place in range(now.size):
        item = int(frozen.items[place])
        if item not in answered:
            key = frozen.key(place)
            name = state.class_names.get(key, state.removed.get(key, key))
            found[item] = name, float(frozen.confidences[place])
    return found


def _check(
    now: FinishState, state: ProjectState, ids: Sequence[str], names: dict[str, str], draw: int
) -> Check:
    place = int(now.evidence.places[draw])
    item = int(now.frozen.items[place])
    given = answers_of(now.frozen, state, item)
    several = tuple((one.annotator, _name(one.key, state)) for one in given) if len(given) > 1 else ()
    first = given[0]
    label = names[now.frozen.key(place)]
    return Check(
        draw + 1, str(ids[item]), label, _name(first.key, state), place, first.annotator, first.time, several
    )


def _strata(frozen: Frozen, names: dict[str, str]) -> Strata:
    if not frozen.strata:
        return Strata()
    counts = tuple((size, tuple(one)) for size, one in frozen.strata_counts)
    if frozen.strata == BY_CLASS:
        return Strata(BY_CLASS, tuple(names[key] for key in frozen.classes), "", counts)
    bands = "".join(map(str, frozen.stratum[frozen.listing].tolist()))
    return Strata(frozen.strata, tuple(f"band {band + 1}" for band in range(BANDS)), bands, counts)


def _name(key: str, state: ProjectState) -> str:
    return state.class_names.get(key, state.removed.get(key, key))


def versions() -> dict[str, str]:
    """What a certificate was made with: ours, and the NumPy that drew the checks."""
    try:
        own = version("workbench-labels")
    except PackageNotFoundError:
        own = "unknown"
    return {"workbench": own, "numpy": np.__version__}
