"""Who labels a project: how much, how fast, and how often they differ from what most say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workbench.store import Event, ProjectState
from workbench.store.events import ANSWERS, SOURCE

LATELY = timedelta(minutes=10)
MAJORITY = 3  # people: two who differ are no majority


@dataclass(frozen=True)
class Person:
    """One who labels.

    Attributes:
        name: theirs.
        labels: items that they gave a class which stands.
        last: when they last answered; None where all of their answers were taken away.
        a_minute: answers a minute over the last ten minutes, or since their first where that is less.
        judged: items that three people or more labelled, they among them, and of which most say one class.
        apart: those of them where they say another one.
    """

    name: str
    labels: int
    last: datetime | None
    a_minute: float
    judged: int
    apart: int


def people_of(state: ProjectState, events: Sequence[Event], now: datetime | None = None) -> list[Person]:
    """The people of a project, who answered last first.

    Args:
        state: of the project.
        events: of the project, oldest first.
        now: the present moment unless given.
    """
    now = now or datetime.now(UTC)
    labels = Counter(name for votes in state.votes.values() for name in votes if name != SOURCE)
    judged, apart = _against_most(state)
    times = _answered(events, now - LATELY, set(labels))
    found = []
    for name, n in labels.items():
        last, lately = times.get(name, (None, []))
        since = now - lately[-1] if lately else LATELY
        minutes = max(1.0, min(since, LATELY) / timedelta(minutes=1))
        found.append(Person(name, n, last, len(lately) / minutes, judged[name], apart[name]))
    first = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda one: one.last or first, reverse=True)


def _answered(
    events: Sequence[Event], begin: datetime, names: set[str]
) -> Mapping[str, tuple[datetime, list[datetime]]]:
    """Of each person their last answer, and those since `begin`, newest first."""
    found: dict[str, tuple[datetime, list[datetime]]] = {}
    for event in reversed(events):
        at = datetime.fromisoformat(event.time)
        if at < begin and len(found) == len(names):
            break
        if event.kind not in ANSWERS or event.annotator not in names:
            continue
        _, lately = found.setdefault(event.annotator, (at, []))
        if at >= begin:
            lately.append(at)
    return found


def _against_most(state: ProjectState) -> tuple[Mapping[str, int], Mapping[str, int]]:
    judged: dict[str, int] = defaultdict(int)
    apart: dict[str, int] = defaultdict(int)
    for votes in state.votes.values():
        said = {name: state.resolve(key) for name, vote in votes.items() if (key := vote.by_themselves)}
        said.pop(SOURCE, None)
        if len(said) < MAJORITY:
            continue
        (most, n), *_ = Counter(said.values()).most_common(1)
        if 2 * n <= len(said):
            continue
        for name, key in said.items():
            judged[name] += 1
            apart[name] += key != most
    return judged, apart
