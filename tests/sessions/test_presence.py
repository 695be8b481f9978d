"""People who label a project, how fast, and when last."""

from datetime import UTC, datetime, timedelta

from workbench.sessions.people import people_of
from workbench.store import Event, fold

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def said(number: int, who: str, item: int, key: str, minutes_ago: float) -> Event:
    time = (NOW - timedelta(minutes=minutes_ago)).isoformat(timespec="milliseconds")
    return Event("label", {"class": key, "item": item}, who, time, number)


def test_labels_pace_and_last_answer() -> None:
    given = [
        ("eve", 0, "cat", 60.0),
        ("ann", 0, "cat", 9.0),
        ("bob", 0, "dog", 8.0),
        ("ann", 1, "cat", 5.0),
        ("bob", 1, "dog", 4.0),
        ("ann", 2, "dog", 4.0),
        ("bob", 2, "dog", 3.0),
        ("eve", 2, "bird", 2.9),
        ("ann", 3, "dog", 1.0),
    ]
    events = [said(n, *one) for n, one in enumerate(given, start=1)]
    ann, eve, bob = people_of(fold(events), events, NOW)
    assert (ann.name, ann.labels) == ("ann", 4)
    assert (bob.name, bob.labels) == ("bob", 3)
    assert (eve.name, eve.labels) == ("eve", 2)
    assert ann.a_minute == 4 / 9 and eve.a_minute == 1 / 2.9
    assert ann.last == NOW - timedelta(minutes=1)


def test_who_took_all_answers_back_is_not_listed() -> None:
    given = [("ann", 0, "cat"), ("bob", 0, "kitten"), ("eve", 0, "dog")]
    events = [said(n, who, item, key, 30.0) for n, (who, item, key) in enumerate(given, start=1)]
    undone = [*events, Event("undo", {}, "eve", events[0].time, 4)]
    assert {p.name: p.a_minute for p in people_of(fold(undone), undone, NOW)} == {"ann": 0.0, "bob": 0.0}
    assert people_of(fold([]), [], NOW) == []
