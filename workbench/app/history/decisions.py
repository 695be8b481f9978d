"""What was decided about each item, and what a model that did not see it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.words.text import plural
from workbench.arrays import Floats, Ints
from workbench.metrics import label_errors

if TYPE_CHECKING:
    from workbench.sessions import ProjectState, Session
    from workbench.sessions.fitted_model import FittedModel


WHY = {
    "policy": "the policy's choice",
    "evaluation": "to measure on",
    "cold-start": "to know the pool",
    "again": "asked again",
    "overlap": "second opinion",
    "uniform": "drawn at random",
    "map": "own choice",
    "review": "in review",
    "confirmed": "in a grid",
    "chosen": "own choice",
    "second": "second look",
    "together": "asked along with another question",
    "check": "to check a label",
}
LABELLED, SKIPPED, UNSURE, OPEN = "labelled", "skipped", "unsure", "open"


@dataclass(frozen=True, slots=True)
class Decision:
    """What stands about one item.

    Attributes:
        item: index into the pool.
        status: "labelled", "skipped", "unsure", or "open" for one that was only flagged or noted.
        label: name of the class; "" without one.
        who: the person, or what answered in their place ("known classes").
        people: everybody whose label of the item stands.
        time: of the decision, UTC, ISO 8601; "" where there is none.
        seconds: the person took, where it is known.
        role: how the item came up.
        flag: reason of the flag, which may be ""; None without one.
        note: remarks, joined.
        disputed: people differ and nobody has decided.
    """

    item: int
    status: str
    label: str = ""
    who: str = ""
    people: tuple[str, ...] = ()
    time: str = ""
    seconds: float | None = None
    role: str = ""
    flag: str | None = None
    note: str = ""
    disputed: bool = False


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model that did not learn from an item's label says about it.

    Attributes:
        label: the class it finds most probable.
        confidence: probability of that class.
        self_confidence: probability of the given class.
        wrong: the given label is likely wrong, by confident learning; never where the models foretell
            fewer than half of the labels, since what they then call wrong says more about them.
        disagrees: the most probable class is not the given one.
    """

    label: str
    confidence: float
    self_confidence: float
    wrong: bool
    disagrees: bool


def decisions(session: Session) -> list[Decision]:
    """One decision for each item that was labelled, set aside, flagged or noted; newest first."""
    state = session.state
    payloads = {event.id: event.payload for event in session.events}
    aside = {e.item: e for e in session.events if e.kind in ("skip", "unsure")}
    disputed = frozenset(state.conflicts)
    beside = sorted({*state.skipped, *state.unsure, *state.flagged, *state.notes})
    items = dict.fromkeys((*state.votes, *beside))
    rows = []
    for item in items:
        more: dict[str, Any] = {
            "flag": state.flagged.get(item),
            "note": " | ".join(note.text for note in state.notes.get(item, ())),
        }
        if item in state.votes:
            vote = state.standing[item]
            said = payloads.get(vote.event, {})
            more |= {
                "label": state.labels[item],
                "who": who(vote.annotator, said),
                "people": tuple(state.votes[item]),
                "time": vote.time,
                "seconds": said.get("seconds"),
                "role": vote.role,
                "disputed": item in disputed,
            }
            rows.append(Decision(item, LABELLED, **more))
            continue
        status = SKIPPED if item in state.skipped else UNSURE if item in state.unsure else OPEN
        event = None if status == OPEN else aside.get(item)
        if event is not None:
            more |= {"who": event.annotator, "people": (event.annotator,), "time": event.time}
            more |= {"seconds": event.payload.get("seconds"), "role": str(event.payload.get("role", ""))}
        rows.append(Decision(item, status, **more))
    return sorted(rows, key=lambda row: row.time, reverse=True)


def who(annotator: str, payload: Mapping[str, Any]) -> str:
    """Who answered: the person, or what answered in their place ("known classes")."""
    return "known classes" if payload.get("source") == "oracle" else annotator


def opinions(
    state: ProjectState, model: FittedModel, crossed: tuple[Ints, Ints, Floats] | None
) -> dict[int, Opinion]:
    """What models say about the labelled items whose label they did not learn from.

    Args:
        state: of the project.
        model: the one whose training set was cross-validated.
        crossed: items [n], codes [n] and probabilities [n, C] of `insight.cross_validated`; without
            it, there are opinions only on items the model itself never learnt from.

    Returns:
        Item -> opinion. Nothing while the classes are not those of the model.
    """
    if model.classes != state.classes or len(state.classes) < 2:
        return {}
    learnt = frozenset(model.items.tolist())
    others = [item for item in state.codes if item not in learnt]
    items, parts = others, [model.probabilities[np.asarray(others, dtype=np.int64)]] if others else []
    if crossed is not None:
        # a label that was taken back since has no opinion
        rows = [i for i, item in enumerate(crossed[0].tolist()) if item in state.codes]
        items = [*others, *crossed[0][rows].tolist()]
        parts = [*parts, crossed[2][rows]]
    if not items:
        return {}
    p = np.concatenate(parts)
    found = label_errors([state.codes[item] for item in items], p)
    best = p.argmax(axis=1)
    knows = 2 * sum(state.codes[item] == best[i] for i, item in enumerate(items)) >= len(items)
    return {
        item: Opinion(
            state.classes[best[i]],
            float(p[i, best[i]]),
            float(found.self_confidence[i]),
            knows and bool(found.wrong[i]),
            int(best[i]) != state.codes[item],
        )
        for i, item in enumerate(items)
    }


def in_doubt_first(rows: Iterable[Decision], found: Mapping[int, Opinion]) -> list[Decision]:
    """By the probability of the label, the least expected first; those without an opinion last."""

    def doubt(row: Decision) -> tuple[int, float]:
        opinion = found.get(row.item)
        return (1, 0.0) if opinion is None else (0, opinion.self_confidence)

    return sorted(rows, key=doubt)


FILTERS: dict[str, tuple[str, Callable[[Decision, Opinion | None], bool]]] = {
    "all": ("All", lambda row, said: True),
    "wrong": ("Look wrong", lambda row, said: said is not None and said.wrong),
    "disagrees": ("Model disagrees", lambda row, said: said is not None and said.disagrees),
    "flagged": ("Flagged", lambda row, said: row.flag is not None),
    "skipped": ("Skipped", lambda row, said: row.status == SKIPPED),
    "unsure": ("Unsure", lambda row, said: row.status == UNSURE),
    "disputed": ("People differ", lambda row, said: row.disputed),
}
"""Name -> title, and whether a decision with its opinion is among them."""


def chosen(
    rows: Iterable[Decision],
    found: Mapping[int, Opinion],
    kind: str = "all",
    label: str | None = None,
    person: str | None = None,
) -> list[Decision]:
    """The decisions of one kind, of one class, and of one person.

    Args:
        rows: all of them.
        found: of `opinions`.
        kind: a key of `FILTERS`.
        label: name of a class; None for all.
        person: who labelled or set aside; None for everybody.
    """
    test = FILTERS[kind][1]
    return [
        row
        for row in rows
        if test(row, found.get(row.item))
        and (label is None or row.label == label)
        and (person is None or person in (row.who, *row.people))
    ]


def verdict(rows: Sequence[Decision], found: Mapping[int, Opinion]) -> str:
    """How many labels look wrong, in a sentence for people."""
    n = sum(row.item in found for row in rows)
    wrong = sum(row.item in found and found[row.item].wrong for row in rows)
    if not n:
        return "No label was compared with a model that did not see it."
    of = plural(n, "label")
    alike = sum(row.item in found and not found[row.item].disagrees for row in rows)
    if 2 * alike < n:
        return (
            f"A model that did not see them foretells {alike:,} of {of}: it knows too little yet to say "
            "which look wrong. What it expected least comes first."
        )
    if not wrong and alike < n:
        comes = "it comes" if n - alike == 1 else "they come"
        return (
            f"None of {of} looks clearly wrong to a model that did not see it. Of {n - alike:,} it expected "
            f"another class: {comes} first."
        )
    if not wrong:
        return f"None of {of} looks wrong to a model that did not see it."
    look = "looks" if wrong == 1 else "look"
    return (
        f"{wrong:,} of {of} {look} wrong to a model that did not see them. What it expected least comes "
        "first, with the chance that the label is right: a hint, no proof."
    )
