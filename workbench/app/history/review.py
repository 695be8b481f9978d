"""What was decided about each item, what a model that did not see it says, and how far people agree."""

from __future__ import annotations

import base64
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.app.words.text import NOTHING, percent, plain, plural
from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.metrics import Agreement, cohen_kappa, krippendorff_alpha, label_errors
from workbench.short_names import short_names

if TYPE_CHECKING:
    from workbench.pools import Pool
    from workbench.sessions import Event, ProjectState, Session
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
}
LABELLED, SKIPPED, UNSURE, OPEN = "labelled", "skipped", "unsure", "open"
SIDE = 56  # pixels of a small picture
ANCHORING_FROM = 10  # labels of each kind, before which nothing is said of who is led
_SUMMARY = 160  # characters
_COLUMNS = 6
_NAME = 24  # characters of a column's name: what is in it is worth more
_PICTURES: OrderedDict[tuple[str, int], str] = OrderedDict()
_KEPT = 4000


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
    items = dict.fromkeys((*state.votes, *state.skipped, *state.unsure, *state.flagged, *state.notes))
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


# --- showing --------------------------------------------------------------------------------------


def summary(pool: Pool, item: int) -> str:
    """A text or row in one line; "" for an image."""
    shown = pool.items.show(item)
    if shown.text is not None:
        line = " ".join(shown.text.split())
    elif shown.row is not None:
        cells = list(shown.row.items())
        names = short_names(list(shown.row), _NAME)
        line = " · ".join(
            f"{name} {plain(value, 4) or NOTHING}"
            for name, (_, value) in zip(names[:_COLUMNS], cells, strict=False)
        )
        line += f" · {len(cells) - _COLUMNS} more" if len(cells) > _COLUMNS else ""
    else:
        return ""
    return line if len(line) <= _SUMMARY else line[: _SUMMARY - 1].rstrip() + "…"


def picture(pool: Pool, item: int) -> str:
    """A small picture of an image as a data URL, made once."""
    key = (pool.fingerprint, item)
    found = _PICTURES.get(key)
    if found is None:
        from workbench.app.desk.cards import encoded
        from workbench.figures.thumbnails import enlarged

        image = pool.items.show(item).image
        if image is None:
            return ""
        # every nth pixel is good enough at this size, and quick for photos
        step = max(1, -(-max(image.shape[:2]) // (2 * SIDE)))
        data = base64.b64encode(encoded(enlarged(image[::step, ::step], SIDE))).decode()
        found = _PICTURES[key] = f"data:image/png;base64,{data}"
        while len(_PICTURES) > _KEPT:
            _PICTURES.popitem(last=False)
    return found


def table(pool: Pool, rows: Sequence[Decision], found: Mapping[int, Opinion]) -> list[dict[str, Any]]:
    """The decisions as rows for people; columns that would be empty throughout are left out."""
    image = pool.kind == "image"
    made = []
    for row in rows:
        said = found.get(row.item)
        made.append(
            {
                "Picture": picture(pool, row.item) if image else "",
                "Label": row.label or f"({row.status})",
                "Model says": "" if said is None else said.label,
                "Chance it is right": None if said is None else round(said.self_confidence, 2),
                "Verdict": _verdict(said),
                # behind what is in question: it is wide, and stands whole beside the table
                "Shows": summary(pool, row.item),
                "Flag": "" if row.flag is None else row.flag or "flagged",
                "Note": row.note,
                "Who": row.who + (f" +{len(row.people) - 1}" if len(row.people) > 1 else ""),
                "Item": str(pool.items.ids[row.item]),
                "Why asked": WHY.get(row.role, row.role),
                "Seconds": row.seconds,
                "Time (UTC)": row.time.replace("T", " ")[:16],
            }
        )
    full = {n for one in made for n, value in one.items() if value is not None and value != ""}
    return [{name: value for name, value in one.items() if name in full} for one in made]


def gallery(
    pool: Pool, rows: Sequence[Decision], found: Mapping[int, Opinion], picture: str
) -> list[dict[str, Any]]:
    """The decisions as cards of the gallery.

    Args:
        pool: they are about.
        rows: in the order in which they are shown.
        found: of `opinions`.
        picture: address of pictures, with {item} in it.
    """
    from workbench.app.desk.cards import thumbnail_face

    kinds = {LABELLED: "label", SKIPPED: "skip", UNSURE: "unsure"}
    cards = []
    for row in rows:
        said = found.get(row.item)
        verdict = (
            "" if said is None else "wrong" if said.wrong else "disagrees" if said.disagrees else "agrees"
        )
        cards.append(
            {
                "item": row.item,
                "id": str(pool.items.ids[row.item]),
                "face": thumbnail_face(pool, row.item, picture),
                "kind": kinds.get(row.status, ""),
                "class": row.label,
                "who": row.who,
                "people": list(row.people),
                "flag": row.flag is not None,
                "note": row.note,
                "says": "" if said is None else said.label,
                "verdict": verdict,
                "chance": None if said is None else round(said.self_confidence, 3),
            }
        )
    return cards


def disputes(
    pool: Pool, state: ProjectState, items: Sequence[int], found: Mapping[int, Opinion]
) -> list[dict[str, Any]]:
    """Items on which people differ as rows for people: a column a person, and what a model says."""
    names = dict(zip(state.keys, state.classes, strict=True))
    people = list(dict.fromkeys(person for item in items for person in state.votes[item]))
    made = []
    for item in items:
        row: dict[str, Any] = {"Picture": picture(pool, item)} if pool.kind == "image" else {}
        row |= {} if pool.kind == "image" else {"Shows": summary(pool, item)}
        votes = state.votes[item]
        row |= {p: names[state.resolve(votes[p].key)] if p in votes else "" for p in people}
        row |= {"Model says": found[item].label} if item in found else {}
        made.append(row | {"Item": str(pool.items.ids[item])})
    return made


def _verdict(said: Opinion | None) -> str:
    """What a model's opinion comes to, in two words."""
    if said is None:
        return ""
    return "looks wrong" if said.wrong else "disagrees" if said.disagrees else "agrees"


# --- doing ----------------------------------------------------------------------------------------


def relabel(session: Session, items: Sequence[int], name: str) -> str:
    """Give items another class, in the name of whoever sits here; items that have it already are left.

    Returns:
        What was done, in a sentence.

    Raises:
        InputError: no such class, or an item of the test split; then nothing is changed.
    """
    labels = session.state.labels
    changing = [item for item in items if labels.get(item) != name]
    if not changing:
        return f"Nothing to change: all are {name} already."
    session.relabel(changing, name)
    return f"{plural(len(changing), 'item')} labelled {name}."


def relabel_each(session: Session, said: Mapping[int, str]) -> str:
    """Give each of some items a class of its own: one act for each class.

    Args:
        session: of whoever decides.
        said: item -> class.

    Raises:
        InputError: nothing is to be changed.
    """
    if not said:
        raise InputError("The model says nothing else of these.")
    by_class: dict[str, list[int]] = {}
    for item, name in said.items():
        by_class.setdefault(name, []).append(item)
    for name, items in by_class.items():
        session.relabel(items, name)
    if len(by_class) == 1:
        return f"{plural(len(said), 'item')} labelled {next(iter(by_class))}."
    return f"{plural(len(said), 'item')} labelled as the model says; Undo goes class by class."


def clear(session: Session, items: Sequence[int]) -> str:
    """Take away whatever was decided about items.

    Raises:
        InputError: nothing was.
    """
    n = len(session.clear(items).payload["items"])
    return f"The labels of {plural(n, 'item')} removed: they may be asked about again."


def whose(state: ProjectState, items: Iterable[int]) -> str:
    """Whose labels of items there are, in words; "" where there is none."""
    people = list(dict.fromkeys(person for item in items for person in state.votes.get(item, {})))
    return f"{', '.join(people[:-1])} and {people[-1]}" if len(people) > 1 else "".join(people)


def look_again(session: Session, n: int) -> str:
    """Have some labels of one's own asked about a second time.

    Raises:
        InputError: there is none.
    """
    n = len(session.look_again(n).payload["items"])
    return f"{plural(n, 'label')} of yours will be asked about again on Label."


def set_flag(session: Session, items: Sequence[int], on: bool) -> str:
    """Flag items, or clear their flags; those that are so already are left."""
    flagged = session.state.flagged
    changing = [item for item in items if (item in flagged) != on]
    if changing:
        session.flag(changing, on)
    return f"{plural(len(changing), 'item')} flagged." if on else f"{plural(len(changing), 'flag')} cleared."


def add_note(session: Session, items: Sequence[int], text: str) -> str:
    """Keep a remark about each of some items.

    Raises:
        InputError: an empty remark.
    """
    if not text.strip():
        raise InputError("A note needs some words.")
    session.note(items, text.strip())
    return f"Noted on {plural(len(items), 'item')}."


def ask_again(session: Session, items: Sequence[int]) -> str:
    """Have those of the items that were set aside asked about again."""
    n = len(session.ask_again(items))
    if not n:
        return "None of these was skipped or unsure."
    return f"{plural(n, 'item')} will be asked about again on Label."


def resolve(session: Session, items: Sequence[int], name: str) -> str:
    """End the disagreement about some items."""
    session.resolve(items, name)
    return f"{plural(len(items), 'disagreement')} decided: {name}."


def second_looks(state: ProjectState, person: str) -> tuple[Agreement | None, list[int]]:
    """How far a person agrees with themselves, and the items on which they do not.

    Args:
        state: of the project.
        person: who looked at labels of theirs a second time.

    Returns:
        Cohen's kappa of the first and the second labels, None without any; items that differ.
    """
    codes = {key: code for code, key in enumerate(state.keys)}
    items, first, second = [], [], []
    for item, votes in state.votes.items():
        vote = votes.get(person)
        if vote is None or not vote.first:
            continue
        before, after = codes.get(state.resolve(vote.first)), codes.get(state.resolve(vote.key))
        if before is not None and after is not None:
            items.append(item)
            first.append(before)
            second.append(after)
    differ = [item for item, a, b in zip(items, first, second, strict=True) if a != b]
    return (cohen_kappa(first, second) if items else None), differ


class Anchoring(NamedTuple):
    """How often a person's labels are what the model guessed.

    Attributes:
        shown: (the same, all) of the labels given with the guess on screen.
        hidden: the same of those given without.
    """

    shown: tuple[int, int]
    hidden: tuple[int, int]


def anchoring(events: Iterable[Event], state: ProjectState, person: str) -> Anchoring:
    """Whether a person's labels follow the guess more where they see it.

    Args:
        events: of the project.
        state: its fold.
        person: whose labels.
    """
    from workbench.app.desk.cards import BLIND

    standing = {vote.event for votes in state.votes.values() for vote in votes.values()}
    counts = {True: [0, 0], False: [0, 0]}
    for event in events:
        payload = event.payload
        if event.kind != "label" or event.annotator != person or "guess_shown" not in payload:
            continue
        ask = state.asks.get(str(payload.get("ask", "")))
        guess = payload.get("guess") or (None if ask is None else ask.details.get("guess"))
        # an item for measuring shows nothing either way
        if event.id not in standing or not guess or (ask is not None and ask.role in BLIND):
            continue
        same = state.resolve(str(guess[0][0])) == state.resolve(str(payload["class"]))
        counts[bool(payload["guess_shown"])][0] += same
        counts[bool(payload["guess_shown"])][1] += 1
    return Anchoring((counts[True][0], counts[True][1]), (counts[False][0], counts[False][1]))


def anchoring_words(found: Anchoring) -> str:
    """Both shares in a sentence; "" before there are ten labels of each."""
    if min(found.shown[1], found.hidden[1]) < ANCHORING_FROM:
        return ""
    shares = [f"{same} of {n} ({percent(same / n, 0)})" for same, n in (found.shown, found.hidden)]
    return (
        f"With the guess on screen your label was the guess in {shares[0]}, with it hidden in {shares[1]}. "
        "The items differ, so a small gap says nothing; a large one says that the guess leads you."
    )


# --- people ---------------------------------------------------------------------------------------


def shared_labels(state: ProjectState) -> dict[int, dict[str, int]]:
    """Items that two people or more labelled: item -> person -> class code.

    What decided a disagreement and what was relabelled in review counts for nobody: it was given with a
    label in sight, and agreement is about labels that people gave by themselves. Who decides keeps the label
    that they gave before.
    """
    codes = {key: code for code, key in enumerate(state.keys)}
    found = {}
    for item, votes in state.votes.items():
        if len(votes) > 1:
            own = {v.annotator: state.resolve(v.by_themselves) for v in votes.values() if v.by_themselves}
            given = {person: codes[key] for person, key in own.items() if key in codes}
            if len(given) > 1:
                found[item] = given
    return found


def pairs(shared: Mapping[int, Mapping[str, int]]) -> list[tuple[str, str, Agreement]]:
    """Cohen's kappa of each two people with items in common, the pair with most items first."""
    people = list(dict.fromkeys(person for given in shared.values() for person in given))
    found = []
    for a, b in itertools.combinations(people, 2):
        both = [(given[a], given[b]) for given in shared.values() if a in given and b in given]
        if both:
            found.append((a, b, cohen_kappa([x for x, _ in both], [y for _, y in both])))
    return sorted(found, key=lambda pair: -pair[2].n_items)


def group(shared: Mapping[int, Mapping[str, int]], n_classes: int) -> Agreement | None:
    """Krippendorff's alpha of everybody; None for fewer than three people."""
    if len({person for given in shared.values() for person in given}) < 3:
        return None
    counts = [np.bincount(list(given.values()), minlength=n_classes) for given in shared.values()]
    return krippendorff_alpha(np.stack(counts))


def agreement_words(who: str, found: Agreement, *, together: bool = False, oneself: bool = False) -> str:
    """An agreement in a sentence for people.

    Args:
        who: "ann and bob", or "3 people".
        found: of `pairs` or `group`.
        together: it is a group's.
        oneself: it is of first and second labels of one person.
    """
    same = percent(found.observed, 0)
    items = plural(found.n_items, "item")
    if together:
        words = f"{who}, {found.n_ratings:,} labels of {items}: two labels of one item agree in {same}"
    elif oneself:
        words = f"Looked at twice, {items} got the same label in {same}"
    else:
        words = f"{who} labelled {items} both, and agree in {same}"
    called = "Krippendorff's alpha" if together else "kappa"
    if np.isnan(found.kappa):
        return f"{words}. All are of one class, so {called} says nothing yet."
    return f"{words}; chance alone gives {percent(found.expected, 0)}, so {called} is {found.kappa:.2f}."
