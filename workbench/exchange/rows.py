"""The tables of labels and of what people did, a few thousand rows at a time."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.pools.images.photos import PhotoItems
from workbench.pools.pool import ArrayItems, RowItems
from workbench.pools.tables.uses import COLUMNS, TAKEN
from workbench.progress import tell
from workbench.reading import cut, valid_text, valid_texts
from workbench.sessions.finish_state import machine_part
from workbench.sessions.guessing import weights_of
from workbench.sessions.people import item_consensus, own_votes
from workbench.store import Event, EventFold, ProjectState, Store, fold
from workbench.store.events import GIVING

if TYPE_CHECKING:
    from workbench.sessions.session import Session

PAIRS = "id-and-label"
"""The scope of two columns."""
SCOPES = {
    PAIRS: "id and label of the labelled items",
    "labels": "the labelled items",
    "everything": "every item, labelled or not",
    "predictions": "every item; those without a label with the model's prediction",
    "finished": "people's labels, and the machine's that a certificate covers",
    "history": "everything that people did, one row each, to be read",
}
"""What an export holds."""
FINISHED = "finished"
"""The scope of a finished set."""
WHOLE = ("item", "round", "model_labels", "instructions", "instructions_read")
NUMBERS = ("utility", "seconds", "confidence", "consensus_certainty")
CHUNK = 5_000
_AT_ONCE = 50_000  # cells
NESTED = ("probabilities_when_asked", "probabilities_now", "label_by_person")
"""Columns of which a cell holds several things by name."""


@dataclass(frozen=True)
class StoredLabels:
    """The labels of a project without its pool, such as when that was moved or changed.

    Attributes:
        state: of the project.
        ids: [N] the source's ids.
        events: all of the project's, oldest first.
        pool: None.
    """

    state: ProjectState
    ids: Sequence[str]
    events: Sequence[Event] = ()
    pool: None = None

    @classmethod
    def of(cls, project_id: str, store: Store) -> StoredLabels:
        """Facts in the database about a project's labels."""
        events = store.events(project_id)
        return cls(fold(events), store.item_ids(project_id), events)

    @property
    def log(self) -> StoredLabels:
        """Itself: its events are all of the project's, as those of `Session.log`."""
        return self

    def snapshot(self) -> AbstractContextManager[None]:
        """As that of `Session.log`: these are of one moment."""
        return nullcontext()


def remarks(state: ProjectState, item: int) -> dict[str, str]:
    """Columns of an item's notes and its flag."""
    return {
        "note": " | ".join(note.text for note in state.notes.get(item, ())),
        "flag": state.flagged.get(item, "") or ("flagged" if item in state.flagged else ""),
    }


class RowsOut:
    """Rows that the writers of files take, an item each.

    Attributes:
        items: [n] of the rows.
        state: of the project.
        pool: of the items; None where it is not at hand.
        columns: names of all columns.
        own: names of the items' own columns, as they are in the rows.
    """

    items: Sequence[int]
    state: ProjectState
    pool: Any
    columns: list[str]
    own: list[str]

    def take_cells(self, cells: Mapping[str, Callable[[int], Any]], reserved: Collection[str]) -> None:
        """Take the items' own columns in.

        Args:
            cells: name -> (item -> its cell).
            reserved: names of other columns; one of the items' that is called so gets another name.
        """
        self._cells = cells
        self._named = {name: f"{TAKEN}{name}" if name in reserved else valid_text(name) for name in cells}
        self.own = list(self._named.values())

    def own_row(self, item: int) -> dict[str, Any]:
        """Cells of the items' own columns."""
        return {self._named[name]: cell(item) for name, cell in self._cells.items()}

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Places of the columns whose texts the pool takes as numbers, all of them."""
        places = {name: place for place, name in enumerate(self.columns)}
        names = () if self.pool is None else map(self._named.__getitem__, number_cells(self.pool))
        return frozenset(places[name] for name in names if name in places)

    def row(self, item: int) -> dict[str, Any]:
        """Cells of one item by their names."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for chunk in self.chunks():
            yield from chunk

    def chunks(self, size: int = CHUNK) -> Iterator[list[dict[str, Any]]]:
        """The rows, so many at a time."""
        for start in range(0, len(self.items), size):
            tell(start / len(self.items), "writing the rows")
            yield [self.row(item) for item in self.items[start : start + size]]


class LabelRows(RowsOut):
    """The rows of an export, in the pool's order.

    Args:
        session: of the project; `StoredLabels` have no columns of the items themselves.
        what: a key of `SCOPES`.
        typed: whether columns that the pool takes as numbers are numbers where the source had texts, as
            every CSV file has; False gives each cell as it stood.
        start: first item of the rows that are made.
        limit: the most that are made; None is all.

    Attributes:
        items: [n] of the rows.
        n_all: how many rows there are with those of other items.
        classes: names of the classes, by the column of their labels.
        of_labels: names of the columns about labels that are no property of an item.

    Raises:
        InputError: no such scope, or predictions where there is no model or no pool.
    """

    switches: Sequence[str] = ()
    of_labels = ("label", *(name for name in NESTED if name != "label_by_person"))

    def __init__(
        self,
        session: Session | StoredLabels,
        what: str = "labels",
        *,
        typed: bool = False,
        start: int = 0,
        limit: int | None = None,
    ) -> None:
        if what not in SCOPES:
            raise InputError(f"An export holds {', '.join(SCOPES)}; got {cut(what)}.")
        self.state, self.pool = session.state, session.pool
        self._what = what
        self._events = list(session.log.events)
        self._payloads = {event.id: event.payload for event in self._events}
        self._model: Any = getattr(session, "model", None)
        self._model_name = ""
        if self._model is not None:
            self._model_name = str(session.fits.fitted_with["classifier"])  # type: ignore[union-attr]
        is_of_labels = what in (PAIRS, "labels", FINISHED)
        if not is_of_labels and self.pool is None:
            raise InputError(f"The pool is not at hand; without it only labels can be exported, not {what}.")
        if what == "predictions" and self._model is None:
            raise InputError(
                "There is no model to predict with yet: the first fit comes with labels of two classes."
            )
        self._ids = self.pool.items.ids if self.pool is not None else session.ids  # type: ignore[union-attr]
        self._machine = _certified(session) if what == FINISHED else {}
        self.items: Sequence[int] = (
            sorted({*self.state.labels, *self._machine})
            if is_of_labels
            else range(0 if self.pool is None else len(self.pool))
        )
        self.n_all = len(self.items)
        first = bisect_left(self.items, start)
        self.items = self.items[first : None if limit is None else first + limit]
        is_predicted = self._model is not None and what != FINISHED
        self._predict_item: Any = session.predictions.predictor(self.items) if is_predicted else None  # type: ignore[union-attr]
        self._first = None if isinstance(session, StoredLabels) else session.items.twins.first
        cells = {} if self.pool is None else own_cells(self.pool)
        if typed and self.pool is not None:
            cells |= number_cells(self.pool)
        self.take_cells(cells, (*COLUMNS, "id"))
        self.columns = ["id", "label"] if what == PAIRS else ["id", *self.own, *COLUMNS]
        self.classes = {"label": self.state.classes}
        split = None if self.pool is None else self.pool.test
        self._held_out = frozenset() if split is None else frozenset(split.test.tolist())
        self._events = _standing(self._events)
        self._changed = _changed_from(self._events, self.state)
        self._guesses = [] if isinstance(session, StoredLabels) else _heaviest_first(session)
        self._aside = _set_aside(self._events, self.state)
        together = item_consensus(self.state)
        self._decided = {} if together is None else together.decided

    @property
    def finished(self) -> bool:
        """True if each row says whose its label is."""
        return self._what == FINISHED

    def choices(self, row: Mapping[str, Any]) -> dict[str, list[str]]:
        """Names of the choices of Label Studio that a row makes, each with what is chosen."""
        return {} if row["label"] is None else {"label": [row["label"]]}

    def row(self, item: int) -> dict[str, Any]:
        """Facts about one item; None where there are none."""
        state = self.state
        vote = state.standing.get(item)
        row: dict[str, Any] = {"id": str(self._ids[item]), **self.own_row(item)}
        row |= dict.fromkeys(COLUMNS)
        row["item"] = item
        first = item if self._first is None else int(self._first[item])
        row["copy_of"] = "" if first == item else str(self._ids[first])
        row |= remarks(state, item)
        row["set"] = "evaluation" if item in state.evaluation or item in self._held_out else "training"
        row["status"] = "skipped" if item in state.skipped else "unsure" if item in state.unsure else "open"
        if vote is None and item in self._aside:
            row["person"], row["time"] = self._aside[item]
        if vote is not None:
            payload = self._payloads.get(vote.event, {})
            rounds = payload.get("round", -1)
            row |= {
                "label": state.decided.get(item),
                "status": "undecided" if item in state.undecided else "labelled",
                "person": vote.annotator,
                "time": vote.time,
                "source": vote.role or str(payload.get("source", "")),
                "policy": payload.get("policy", "") or "",
                "utility": payload.get("utility"),
                "round": None if rounds is None or rounds < 0 else int(rounds),
                "seconds": payload.get("seconds"),
                "model_labels": payload.get("n_labelled"),
                "guess_shown": payload.get("guess_shown"),
                "changed_from": self._changed.get(item, ""),
                "probabilities_when_asked": self._when_asked(item, payload),
                "label_by_person": self._by_person(item),
                "instructions": state.version_at(vote.event) or None,
                "instructions_read": state.version_read(vote.annotator, vote.event) or None,
            }
            if item in self._decided:
                code, certainty = self._decided[item]
                row |= {"consensus": state.classes[code], "consensus_certainty": round(certainty, 4)}
        if self._what == FINISHED:
            self._finish(item, row)
        elif self._predict_item is not None:
            self._predict(item, row)
        for source, guess in self._guesses:
            if (code := int(guess[item])) >= 0:
                row["guess"], row["guess_source"] = state.classes[code], source
                break
        return {name: valid_texts(value) for name, value in row.items()}

    def _finish(self, item: int, row: dict[str, Any]) -> None:
        """Source of the label; a machine's comes with all that is known of it, and nothing of a later fit."""
        row |= self._machine.get(item, {"source": "person", "certificate": ""})

    def _by_person(self, item: int) -> dict[str, str] | None:
        """Label of each person by themselves, of an item that several labelled."""
        votes = self.state.votes.get(item, {})
        if len(votes) < 2:
            return None
        own = own_votes(votes, self.state)
        return {person: self.state.class_name(vote.by_themselves) for person, vote in own.items()}

    def _when_asked(self, item: int, payload: Mapping[str, Any]) -> dict[str, float] | None:
        """The likeliest classes as the model had them when the item was asked about."""
        guess = payload.get("guess")
        if guess is None:
            asks = self.state.asks
            ids = [payload["ask"]] if "ask" in payload else payload.get("asks", ())
            own_asks = (asks[ask] for ask in ids if ask in asks and asks[ask].item == item)
            guess = next((ask.guess for ask in own_asks), ())
        return None if not guess else {self.state.class_name(key): p for key, p in guess}

    def _predict(self, item: int, row: dict[str, Any]) -> None:
        model = self._model
        foretold = self._predict_item(item)
        row["probabilities_now"] = {name: round(p, 6) for name, p in foretold.items()}
        best = max(foretold, key=lambda name: foretold[name])
        row["confidence"] = round(foretold[best], 6)
        row["model"] = f"{self._model_name}, fit {model.number}"
        if self._what == "predictions" and row["label"] is None and row["status"] != "undecided":
            row |= {
                "label": best,
                "status": "predicted",
                "source": "model",
                "round": int(model.number),
                "model_labels": int(model.n_labelled),
            }


def label_table(session: Session | StoredLabels, what: str = "labels") -> list[dict[str, Any]]:
    """The rows of an export as a list.

    Args:
        session: of the project; `StoredLabels` have no columns of the items themselves.
        what: "labels", "everything", "predictions" or "finished" (`SCOPES`).

    Returns:
        For each item, in the pool's order: id, the item's own columns; label; status ("labelled",
        "undecided" where people's labels tie and none is given, "skipped", "unsure", "open",
        "predicted", "certified" in a finished set); person; source (why the item was asked about, or
        where its label comes from; in a finished set "person" or "machine"); round, policy, utility when
        it was asked; probabilities_when_asked (of up to five classes, by the model that chose the
        question; none where no model had); probabilities_now and
        confidence by the present model, and which (in a finished set the confidence of a machine's label
        when it was frozen, and the fit that gave it); seconds the person took; time; the class it was
        changed from; note; flag; what each person said where several labelled the item (label_by_person),
        what they mean together and how sure that is (consensus, consensus_certainty);
        what the most trusted guess of the project says of the item (guess), which (guess_source) and
        whether a guess was shown when the label was given; the version of the instructions that was in force
        when the label was given (instructions) and the one its person had read (instructions_read); the
        certificate of a machine's label; labels
        the model had seen; copy_of (id of the first item that it cannot be told from);
        set ("evaluation" for items never trained on); item (position). Of skipped and
        unsure items person and time say who said so.
    """
    with session.log.snapshot():
        return list(LabelRows(session, what))


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose cells are all plain: the nested ones as JSON."""
    nested = {name: row.get(name) for name in NESTED}
    return {
        **row,
        **{name: None if p is None else json.dumps(p, ensure_ascii=False) for name, p in nested.items()},
    }


def _heaviest_first(session: Session) -> list[tuple[str, Ints]]:
    """(source, [N] the class codes it says, -1 for none) of the guesses in use, the most trusted first."""
    weights = weights_of(session.model, session.fits.fitted_with)
    pairs = [
        (entry.source, entry.guess) for entry in session.guesses.now() if entry.on and entry.guess is not None
    ]
    pairs.sort(key=lambda pair: -weights.get(pair[0], 0.0))
    return [(source, guess.codes) for source, guess in pairs]


def _certified(session: Session | StoredLabels) -> dict[int, dict[str, Any]]:
    """Item -> its cells, of the machine's part of a finished set.

    Raises:
        InputError: no certificate stands.
    """
    state = None if isinstance(session, StoredLabels) else session.checks.state()
    if state is None or state.phase != "certified" or state.certificate is None:
        why = "" if state is None or not state.why else f" {state.why}"
        raise InputError(
            f"No certificate stands, so there is no finished set yet.{why} Finish says what is to do."
        )
    of, number = state.promise.of, state.frozen.round
    cells = {
        "status": "certified",
        "source": "machine",
        "model": of if number < 0 else f"fit {number}",
        "certificate": str(state.certificate["id"]),
    }
    return {
        item: cells | {"label": label, "confidence": None if np.isnan(confidence) else round(confidence, 6)}
        for item, (label, confidence) in machine_part(state, session.state).items()
    }


def own_cells(pool: Any) -> dict[str, Any]:
    """Name -> (item -> plain value), of the columns the items themselves have."""
    from workbench.pools.pool import plain

    items = pool.items
    own: dict[str, Any] = {"text": lambda item: items.show(item).text} if pool.kind == "text" else {}
    cells = items.cells if isinstance(items, RowItems | PhotoItems) else None
    if cells is not None:
        return {name: lambda item, column=column: plain(column[item]) for name, column in cells.items()}
    if isinstance(items, ArrayItems):
        return {name: lambda item, j=j: plain(items.values[item, j]) for j, name in enumerate(items.names)}
    if pool.kind == "image" or len(pool) == 0:
        return own  # an image need not be decoded to name it
    shown = {
        name: lambda item, name=name: (items.show(item).row or {}).get(name)
        for name in items.show(0).row or {}
    }
    return own | shown | own


def number_cells(pool: Any) -> dict[str, Callable[[int], float | None]]:
    """Name -> (item -> number), of columns of texts that the pool takes as numbers and that all are."""
    import pandas as pd

    from workbench.pools.cells import is_text
    from workbench.pools.features.table import NumberColumn, TableFeatureMap

    feature_map = pool.feature_map
    if not (isinstance(pool.items, RowItems) and isinstance(feature_map, TableFeatureMap)):
        return {}
    readers: dict[str, Callable[[int], float | None]] = {}
    for entry in feature_map.recipe:
        column = pool.items.cells.get(entry.name)
        if not isinstance(entry, NumberColumn) or column is None or not is_text(column):
            continue
        parts = []
        for start in range(0, len(column), _AT_ONCE):
            cells = entry.cells(pd.Series(column[start : start + _AT_ONCE]), feature_map.decimal)
            if cells.unreadable.any() or np.isinf(cells.values).any():
                break
            parts.append(np.where(cells.blank, np.nan, cells.values))
        else:
            values = np.concatenate(parts)
            numbers = values[~np.isnan(values)]
            # whole numbers beyond a double's digits, such as those of accounts, stay texts
            if not ((numbers == np.round(numbers)).all() and (np.abs(numbers) >= 2**53).any()):
                readers[entry.name] = _cell_of(values)
    return readers


def _cell_of(values: Floats) -> Callable[[int], float | None]:
    """Item -> its number, whole where all of them are; None where it is empty."""
    numbers = values[~np.isnan(values)]
    is_whole = bool((numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**53).all())

    def cell(item: int) -> float | None:
        value = float(values[item])
        return None if np.isnan(value) else int(value) if is_whole else value

    return cell


def _standing(events: list[Event]) -> list[Event]:
    """Those that no undo has taken back."""
    if not any(event.kind == "undo" for event in events):
        return events
    standing = EventFold(events).standing
    return [event for event in events if event.id in standing]


def _changed_from(events: Sequence[Event], state: ProjectState) -> dict[int, str]:
    """Item -> the class it had before the present one, where it had another."""
    history: dict[int, list[str]] = {}
    for event in events:
        for item, key in _labels_of(event):
            name = state.class_name(key)
            before = history.setdefault(item, [])
            if not before or before[-1] != name:
                before.append(name)
    changes = {}
    for item, names in history.items():
        current = state.labels.get(item)
        earlier = [name for name in names if name != current]
        if current is not None and earlier:
            changes[item] = earlier[-1]
    return changes


def _set_aside(events: Sequence[Event], state: ProjectState) -> dict[int, tuple[str, str]]:
    """Item -> who last skipped it or could not tell, and when; of items that have no label."""
    aside = {*state.skipped, *state.unsure}
    entries = {}
    for event in events if aside else ():
        if event.kind in ("skip", "unsure") and event.item in aside:
            entries[int(event.item)] = (event.annotator, event.time)
    return entries


def _labels_of(event: Event) -> list[tuple[int, str]]:
    if event.kind == "imported":  # people of a file who differ changed nothing
        return [(entry[0], entry[1]) for entry in event.payload["labels"] if not any(entry[2:3])]
    gives = event.kind in GIVING
    return [(item, key) for item, key in event.said if key is not None] if gives else []


HISTORY = "history"
"""The scope of an export that holds it."""
CARRIED_BY = ("csv", "parquet", "jsonl")
HISTORY_COLUMNS = ("event", "time", "person", "kind", "id", "label", "changed_from", "ids", "details")
NOT_PEOPLES = (
    *("round", "model-changed", "guesses-changed", "question-changed", "names-hidden"),
    *("checks-started", "certified", "picture-kept"),
)
"""Kinds of events that stay behind: fits, whose models a table does not hold, what was to be fitted, and
pictures, which are no text."""
SIGN = frozenset(("event", "kind", "details"))
"""Columns that only a history has; it is read by people and programs and not taken in again."""


def history_rows(
    events: Sequence[Event], ids: Sequence[str], names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The rows of a history, oldest first.

    Args:
        events: all of the project's, oldest first.
        ids: [N] of the pool's items.
        names: key -> name of the classes, as far as they are known.

    Yields:
        event (a running number), time, person, kind, id (where it is about one item), label and changed_from
        (the class that person gave it before), ids (JSON: number -> id of all the items it names), details
        (JSON: all that was recorded).
    """
    number_of: dict[int, int] = {}
    labels: dict[tuple[str, int], str] = {}
    for event in events:
        if event.kind in NOT_PEOPLES:
            continue
        number_of[event.id] = len(number_of) + 1
        payload = dict(event.payload)
        if event.kind in ("undo", "redo") and "of" in payload:
            payload["of"] = number_of.get(int(payload["of"]), 0)
        payload.pop("check", None)  # elsewhere nothing was frozen: it is a label like any other
        row: dict[str, Any] = dict.fromkeys(HISTORY_COLUMNS, "")
        row |= {
            "event": number_of[event.id],
            "time": event.time,
            "person": event.annotator,
            "kind": event.kind,
        }
        if event.item is not None:
            row["id"] = ids[event.item]
        key = payload.get("class")
        if isinstance(key, str):
            row["label"] = str(payload.get("name") or names.get(key, key))
            if event.item is not None:
                before = labels.get((event.annotator, event.item), "")
                row["changed_from"] = before if before != row["label"] else ""
                labels[event.annotator, event.item] = row["label"]
        row["ids"] = _text({str(item): str(ids[item]) for item in sorted(set(_items(payload)))})
        row["details"] = _text(payload)
        yield {name: valid_texts(value) for name, value in row.items()}


def _items(payload: Mapping[str, Any]) -> list[int]:
    """The items that what was recorded names."""
    items = [payload["item"]] if payload.get("item") is not None else []
    items += [*payload.get("items", ()), *payload.get("rejected", ())]
    items += [pair[0] for pair in payload.get("labels", ())]
    items += [ask["item"] for ask in payload.get("asks", ()) if isinstance(ask, Mapping)]
    return [int(item) for item in items]


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if document else ""
