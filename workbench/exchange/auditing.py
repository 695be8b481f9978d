"""Auditing a finished column: is what somebody else labelled good enough? No model, no project.

Everything is kept beside the file: which labels were audited, what was promised, and every answer. The order
of the draws is made from the labels' checksum: whoever throws the answers away draws the same ones again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.certificates import (
    Bound,
    Certificate,
    Check,
    Draws,
    Labelled,
    Promise,
    certificate_of,
    check_spent,
    checksum_of,
    listed_order,
    seed_of,
    tally,
)
from workbench.certificates.wealth import checks_to_go, looks_broken
from workbench.csv_writing import csv_text, plain_cell
from workbench.documents.certificates import AuditDocument
from workbench.documents.checking import checked
from workbench.errors import InputError
from workbench.exchange.manifests import json_text
from workbench.members import FolderMembers
from workbench.pools import read_rows
from workbench.pools.cells import read_texts
from workbench.reading import cut, listed, parse_json, reading
from workbench.sessions.finish_state import versions
from workbench.writing import chosen_file, write_whole

_ADVICE = "Move it away to begin anew; attempts then count from 1."
CANNOT_TELL = "?"
"""An answer: nobody can tell the class. It counts as a wrong label."""


class Audit:
    """A column that is checked against answers.

    Args:
        path: a table with the column.
        column: of the labels; rows without one are left out.
        error: allowed share of wrong labels.
        confidence: of all attempts at this file together.
        id: column of the ids; without it rows are called by their numbers from 1 on.
        kept: where the audit is kept; beside the file unless given.
        hidden: columns that whoever answers does not see, beside the labels.
        per_class: state precision and recall of each class in the certificate.
        read: options of how the file is read (`workbench.pools.tables.options.READING`).

    Raises:
        InputError: no table, no such column, or an audit that was kept and is damaged.
    """

    def __init__(
        self,
        path: Path | str,
        column: str,
        error: float = 0.05,
        confidence: float = 0.95,
        *,
        id: str = "id",
        kept: Path | None = None,
        hidden: tuple[str, ...] = (),
        per_class: bool = False,
        read: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.column = Path(path), column
        self._frame = table_of(self.path, read)
        self._id, self._hidden = id, {column, *hidden}
        ids = ids_of(self._frame, id, self.path)
        labels = column_of(self._frame, column, self.path)
        self._row = {item: row for row, (item, label) in enumerate(zip(ids, labels, strict=True)) if label}
        if len(self._row) < sum(map(bool, labels)):
            twice = next(item for n, item in enumerate(ids) if labels[n] and self._row[item] != n)
            raise InputError(f"{path} has two rows with the id {cut(twice)}. Name the column of ids: --id.")
        if not self._row:
            raise InputError(f"Column {cut(column)} of {path} is empty: there is nothing to audit.")
        self.labels = {item: labels[row] for item, row in self._row.items()}
        self.classes = sorted(set(self.labels.values()))
        self.kept = kept or self.path.with_name(f"{self.path.name}.audit.json")
        self._attempts = self._read()
        checksum, n = checksum_of(self.labels), len(self.labels)
        promise = Promise(n, error, confidence, (n,), 1, f"column {column}", per_class)
        earlier = [Promise.from_document(entry["promise"]) for entry in self._attempts]
        matches = [
            number
            for number, (entry, stored) in enumerate(zip(earlier, self._attempts, strict=True), 1)
            if (entry.error, entry.confidence, stored["labels_sha256"]) == (error, confidence, checksum)
        ]
        if not matches:
            check_spent(confidence, [(entry.confidence, entry.attempt) for entry in earlier])
        attempt = matches[-1] if matches else len(self._attempts) + 1
        self.promise = replace(promise, attempt=attempt)
        if not matches:
            self._attempts.append(
                {"labels_sha256": checksum, "promise": self.promise.document(), "answers": []}
            )
        self.seed = seed_of(checksum)
        self._given: dict[str, tuple[str, str]] = {
            entry[0]: (entry[1], entry[2]) for entry in self._attempts[self.promise.attempt - 1]["answers"]
        }
        self._ids = listed_order(self.labels)
        self._draws = Draws(len(self._ids), self.seed, self.promise.attempt)
        self._column_of_truth: dict[str, list[str]] = {}
        if not matches:
            self.save()  # the order is fixed before the first check

    def drawn(self, count: int) -> list[str]:
        """Ids of the first draws."""
        return [self._ids[place] for place in self._draws.first(count).tolist()]

    @property
    def checks(self) -> list[Check]:
        """Answered draws, up to the first that is open."""
        checks = []
        for number, item in enumerate(self.drawn(len(self._given)), 1):
            if item not in self._given:
                break
            answer, when = self._given[item]
            checks.append(Check(number, item, self.labels[item], answer, 0, time=when))
        return checks

    def open(self, count: int) -> list[str]:
        """The next ids to be answered, in the order of the draws."""
        items = self.drawn(len(self._given) + count)
        return [item for item in items if item not in self._given][:count]

    def shown(self, item: str) -> dict[str, str]:
        """Item as whoever answers sees it: its row without the label.

        Raises:
            InputError: no such item.
        """
        row = self._frame.iloc[self._row_of(item)]
        return {
            str(name): "" if value is None or value != value else str(value)
            for name, value in row.items()
            if name not in self._hidden
        }

    def answer(self, item: str, answer: str, *, save: bool = True) -> None:
        """Record an answer; on disk before this returns.

        Args:
            item: its id.
            answer: the class; "?" where nobody can tell.
            save: False, where more follow and `save` is called at the end.

        Raises:
            InputError: no such item, or an answer that was given already and is another one.
        """
        self._row_of(item)
        label = "" if answer == CANNOT_TELL else answer
        before = self._given.get(item)
        if before is not None and before[0] != label:
            raise InputError(
                f"Item {cut(item)} was answered as {cut(before[0])}; a check is not answered again."
            )
        if before is None:
            self._given[item] = label, datetime.now(UTC).isoformat(timespec="seconds")
            if save:
                self.save()

    def save(self) -> None:
        """Write the audit where it is kept."""
        answers = [[item, *entry] for item, entry in self._given.items()]
        self._attempts[self.promise.attempt - 1]["answers"] = answers
        write_whole(
            self.kept, json_text({"kind": "audit", "column": self.column, "attempts": self._attempts})
        )

    def truth(self, column: str, item: str) -> str:
        """Class of an item by another column, for a simulation.

        Raises:
            InputError: no such column, or nothing there.
        """
        if column not in self._column_of_truth:
            self._column_of_truth[column] = column_of(self._frame, column, self.path)
        return self._column_of_truth[column][self._row[item]] or CANNOT_TELL

    def certificate(self) -> Certificate:
        """Certificate of the answers so far; `holds` says whether it certifies anything."""
        return certificate_of(
            self.promise,
            self.labels,
            {},
            self.checks,
            project=self.path.name,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=versions(),
        )

    def progress(self) -> tuple[int, int, float, int | None]:
        """(checks, wrong ones, upper bound now, about how many to go or None)."""
        wrong = self._wrong
        bound = Bound(len(self.labels), self.promise.confidence_here, [self.promise.error])
        for answer in wrong.tolist():
            bound.add(answer)
        return len(wrong), int(wrong.sum()), bound.curve[-1], self.to_go

    @property
    def to_go(self) -> int | None:
        """About how many checks are to go; None where none would do at this rate."""
        wrong, promise = self._wrong, self.promise
        if tally(promise, wrong, [0] * len(wrong)).delivered():
            return 0
        return checks_to_go(wrong, promise.size, promise.error, promise.confidence_here)

    @property
    def hopeless(self) -> bool:
        """True if more checks are likely to be wasted: mend labels, and audit again."""
        wrong = self._wrong
        return looks_broken(int(wrong.sum()), len(wrong), self.promise.error) and self.to_go is None

    @property
    def decided(self) -> bool:
        """True if there is nothing more to ask: certified, hopeless, or all of them looked at."""
        return self.to_go == 0 or self.hopeless or not self.open(1)

    def _row_of(self, item: str) -> int:
        """The row of an item, which must be there."""
        if item not in self._row:
            raise InputError(f"There is no item {cut(item)} in {self.path}.")
        return self._row[item]

    @property
    def _wrong(self) -> Array:
        return np.array([check.wrong for check in self.checks], dtype=bool)

    def finished(self) -> list[Labelled]:
        """Every label, the checked ones as they were answered."""
        answers = {check.item: check.answer for check in self.checks}
        return [
            Labelled(item, answers[item] or label, "person")
            if item in answers
            else Labelled(item, label, "machine")
            for item, label in self.labels.items()
        ]

    def list_of_checks(self, count: int) -> str:
        """A CSV of the next checks, with a column to be filled in; it does not show the labels."""
        items = self.open(count)
        columns = [name for name in self._frame.columns if name not in self._hidden and name != self._id]
        rows = [[item, *(self.shown(item)[name] for name in columns), ""] for item in items]
        return csv_text(["id", *columns, "answer"], rows)

    def read_list(self, path: Path | str) -> int:
        """Take the answers of a filled-in list; rows without an answer stay open.

        Returns:
            How many were new.

        Raises:
            InputError: no table with id and answer, an unknown item, or another answer than before.
        """
        frame = table_of(path)
        before = len(self._given)
        # the list was written so that no spreadsheet runs its cells
        columns = ([plain_cell(cell) for cell in column_of(frame, name, path)] for name in ("id", "answer"))
        rows = zip(*columns, strict=True)
        backup = dict(self._given)
        try:
            for item, answer in rows:
                if answer.strip():
                    self.answer(item, answer.strip(), save=False)
        except InputError:
            self._given = backup
            raise
        self.save()
        return len(self._given) - before

    def _read(self) -> list[dict[str, Any]]:
        if not self.kept.exists():
            return []
        document = parse_json(
            FolderMembers(self.kept.parent).read(self.kept.name), str(self.kept), finite=True
        )
        checked(AuditDocument, document, str(self.kept), _ADVICE)
        if document["column"] != self.column:
            raise InputError(
                f"{self.kept} is of column {cut(document['column'])}. "
                "Name another file to keep this one in: --record."
            )
        attempts: list[dict[str, Any]] = document["attempts"]
        return attempts


def write_finished(
    audit: Audit, certificate: Certificate, folder: Path, *, protected: Iterable[Path | str | None] = ()
) -> list[Path]:
    """Write the certificate and the labels it came with.

    Args:
        audit: of the column.
        certificate: what it certifies.
        folder: where to; what an earlier certificate left there is replaced.
        protected: files and folders that are never written.

    Returns:
        The JSON, the page and the labels, CSV.

    Raises:
        InputError: as `chosen_file`.
    """
    stem = audit.path.stem
    rows = [[row.item, row.label, row.source] for row in audit.finished()]
    files = [
        (folder / f"{stem}.certificate.json", certificate.to_json()),
        (folder / f"{stem}.certificate.html", certificate.to_html()),
        (folder / f"{stem}.labels.csv", csv_text(["id", "label", "source"], rows)),
    ]
    paths = list(protected)
    for path, text in files:
        with chosen_file(path, protected=paths, replace=True) as file:
            file.write(text.encode())
    return [path for path, _ in files]


def read_certificate(path: Path | str) -> Certificate:
    """A certificate's JSON.

    Args:
        path: of the file.

    Raises:
        InputError: not there, or no certificate.
    """
    path = Path(path)
    return Certificate.from_json(FolderMembers(path.parent).read(path.name), str(path))


def read_finished(path: Path | str, *, label: str = "label", id: str = "id") -> list[Labelled]:
    """Rows of a finished set: an export of ours, or any table.

    Args:
        path: CSV, Parquet, JSON lines, a spreadsheet; its column "source" says "machine" or who else, and
            without one every row is a frozen label.
        label: column of the labels; rows without one are left out.
        id: column of the ids; without it rows are called by their numbers from 1 on.

    Returns:
        A row each.

    Raises:
        InputError: no table, or no such column.
    """
    path = Path(path)
    frame = table_of(path)
    labels = column_of(frame, label, path)
    ids = ids_of(frame, id, path)
    sources = column_of(frame, "source", path) if "source" in frame.columns else None
    return [
        Labelled(item, cell, None if sources is None else sources[row])
        for row, (item, cell) in enumerate(zip(ids, labels, strict=True))
        if cell
    ]


def table_of(path: Path | str, read: Mapping[str, Any] | None = None) -> Any:
    """A table of a file, as pandas has it.

    Args:
        path: of the file.
        read: options of how it is read (`workbench.pools.tables.options.READING`).

    Raises:
        InputError: no table.
    """
    frame = read_rows(str(path), **(read or {}))
    if not hasattr(frame, "columns"):
        raise InputError(f"{path} is no table; give CSV, Parquet, JSON lines or a spreadsheet.")
    frame.columns = [str(name) for name in frame.columns]
    return frame


def column_of(frame: Any, name: str, path: Path | str) -> list[str]:
    """Cells of a column as texts, "" where empty.

    Raises:
        InputError: no such column, or two of its name.
    """
    if list(frame.columns).count(name) != 1:
        has = listed(frame.columns, 12, quote=False) or "none"
        raise InputError(f"{path} has no column {cut(name)} that is its only one. It has: {has}.")
    with reading(str(path)):
        texts, blank = read_texts(frame[name], blanks=("",))
    return ["" if is_blank else text for text, is_blank in zip(texts.tolist(), blank.tolist(), strict=True)]


def ids_of(frame: Any, name: str, path: Path | str) -> list[str]:
    """Ids of rows, or their numbers from 1 on where there is no column of ids.

    Raises:
        InputError: an id that is empty.
    """
    if name not in frame.columns:
        return [str(row) for row in range(1, len(frame) + 1)]
    ids = column_of(frame, name, path)
    if "" in ids:
        raise InputError(f"Row {ids.index('') + 1} of {path} has no {cut(name)}. Give every row one.")
    return ids
