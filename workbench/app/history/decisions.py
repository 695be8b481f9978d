"""Decisions about each item, and the opinion of a model that did not see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.words.text import plural, role_words
from workbench.arrays import Floats, Ints
from workbench.metrics import mistakes

if TYPE_CHECKING:
    from workbench.app.serving.jobs import Job
    from workbench.pools import Pool
    from workbench.sessions import ProjectState, Session
    from workbench.sessions.fitted_model import FittedModel


LABELLED, SKIPPED, UNSURE, OPEN = "labelled", "skipped", "unsure", "open"


@dataclass(frozen=True, slots=True)
class Decision:
    """Decisions about one item.

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
        said: "person: class" of each, where people differ and nobody has decided.
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
    said: tuple[str, ...] = ()

    @property
    def disputed(self) -> bool:
        """True if people differ and nobody has decided."""
        return bool(self.said)


@dataclass(frozen=True, slots=True)
class Opinion:
    """Opinion of a model that did not learn from an item's label.

    Attributes:
        label: the class it finds most probable.
        confidence: probability of that class.
        right: the chance that the given label is right: what the model says, weighed with its own error and
            with how seldom people err (`metrics.mistakes`).
        wrong: the given label is more likely wrong than right.
        disagrees: the most probable class is not the given one.
        usual: chances that it is wrong where people err seldom and where they err often.
    """

    label: str
    confidence: float
    right: float
    wrong: bool
    disagrees: bool
    usual: tuple[float, float] = (0.0, 0.0)


def decisions(session: Session) -> list[Decision]:
    """One decision for each item that was labelled, set aside, flagged or noted; newest first."""
    state = session.state
    payloads = {event.id: event.payload for event in session.log.events}
    aside = {e.item: e for e in session.log.events if e.kind in ("skip", "unsure")}
    disputed = frozenset(state.conflicts)
    marked_items = sorted({*state.skipped, *state.unsure, *state.flagged, *state.notes})
    items = dict.fromkeys((*state.votes, *marked_items))
    rows = []
    for item in items:
        more: dict[str, Any] = {
            "flag": state.flagged.get(item),
            "note": " | ".join(note.text for note in state.notes.get(item, ())),
        }
        if item in state.votes:
            vote = state.standing[item]
            payload = payloads.get(vote.event, {})
            more |= {
                "label": state.labels[item],
                "who": who(vote.annotator, payload),
                "people": tuple(state.votes[item]),
                "time": vote.time,
                "seconds": payload.get("seconds"),
                "role": vote.role,
                "said": said_of(state, item) if item in disputed else (),
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


def said_of(state: ProjectState, item: int) -> tuple[str, ...]:
    """Class that each person gave an item, in words."""
    votes = state.votes[item]
    return tuple(f"{person}: {state.class_names[state.resolve(vote.key)]}" for person, vote in votes.items())


def who(annotator: str, payload: Mapping[str, Any]) -> str:
    """The person who answered, or what answered in their place ("known classes")."""
    return "known classes" if payload.get("source") == "oracle" else annotator


def opinions(
    state: ProjectState, model: FittedModel, crossed: tuple[Ints, Ints, Floats] | None
) -> dict[int, Opinion]:
    """Opinions of models about the labelled items whose label they did not learn from.

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
    unseen_items = [item for item in state.codes if item not in learnt]
    items, parts = (
        unseen_items,
        [model.probabilities[np.asarray(unseen_items, dtype=np.int64)]] if unseen_items else [],
    )
    if crossed is not None:
        # a label that was taken back since has no opinion
        rows = [i for i, item in enumerate(crossed[0].tolist()) if item in state.codes]
        items = [*unseen_items, *crossed[0][rows].tolist()]
        parts = [*parts, crossed[2][rows]]
    if not items:
        return {}
    p = np.concatenate(parts)
    groups = [state.standing[item].role == "policy" for item in items]
    # a label that somebody gave or kept in review is in doubt no more
    doubted = np.array([state.standing[item].role != "review" for item in items])
    chances = mistakes([state.codes[item] for item in items], p, groups=groups)
    wrong, low, high = (doubted * chance for chance in chances)
    best = p.argmax(axis=1)
    return {
        item: Opinion(
            state.classes[best[i]],
            float(p[i, best[i]]),
            float(1.0 - wrong[i]),
            bool(wrong[i] > 0.5),
            int(best[i]) != state.codes[item],
            (float(low[i]), float(high[i])),
        )
        for i, item in enumerate(items)
    }


def opinions_of(session: Session, model: FittedModel, job: Job) -> dict[int, Opinion]:
    """`opinions` of a session as it is, with what a job of `evaluation.cross_validation` has found by now."""
    return opinions(session.state, model, job.result if job.status == "done" else None)


def tiles(
    pool: Pool, rows: Sequence[Decision], opinions_by_item: Mapping[int, Opinion], picture: str
) -> list[dict[str, Any]]:
    """The decisions as tiles of the gallery.

    Args:
        pool: they are about.
        rows: in the order in which they are shown.
        opinions_by_item: of `opinions`.
        picture: address of pictures, with {item} in it.
    """
    from workbench.app.desk.cards import thumbnail_face

    kinds = {LABELLED: "label", SKIPPED: "skip", UNSURE: "unsure"}
    gallery = []
    for row in rows:
        opinion = opinions_by_item.get(row.item)
        verdict = ""
        if opinion is not None:
            verdict = "wrong" if opinion.wrong else "disagrees" if opinion.disagrees else "agrees"
        gallery.append(
            {
                "item": row.item,
                "id": str(pool.items.ids[row.item]),
                "face": thumbnail_face(pool, row.item, picture),
                "kind": kinds.get(row.status, ""),
                "class": row.label,
                "who": row.who,
                "people": list(row.people),
                "said": list(row.said),
                "why": role_words(row.role, "log"),
                "flag": row.flag is not None,
                "reason": row.flag or "",
                "note": row.note,
                "says": "" if opinion is None else opinion.label,
                "sure": None if opinion is None else round(opinion.confidence, 3),
                "verdict": verdict,
                "chance": None if opinion is None else round(opinion.right, 3),
            }
        )
    return gallery


def in_doubt_first(rows: Iterable[Decision], opinions_by_item: Mapping[int, Opinion]) -> list[Decision]:
    """By the probability of the label, the least expected first; those without an opinion last."""

    def doubt(row: Decision) -> tuple[int, float]:
        opinion = opinions_by_item.get(row.item)
        return (1, 0.0) if opinion is None else (0, opinion.right)

    return sorted(rows, key=doubt)


FILTERS: dict[str, tuple[str, Callable[[Decision, Opinion | None], bool]]] = {
    "all": ("All", lambda row, opinion: True),
    "wrong": ("Look wrong", lambda row, opinion: opinion is not None and opinion.wrong),
    "disagrees": ("Model disagrees", lambda row, opinion: opinion is not None and opinion.disagrees),
    "flagged": ("Flagged", lambda row, opinion: row.flag is not None),
    "skipped": ("Skipped", lambda row, opinion: row.status == SKIPPED),
    "unsure": ("Unsure", lambda row, opinion: row.status == UNSURE),
    "disputed": ("People differ", lambda row, opinion: row.disputed),
}
"""Name -> title, and whether a decision with its opinion is among them."""


def chosen(
    rows: Iterable[Decision],
    opinions_by_item: Mapping[int, Opinion],
    kind: str = "all",
    label: str | None = None,
    person: str | None = None,
) -> list[Decision]:
    """The decisions of one kind, of one class, and of one person.

    Args:
        rows: all of them.
        opinions_by_item: of `opinions`.
        kind: a key of `FILTERS`.
        label: name of a class; None for all.
        person: who labelled or set aside; None for everybody.
    """
    test = FILTERS[kind][1]
    return [
        row
        for row in rows
        if test(row, opinions_by_item.get(row.item))
        and (label is None or row.label == label)
        and (person is None or person in (row.who, *row.people))
    ]


def verdict(rows: Sequence[Decision], opinions_by_item: Mapping[int, Opinion]) -> str:
    """Number of labels that look wrong, in a sentence for people."""
    compared = [opinions_by_item[row.item] for row in rows if row.item in opinions_by_item]
    n, wrong = len(compared), sum(opinion.wrong for opinion in compared)
    if not n:
        return "No label was compared with a model that did not see it."
    doubted = [opinion for opinion in compared if opinion.disagrees]
    alike, likely = n - len(doubted), likely_wrong(compared)
    of = f"of {plural(n, 'label')} {'is' if likely == 'about 1' else 'are'}"
    words = f"{likely[0].upper()}{likely[1:]} {of} likely wrong."
    if 2 * alike < n and not wrong:
        return (
            f"{words} A model that did not see them predicts {alike:,} of them: it knows too little yet "
            "to say which. What it expected least comes first."
        )
    if not doubted:
        return f"{words} A model that did not see them says the same of each."
    clause = f"; {wrong:,} of them {'looks' if wrong == 1 else 'look'} wrong" if wrong else ""
    mostly = "Most of these are right: people err in 1 to 5 of 100 labels. "
    return (
        f"{words} A model that did not see them expected another class for {len(doubted):,}{clause}. "
        f"{mostly if 2 * sum(1.0 - opinion.right for opinion in doubted) < len(doubted) else ''}"
        "The likeliest mistakes come first."
    )


def likely_wrong(compared: Sequence[Opinion]) -> str:
    """Number of some labels that are likely wrong, in words: "about 0 to 2".

    Args:
        compared: what is known of each.
    """
    low, high = (sum(opinion.usual[end] for opinion in compared) for end in (0, 1))
    low, high = int(low), min(math.ceil(high), len(compared))
    return f"about {low:,} to {high:,}" if high > low else f"about {high:,}"
