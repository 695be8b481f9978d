"""Finished sets out of files: what a certificate is verified against, and columns that are audited."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.certificates import Certificate, Labelled
from workbench.errors import InputError
from workbench.members import FolderMembers
from workbench.pools import read_rows
from workbench.pools.cells import read_texts
from workbench.reading import cut, listed, reading


def read_certificate(path: Path | str) -> Certificate:
    """A certificate's JSON.

    Args:
        path: of the file.

    Raises:
        InputError: not there, or no certificate.
    """
    path = Path(path)
    return Certificate.from_json(FolderMembers(path.parent).read(path.name), str(path))


def read_finished(
    path: Path | str, *, label: str = "label", id: str = "id", source: str = "source"
) -> list[Labelled]:
    """Rows of a finished set: an export of ours, or any table.

    Args:
        path: CSV, Parquet, JSON lines, a spreadsheet.
        label: column of the labels; rows without one are left out.
        id: column of the ids; without it rows are called by their numbers from 1 on.
        source: column that says "machine" or who else; without it every row is a frozen label.

    Returns:
        A row each.

    Raises:
        InputError: no table, or no such column.
    """
    path = Path(path)
    frame = table_of(path)
    labels = column_of(frame, label, path)
    ids = ids_of(frame, id, path)
    sources = column_of(frame, source, path) if source in frame.columns else None
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
