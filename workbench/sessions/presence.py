"""People who label a project: how much, how fast, and when last."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workbench.store import Event, ProjectState
from workbench.store.events import ANSWERS

LATELY = timedelta(minutes=10)


@dataclass(frozen=True)
class Person:
    """One who labels.

    Attributes:
        name: theirs.
        labels: items that they gave a class which stands.
        last: when they last answered; None where all of their answers were taken away.
        a_minute: answers a minute over the last ten minutes, or since their first where that is less.
    """

    name: str
    labels: int
    last: datetime | None
    a_minute: float


def people_of(state: ProjectState, events: Sequence[Event], now: datetime | None = None) -> list[Person]:
    """The people of a project, who answered last first.

    Args:
        state: of the project.
        events: of the project, oldest first.
        now: the present moment unless given.
    """
    now = now or datetime.now(UTC)
    votes = (vote for of_item in state.votes.values() for vote in of_item.values())
    labels = Counter(vote.annotator for vote in votes if vote.role != "imported")
    times = _answered(events, now - LATELY, set(labels))
    people = []
    for name, n in labels.items():
        last, lately = times.get(name, (None, []))
        since = now - lately[-1] if lately else LATELY
        minutes = max(1.0, min(since, LATELY) / timedelta(minutes=1))
        people.append(Person(name, n, last, len(lately) / minutes))
    first = datetime.min.replace(tzinfo=UTC)
    return sorted(people, key=lambda person: person.last or first, reverse=True)


def _answered(
    events: Sequence[Event], begin: datetime, names: set[str]
) -> Mapping[str, tuple[datetime, list[datetime]]]:
    """Of each person their last answer, and those since `begin`, newest first."""
    times: dict[str, tuple[datetime, list[datetime]]] = {}
    for event in reversed(events):
        at = datetime.fromisoformat(event.time)
        if at < begin and len(times) == len(names):
            break
        if event.kind not in ANSWERS or event.annotator not in names:
            continue
        _, lately = times.setdefault(event.annotator, (at, []))
        if at >= begin:
            lately.append(at)
    return times
