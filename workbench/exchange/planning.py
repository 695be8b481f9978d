"""Plan of an import of labels or of predictions, before anything is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.exchange.imports import import_labels
from workbench.exchange.predictions import Prediction, read_predictions
from workbench.guesses import unknown_names
from workbench.store import FileVote

if TYPE_CHECKING:
    from workbench.sessions import Session

ALIKE = 0.66
"""Share of letters from which on a new class's name may be a slip of one that is there."""


@dataclass(frozen=True)
class ImportPlan:
    """Changes that the labels of a file would make in a project.

    Attributes:
        pairs: (item, class name), or votes of persons, of the rows whose item is known.
        unknown: keys of the rows that name no item of the pool.
        new: how many items have no label yet.
        same: how many have this label already.
        differ: item -> (its label now, the one of the file).
        undecided: how many items without a label have votes that differ.
        notes: what is to be told of how the file was read.
        classes: new name of a class -> how many rows have it.
        alike: new name of a class -> the class it may be a slip of.
    """

    pairs: tuple[tuple[int, str] | FileVote, ...]
    unknown: tuple[str, ...]
    new: int
    same: int
    differ: Mapping[int, tuple[str, str]]
    classes: Mapping[str, int]
    alike: Mapping[str, str]
    undecided: int = 0
    notes: tuple[str, ...] = ()

    def labels(
        self,
        *,
        leave_out_unknown: bool = False,
        keep_mine: bool = False,
        named: Mapping[str, str] | None = None,
    ) -> list[tuple[int, str] | FileVote]:
        """The labels to take in, for `Session.items.import_labels`.

        Args:
            leave_out_unknown: go on without the rows whose item the pool does not have.
            keep_mine: leave items that have another label as they are.
            named: new name of a class -> the class its rows are to have.

        Raises:
            InputError: rows of unknown items that nobody said to leave out, or nothing left to take in.
        """
        if self.unknown and not leave_out_unknown:
            raise InputError(
                f"{len(self.unknown):,} rows name no item of the pool: leave them out, or mend them."
            )
        renames = named or {}
        labels = [
            row._replace(label=renames.get(row.label, row.label))
            if isinstance(row, FileVote)
            else (row[0], renames.get(row[1], row[1]))
            for row in self.pairs
            if not (keep_mine and row[0] in self.differ)
        ]
        if not labels:
            raise InputError("No label is left to take in.")
        return labels

    def words(self) -> str:
        """The plan in a line for people."""
        parts = [f"{self.new:,} new", f"{len(self.differ):,} differ" if self.differ else ""]
        parts += [f"{self.same:,} are there already" if self.same else ""]
        parts += [f"{self.undecided:,} on which people differ" if self.undecided else ""]
        parts += [f"{len(self.unknown):,} of unknown items" if self.unknown else ""]
        n = len(self.classes)
        parts += [
            f"{n:,} new class{'' if n == 1 else 'es'}: {', '.join(list(self.classes)[:5])}" if n else ""
        ]
        return ", ".join(filter(None, parts))


def plan_import(data: bytes, session: Session, format: str, column: str = "") -> ImportPlan:
    """Look through a file of labels without taking anything in.

    Args:
        data: the file.
        session: of the project.
        format: as for `import_labels`.
        column: as for `import_labels`.

    Raises:
        InputError: as `import_labels`, but for rows whose item the pool does not have.
    """
    unknown: list[str] = []
    notes: list[str] = []
    pairs = import_labels(
        data,
        session.pool,
        format,
        session.classes,
        unknown=unknown,
        column=column,
        question=session.project.question,
        notes=notes,
    )
    state = session.state
    labels = {**state.labels, **dict.fromkeys(state.undecided)}
    known_classes = set(session.classes)
    file_labels = _labels_brought(pairs)
    differ = {
        item: (labels[item] or "undecided", name or "people differ")
        for item, name in file_labels.items()
        if labels.get(item, name) != name
    }
    same = sum(labels.get(item, "") == name for item, name in file_labels.items())
    undecided = sum(name is None and item not in labels for item, name in file_labels.items())
    classes = Counter(row[1] for row in pairs if row[1] not in known_classes)
    slips = {name: _slip(name, session.classes) for name in classes}
    return ImportPlan(
        tuple(pairs),
        tuple(unknown),
        len(file_labels) - same - len(differ) - undecided,
        same,
        differ,
        dict(classes),
        {name: slip for name, slip in slips.items() if slip},
        undecided,
        tuple(notes),
    )


def _labels_brought(rows: Sequence[tuple[int, str] | FileVote]) -> dict[int, str | None]:
    """Item -> the class that a file gives it; None where its people differ."""
    labels: dict[int, str | None] = {}
    final: dict[int, str] = {}
    for row in rows:
        if isinstance(row, FileVote) and row.final:
            final[row.item] = row.label
        labels[row[0]] = row[1] if labels.get(row[0], row[1]) == row[1] else None
    return labels | final


@dataclass(frozen=True)
class PredictionPlan:
    """Predictions of a file for a project's items.

    Attributes:
        said: (item, class name, confidence or None) of the rows whose item is known.
        unknown: keys of the rows that name no item of the pool; they are left out.
        matched: how many items have a prediction of one of the classes.
        classes: name that is no class -> how many items have it.
        alike: such a name -> the class it may be another spelling of.
        n_items: of the pool.
    """

    said: tuple[Prediction, ...]
    unknown: tuple[str, ...]
    matched: int
    classes: Mapping[str, int]
    alike: Mapping[str, str]
    n_items: int

    def words(self) -> str:
        """The plan in a line for people."""
        n, k = sum(self.classes.values()), len(self.classes)
        parts = [f"{self.matched:,} of {self.n_items:,} items matched"]
        if n:
            names = f"{', '.join(list(self.classes)[:5])}{', ...' if k > 5 else ''}"
            parts.append(f"{n:,} of {'a class' if k == 1 else f'{k:,} classes'} not here: {names}")
        if self.unknown:
            n = len(self.unknown)
            parts.append(f"{n:,} row{'' if n == 1 else 's'} of unknown items, left out")
        return ", ".join(parts)


def plan_predictions(data: bytes, name: str, session: Session) -> PredictionPlan:
    """Look through a file of predictions without taking anything in.

    Args:
        data: the file.
        name: its name, whose ending says what it is.
        session: of the project.

    Raises:
        InputError: as `read_predictions`.
    """
    unknown: list[str] = []
    predictions = read_predictions(data, name, session.pool, unknown=unknown)
    strange = unknown_names((label for _, label, _ in predictions), session.classes)
    slips = {label: _slip(label, session.classes) for label in strange}
    return PredictionPlan(
        tuple(predictions),
        tuple(unknown),
        len(predictions) - sum(strange.values()),
        strange,
        {label: slip for label, slip in slips.items() if slip},
        len(session.pool),
    )


def _slip(name: str, classes: Sequence[str]) -> str:
    """The class that a name may be a slip of; "" for none."""
    plain = {class_name.casefold().strip(): class_name for class_name in classes}
    close = get_close_matches(name.casefold().strip(), list(plain), 1, ALIKE)
    return plain[close[0]] if close else ""
