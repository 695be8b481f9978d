"""A file of another program, and its right items, classes, uses and cells."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.pools import inspect_table, load_pool, read_rows
from workbench.pools.formats import format_of
from workbench.pools.formats.files import File
from workbench.pools.tables.uses import is_named_id

N = 24
X = [round(0.5 + 1.25 * (i % 7), 2) for i in range(N)]
AB = [("cat", "dog")[i % 2] for i in range(N)]
HALF = [label if i < 10 else None for i, label in enumerate(AB)]
IDS = [f"i{i:02d}" for i in range(N)]
TEXTS = [f"the message number {i} about {('trains', 'boats', 'planes')[i % 3]} and more" for i in range(N)]


@dataclass(frozen=True)
class WildFile:
    """One file or folder and what is right about it.

    Attributes:
        name: of the file or folder.
        data: of the file; of a folder path -> bytes.
        n: items.
        kind: of the pool.
        ids: the first ones.
        labels: classes of the first items, None where one has none.
        classes: all of them.
        uses: column -> what it is used for.
        cells: column -> its first cells as they are read; None is an empty one.
        pixels: item -> its shape and its first pixel.
        notes: words that some note has to hold.
        refused: words of the message that the file gets without `options`; "" where it opens at once.
        options: with which it opens.
    """

    name: str
    data: bytes | Mapping[str, bytes]
    n: int = N
    kind: str = "table"
    ids: Sequence[str] = ()
    labels: Sequence[str | None] = ()
    classes: Sequence[str] = ()
    uses: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    pixels: Mapping[int, tuple[tuple[int, ...], Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    refused: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """Faults of how it is read, a line each."""
        with TemporaryDirectory() as place:
            source: Any = self.data
            if not isinstance(source, bytes):
                source = Path(place) / self.name
                for path, data in self.data.items():  # type: ignore[union-attr]
                    (source / path).parent.mkdir(parents=True, exist_ok=True)
                    (source / path).write_bytes(data)
            try:
                return self._faults(source)
            except InputError as error:
                return [f"refused: {error}"]

    def _faults(self, source: Any) -> list[str]:
        name = self.name if isinstance(source, bytes) else None
        usual: dict[str, Any] = {"features": "shapes"} if self.kind == "image" else {}
        if format_of(File.of(source, name)).reader.inspect is not None:
            usual = {"columns": "auto"}
        found: list[str] = []
        if self.refused:
            try:
                load_pool(source, file_name=name, **usual)
                found.append("it opens at once")
            except InputError as error:
                found += [] if self.refused in str(error) else [f"refused with {error}"]
        pool = load_pool(source, file_name=name, **{**usual, **self.options})
        labels = [pool.classes[c] if c >= 0 else None for c in (pool.truth if pool.truth is not None else ())]
        for what, there, right in (
            ("items", len(pool), self.n),
            ("kind", pool.kind, self.kind),
            ("ids", list(pool.items.ids[: len(self.ids)]), list(self.ids)),
            ("labels", labels[: len(self.labels)], list(self.labels)),
            *([("classes", list(pool.classes), list(self.classes))] if self.classes else []),
        ):
            found += [] if there == right else [f"{what}: {there}, not {right}"]
        said = " ".join(pool.notes)
        found += [f"no note of {words!r}: {said}" for words in self.notes if words not in said]
        for item, (shape, first) in self.pixels.items():
            image = np.asarray(pool.items.show(item).image)
            if image.shape != shape or image[0, 0].tolist() != first:
                found.append(f"picture {item} is {image.shape} {image[0, 0].tolist()}, not {shape} {first}")
        return found + (self._of_columns(source, name) if self.uses or self.cells else [])

    def _of_columns(self, source: Any, name: str | None) -> list[str]:
        report = inspect_table(source, file_name=name, **{"columns": "auto", **self.options})
        uses = {column.name: column.use.use for column in report.columns if column.use is not None}
        found = [f"{c} is {uses.get(c)}, not {use}" for c, use in self.uses.items() if uses.get(c) != use]
        reading = {k: v for k, v in self.options.items() if k in ("sheet", "header", "decimal", "split")}
        rows = read_rows(source, file_name=name, **reading) if self.cells else None
        for column, cells in self.cells.items():
            there = [_plain(cell) for cell in rows[column].iloc[: len(cells)]] if column in rows else []
            found += [] if there == list(cells) else [f"{column} holds {there}, not {list(cells)}"]
        lost = [name for name, use in uses.items() if use == "leave out" and not is_named_id(name)]
        said = " ".join(problem.message for problem in report.problems)
        return found + [f"{column} is lost without a word" for column in lost if repr(column) not in said]


def _plain(cell: Any) -> Any:
    if str(cell) in ("None", "nan", "NaT", "<NA>", ""):
        return None
    return cell.isoformat() if hasattr(cell, "isoformat") else getattr(cell, "item", lambda: cell)()


def table_of(**columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


def png(values: Any, kind: str = "PNG", mode: str | None = None, **options: Any) -> bytes:
    """A file of a picture."""
    from PIL import Image

    stream = io.BytesIO()
    image = Image.fromarray(np.asarray(values))
    (image if mode is None else image.convert(mode)).save(stream, kind, **options)
    return stream.getvalue()
