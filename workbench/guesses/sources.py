"""Guesses by a short text ("names", "column:NAME", "columns:p_*"), and the same again for new rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.guesses.columns import PREFIXES, columns_like, is_empty, of_cells, of_probabilities
from workbench.guesses.guess import Guess
from workbench.guesses.names import Terms, descriptions, of_class_vectors, of_names, terms_of
from workbench.pools.cells import texts_of
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.pool import FeatureMap, Pool, plain

_CONFIDENCE = re.compile("conf|score|certain|prob", re.IGNORECASE)
_MOST_CLASSES = 200  # of a column; more different values are no classes
KNOWN = "names, column:NAME, column:NAME:CONFIDENCE, columns:PREFIX*"


def guesses_of(sources: Sequence[str | Guess], pool: Pool) -> tuple[Guess, ...]:
    """Guesses at a pool; texts as in `guess_of`."""
    if isinstance(sources, str | Guess):
        sources = [sources]
    return tuple(guess_of(source, pool) for source in sources)


def guess_of(
    source: str | Guess,
    pool: Pool,
    classes: Sequence[str] | None = None,
    *,
    guidance: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Guess:
    """A guess at a pool from what its items hold.

    Args:
        source: "names" (the classes', of texts, and of vectors that came with some of classes),
            "column:NAME" (classes or JSON cells of a table),
            "column:NAME:CONFIDENCE", "columns:p_*" (a column of numbers a class), or a guess made already.
        pool: of N items.
        classes: names of the C classes, by code; the pool's unless given.
        guidance: class -> what belongs to it, for names.
        mapping: names in the column -> names of classes.

    Raises:
        InputError: no such source, or one that says nothing of this pool.
    """
    classes = list(pool.classes if classes is None else classes)
    if isinstance(source, Guess):
        if source.values.shape != (len(pool), len(classes)):
            raise InputError(
                f"{source.source} is a guess at {list(source.values.shape)} items and classes; the pool has "
                f"{[len(pool), len(classes)]}."
            )
        return source
    kind, _, name = str(source).partition(":")
    if source == "names":
        return _by_names(pool, classes, guidance)
    if kind not in ("column", "columns") or not name:
        raise InputError(f"Unknown guess {source!r}. Known: {KNOWN}.")
    columns = _columns(pool)
    names = _columns_named(source, columns)
    if not names:
        raise InputError(f"No column is like {name!r}. Columns: {', '.join(columns[:12])}.")
    return _of_columns(source, cells_of(pool, names), classes, mapping)


def columns_of(source: str, columns: Sequence[str]) -> list[str]:
    """The columns of a table that a source reads.

    Args:
        source: as in `guess_of`.
        columns: names of the table's.
    """
    return [name for name in _columns_named(source, columns) if name in columns]


def _columns_named(source: str, columns: Sequence[str]) -> list[str]:
    """The columns that a source reads, also those that the table has not: the class, then its confidence."""
    kind, _, name = source.partition(":")
    if kind == "columns":
        return list(columns_like(name, columns))
    if kind != "column" or not name:
        return []
    return [name] if name in columns or ":" not in name else list(name.rpartition(":")[::2])


def _of_columns(
    source: str,
    cells: Mapping[str, Sequence[Any]],
    classes: Sequence[str],
    mapping: Mapping[str, str] | None,
    scale: str = "",
) -> Guess:
    """A guess of the cells of its columns, by name, in the order of `_columns_named`."""
    kind, _, pattern = source.partition(":")
    if kind == "columns":
        table = list(zip(*cells.values(), strict=True))
        of_class = list(columns_like(pattern, list(cells)).values())
        return of_probabilities(table, classes, names=of_class, source=source, scale=scale)
    (name, values), *beside = cells.items()
    confidence = beside[0][1] if beside else None
    return of_cells(
        values, classes, confidence=confidence, mapping=mapping, source=f"column:{name}", scale=scale
    )


def sources_of_columns(names: Sequence[str]) -> list[str]:
    """The sources that columns marked as guesses make: "column:A", "column:A:CONFIDENCE", "columns:p_*".

    Columns of one prefix are one guess; a column named as a confidence belongs to the class before it.

    Args:
        names: of the marked columns, in the order of the table.
    """
    sources: list[str] = []
    for name in names:
        prefix = next((p for p in PREFIXES if name.lower().startswith(p)), "")
        mates = [mate for mate in names if prefix and mate.lower().startswith(prefix)]
        source = f"columns:{name[: len(prefix)]}*" if len(mates) > 1 else f"column:{name}"
        last = sources[-1] if sources else ""
        if (
            len(mates) < 2
            and _CONFIDENCE.search(name)
            and last.startswith("column:")
            and last.count(":") == 1
        ):
            sources[-1] = f"{last}:{name}"
        elif source not in sources:
            sources.append(source)
    return sources


def classes_in(source: str, pool: Pool, among: int | None = None) -> list[str]:
    """The classes that a column names, where nobody named any: sorted; none where there are too many.

    Args:
        source: as in `guess_of`.
        pool: of N items.
        among: rows looked at, the first ones; all unless given.

    Raises:
        InputError: no such column.
    """
    kind, _, name = source.partition(":")
    if kind == "columns":
        return sorted(set(columns_like(name, _columns(pool)).values()))
    if kind != "column":
        return []
    column = columns_of(source, _columns(pool))
    if not column:
        raise InputError(f"Pool {pool.name!r} has no column {name!r}.")
    values = {str(v).strip() for v in cells_of(pool, column[:1])[column[0]][:among] if not is_empty(v)}
    plain_names = values and not any(v.startswith("{") for v in values) and len(values) <= _MOST_CLASSES
    return sorted(values) if plain_names else []


def _by_names(pool: Pool, classes: Sequence[str], guidance: Mapping[str, str] | None) -> Guess:
    class_vectors = class_vectors_of(pool.feature_map, classes)
    if class_vectors is not None:
        return of_class_vectors(np.asarray(pool.features), *class_vectors, classes)
    if pool.kind != "text":
        raise InputError(
            f"The names of classes say something of texts; pool {pool.name!r} is a {pool.kind}. For photos, "
            "give vectors of the classes from the same encoder (class_vectors and class_names in the NPZ)."
        )
    vectors = None
    if uses_encoder(pool):  # an encoder of texts says more than words do
        vectors = pool.features, np.asarray(pool.feature_map.transform(descriptions(classes, guidance)))
    return of_names(texts_in(pool), classes, guidance, vectors=vectors)


def class_vectors_of(feature_map: FeatureMap, classes: Sequence[str]) -> tuple[Array, Array] | None:
    """Features [C, D] of the classes, and which of them are known, where a pool's vectors came with some."""
    return feature_map.of_classes(classes) if isinstance(feature_map, VectorFeatureMap) else None


def names_speak(pool: Pool) -> bool:
    """True if the names of classes can be a guess: of texts, and where the classes have vectors."""
    return pool.kind == "text" or class_vectors_of(pool.feature_map, ()) is not None


def texts_in(pool: Pool) -> Sequence[str]:
    """[N] the texts of a pool of texts."""
    texts = getattr(pool.items, "texts", None)
    return texts if texts is not None else [pool.items.show(i).text or "" for i in range(len(pool))]


def uses_encoder(pool: Pool) -> bool:
    """True if names are compared by the pool's own features: those of an encoder that reads texts."""
    if isinstance(pool.feature_map, PiecesFeatureMap):
        return False
    try:
        tried = np.asarray(pool.feature_map.transform(["a text"]))
    except (InputError, TypeError, ValueError, AttributeError):
        return False
    return tried.shape[1:] == pool.features.shape[1:]


def _columns(pool: Pool) -> list[str]:
    cells = getattr(pool.items, "cells", None)
    if cells is not None:
        return [str(name) for name in cells]
    row = pool.items.show(0).row if len(pool) else None
    return [str(name) for name in row or {}]


def cells_of(pool: Pool, names: Sequence[str]) -> dict[str, list[Any]]:
    """Cells of a pool's columns, also of those that are no features, by name.

    Args:
        pool: of N items.
        names: of columns.

    Raises:
        InputError: there is no such column.
    """
    columns = _columns(pool)
    missing = [name for name in names if name not in columns]
    if missing:
        raise InputError(
            f"Pool {pool.name!r} has no column {missing[0]!r}. "
            + (f"Columns: {', '.join(columns[:12])}." if columns else "Its items are no rows of a table.")
        )
    cells = getattr(pool.items, "cells", None)
    if cells is not None:
        by_name = {str(name): values for name, values in cells.items()}
        return {name: [plain(value) for value in by_name[name]] for name in names}
    out: dict[str, list[Any]] = {name: [] for name in names}
    for i in range(len(pool)):
        row = pool.items.show(i).row or {}
        for name in names:
            out[name].append(row.get(name))
    return out


@dataclass(frozen=True, eq=False)
class SavedGuesses:
    """The sources a model was fitted with, ready for new rows.

    Attributes:
        classes: names of the C classes, by code.
        sources: {"source", "deviation", "scale"} each, and "mapping" where there is one. Deviation and scale
            are those of the pool, so that a new row means the same whatever rows come with it.
        guidance: class -> what belongs to it.
        terms: the pool's words and pieces, by which names are compared; None where they are not.
    """

    classes: tuple[str, ...]
    sources: tuple[Mapping[str, Any], ...]
    guidance: Mapping[str, str]
    terms: Terms | None = None

    @classmethod
    def of(cls, pool: Pool, chosen: Mapping[str, Any], classes: Sequence[str]) -> SavedGuesses:
        """Values that `chosen` needs of a pool.

        Args:
            pool: the model was fitted on.
            chosen: {"sources": [{"source", "mapping"}], "guidance"}, as fits record them.
            classes: by code.
        """
        guidance = dict(chosen.get("guidance") or {})
        entries, terms = [], None
        for source in chosen["sources"]:
            entry = dict(source)
            try:
                guess = guess_of(
                    source["source"], pool, classes, guidance=guidance, mapping=source.get("mapping")
                )
                entry |= {"deviation": guess.deviation, "scale": guess.scale}
            except InputError:  # gone since: it counted nothing in the fit, and counts nothing here
                entry["deviation"] = 0.0
            entries.append(entry)
            if source["source"] == "names" and pool.kind == "text" and not uses_encoder(pool):
                terms = terms_of(texts_in(pool))
        return cls(tuple(classes), tuple(entries), guidance, terms)

    def mean(self, rows: Any, feature_map: FeatureMap, features: Array) -> tuple[Floats, tuple[str, ...]]:
        """The guesses at new rows.

        Args:
            rows: a DataFrame or an array [n, ...], as the feature map takes them.
            feature_map: of the model.
            features: [n, D] of these rows.

        Returns:
            [J, n, C] and a sentence for each source that says nothing of some of them.
        """
        out, notes = np.zeros((len(self.sources), len(features), len(self.classes))), []
        for place, entry in enumerate(self.sources):
            source = str(entry["source"])
            try:
                guess = self._of(entry, rows, feature_map, features)
            except InputError as error:
                notes.append(f"The guess {source} counts nothing for these rows: {error}")
                continue
            scale = float(entry["deviation"])
            out[place] = guess.values * (guess.deviation / scale) if scale > 0 else 0.0
            missing = int((~guess.known).sum())
            if missing:
                notes.append(f"The guess {source} says nothing of {missing} rows.")
        return out, tuple(notes)

    def _of(self, entry: Mapping[str, Any], rows: Any, feature_map: FeatureMap, features: Array) -> Guess:
        source, classes, scale = str(entry["source"]), self.classes, str(entry.get("scale", ""))
        if source == "names":
            if isinstance(feature_map, VectorFeatureMap):
                class_vectors = feature_map.of_classes(classes)
                if class_vectors is None:
                    raise InputError("its classes have no vectors.")
                return of_class_vectors(features, *class_vectors, classes)
            vectors = None
            if self.terms is None:
                described: Any = descriptions(classes, self.guidance)
                vectors = features, np.asarray(feature_map.transform(described))
            texts = texts_of(rows, str(getattr(feature_map, "column", "text")))
            return of_names(texts, classes, self.guidance, vectors=vectors, terms=self.terms)
        names = [str(name) for name in getattr(rows, "columns", ())]
        columns = _columns_named(source, names)
        if not columns or not set(columns) <= set(names):
            raise InputError("the rows lack its column.")
        cells = {name: rows[name].tolist() for name in columns}
        if all(is_empty(cell) for cell in cells[columns[0]]):
            raise InputError("its column is empty.")
        return _of_columns(source, cells, classes, entry.get("mapping"), scale)

    def to_json(self) -> dict[str, Any]:
        """Without the terms; `from_json` is the way back."""
        return {
            "classes": list(self.classes),
            "sources": [dict(source) for source in self.sources],
            "guidance": dict(self.guidance),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], arrays: Mapping[str, Array] | None) -> SavedGuesses:
        """Values that `to_json` and `arrays` gave."""
        guesses = cls(tuple(document["classes"]), tuple(document["sources"]), dict(document["guidance"]))
        return guesses if not arrays else replace(guesses, terms=Terms.of_arrays(arrays))

    def arrays(self) -> dict[str, Array]:
        """The terms as plain arrays; none where there are none."""
        return {} if self.terms is None else self.terms.arrays()
