"""The pool an examined table makes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import EXACT, ISO, Numbers, date_format, plain_text, read_numbers
from workbench.pools.features.cache import WorkCache, cached_features
from workbench.pools.features.pieces import TEXTS_AT_ONCE, PiecesFeatureMap
from workbench.pools.features.table import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    RecipeColumn,
    TableFeatureMap,
    TextColumn,
)
from workbench.pools.features.vectors import without_features
from workbench.pools.fingerprints import fingerprint_values, fingerprint_words
from workbench.pools.images.photos import Decoding, Described, dropped_note, photo_pool
from workbench.pools.notebooks import counted
from workbench.pools.pool import FeatureMap, Pool, RowItems, RowNumbers, TextItems
from workbench.pools.tables.columns import Column, typical
from workbench.pools.tables.examination import Examination
from workbench.pools.tables.report import refusal
from workbench.progress import part
from workbench.reading import cut

_BLANK_WORD = np.uint64(0xB1A9)
_AT_ONCE = 50_000  # cells


def table_pool(table: Examination, stem: str) -> Pool:
    """The pool a table makes.

    Args:
        table: examined.
        stem: the pool's name, unless the options say another.

    Returns:
        The pool; its notes say what was dropped, filled in or recoded.

    Raises:
        InputError: something stands in its way; the worst of it, with what to do.
    """
    in_the_way = table.found.in_the_way(strict=table.options.strict)
    if in_the_way:
        every = " strict=False takes every guess." if in_the_way[0].severity == "guess" else ""
        raise InputError(refusal(in_the_way) + every)
    pool = _pool(table, table.options.name or stem)
    encoding = {"encoding": table.raw.encoding} if table.raw.encoding not in ("", "utf-8") else {}
    uses = {column: use.as_option() for column, use in table.uses.items()}
    return replace(pool, uses=uses, reading=encoding | table.options.reading)


def _pool(table: Examination, name: str) -> Pool:
    rows = np.flatnonzero(table.keep)
    if table.text_column:
        return _text_pool(table, rows, name)
    if table.pictures is not None:
        return _picture_pool(table, rows, name)
    recipe: list[RecipeColumn] = []
    features = []
    for column in table.columns.values():
        entry = _entry(table, column, rows)
        recipe.append(entry)
        features.append(_encoded(table, entry, column, rows))
    mixed = any(isinstance(entry, TextColumn) for entry in recipe)
    if mixed:
        recipe, features = _beside_texts(table, recipe, rows)
    feature_map = TableFeatureMap(tuple(recipe), table.options.decimal or "")
    frame = table.frame if len(rows) == len(table.frame) else table.frame.iloc[rows]
    names = table.item_columns
    return Pool(
        name=name,
        kind="table",
        features=np.column_stack(features),
        classes=table.classes,
        truth=None if table.truth is None else table.truth[rows],
        items=RowItems(item_ids(table, rows), {column: frame[column].array for column in names}),
        feature_map=feature_map,
        fingerprints=_fingerprints(table, names, rows),
        title=table.raw.name,
        description=f"{len(rows):,} items from {table.raw.name}.",
        plane=len(feature_map.columns) == 2 and all(type(column) is NumberColumn for column in recipe),
        common_scale=mixed,
        notes=table.found.notes,
    )


def _entry(table: Examination, column: Column, rows: Ints) -> RecipeColumn:
    """Entry of the recipe for a column's use, learnt from the rows that stay."""
    name, use = column.name, column.use
    has_gaps = bool(column.gone[rows].any())
    if use.use == "text":
        filled = [str(text) for text in column.texts[rows][~column.gone[rows]]]
        return TextColumn(name, PiecesFeatureMap.of(filled, name, len(table.classes)))
    if use.use == "category":
        counts = Counter(str(text) for text in column.texts[table.keep & ~column.gone])
        categories = sorted(counts)
        mode = max(categories, key=counts.__getitem__) if use.empty == "median" else None
        return CategoryColumn(name, tuple(categories), has_gaps and use.empty == "own", mode)
    fill = typical(column.cells.values[table.keep & ~column.gone])
    if use.use == "date":
        form = use.format or date_format(column.series)  # other rows are read by it, whatever they look like
        return DateColumn(name, fill, has_gaps and use.empty == "own", format=ISO if form is None else form)
    return NumberColumn(name, fill, has_gaps and use.empty == "own", decimal=use.decimal)


def _encoded(table: Examination, entry: RecipeColumn, column: Column, rows: Ints) -> Array:
    series = column.series.iloc[rows]
    if isinstance(entry, NumberColumn):
        return entry.encode(series, Numbers(*(part[rows] for part in column.cells)))
    return entry.read(series, table.options.decimal or "")


def _beside_texts(
    table: Examination, recipe: Sequence[RecipeColumn], rows: Ints
) -> tuple[list[RecipeColumn], list[Array]]:
    """The recipe of texts beside other columns, and its features.

    Every other column has variance 1, all texts together as much as all of them: neither drowns the other,
    and one scale serves for all.
    """
    n_others = sum(not isinstance(entry, TextColumn) for entry in recipe)
    n_texts = len(recipe) - n_others
    scaled: list[RecipeColumn] = []
    features = []
    for entry in recipe:
        column = table.columns[entry.name]
        if isinstance(entry, NumberColumn):
            cells = Numbers(*(part[rows] for part in column.cells))
            scaled_entry: RecipeColumn = entry.beside_texts(column.series.iloc[rows], cells)
        else:
            values = _encoded(table, entry, column, rows)
            spread = float(np.sqrt(values.var(axis=0, dtype=np.float64).sum())) or 1.0
            if isinstance(entry, TextColumn):
                spread /= np.sqrt(max(n_others, 1) / n_texts)
            scaled_entry = replace(entry, scale=spread)
        scaled.append(scaled_entry)
        features.append(_encoded(table, scaled_entry, column, rows))
    return scaled, features


def _text_pool(table: Examination, rows: Ints, name: str) -> Pool:
    column = table.text_column
    texts = [str(text) for text in table.columns[column].texts[rows]]
    words = fingerprint_words([fingerprint_values(texts)])
    feature_map: FeatureMap
    if table.options.features is not None:  # vectors take their place
        feature_map, features = without_features(table.options.features, len(texts))
        noun = ""
    else:
        n_classes, noun = len(table.classes), "directions of words and pieces of words"

        def learn(cache: WorkCache) -> tuple[FeatureMap, Array]:
            with part(0.0, 0.8):
                pieces_map = cache.map(lambda: PiecesFeatureMap.of(texts, column, n_classes))
            with part(0.8, 1.0):
                return pieces_map, cache.rows(
                    "texts",
                    len(texts),
                    lambda start, stop: pieces_map.transform(texts[start:stop]),
                    TEXTS_AT_ONCE,
                    "Features of the texts",
                )

        def replay(pieces_map: FeatureMap, places: Ints) -> Array:
            return pieces_map.transform([texts[i] for i in places])

        feature_map, features = cached_features(
            "pieces", words, (column, n_classes), learn, replay, column=column
        )
    note = f"Features are {len(feature_map.columns)} {noun} of {column!r}."
    other_columns = [name for name in table.item_columns if name != column]
    cells = {name: table.frame[name].iloc[rows].array for name in other_columns}
    side_columns = tuple(name for name in other_columns if table.uses[name].use == "shown")
    return Pool(
        name=name,
        kind="text",
        features=features,
        classes=table.classes,
        truth=None if table.truth is None else table.truth[rows],
        items=TextItems(item_ids(table, rows), texts, cells or None, side_columns),
        feature_map=feature_map,
        fingerprints=words,
        title=table.raw.name,
        description=f"{len(rows):,} texts from {table.raw.name}.",
        common_scale=True,
        notes=(*table.found.notes, *((note,) if noun else ())),
    )


def _picture_pool(table: Examination, rows: Ints, name: str) -> Pool:
    """The pool of the pictures that a column names."""
    pictures, options = table.pictures, table.options
    notes = table.found.notes
    failed = pictures.fetched(rows.tolist())
    if failed:
        first, why = next(iter(failed.items()))
        words = f"{counted(len(failed), 'picture')} could not be fetched, the first {cut(first)}: {why}"
        if options.missing_files != "drop":
            raise InputError(f'{words}. Leave such rows out with missing_files="drop", or try again.')
        notes = (*notes, f"{words}; left out.")
        rows = np.array([i for i in rows.tolist() if pictures.names[i] not in failed], dtype=np.int64)
    names = [pictures.names[i] for i in rows]

    def described(decoding: Decoding) -> Described:
        dropped = (dropped_note(names, decoding.dropped),) if decoding.dropped else ()
        if len(decoding.kept) < 2:
            few = counted(len(decoding.kept), "picture")
            words = f"{table.raw.name} names {few} that can be read; a pool needs at least 2."
            raise InputError(" ".join((words, *dropped)))
        kept_rows, ids = rows[decoding.kept], [names[i] for i in decoding.kept]
        # a picture in the table itself is no id
        own = table.ids is not None or len(set(ids)) < len(ids) or any(len(key) > 200 for key in ids)
        return Described(
            item_ids(table, kept_rows) if own else ids,
            None if table.truth is None else table.truth[kept_rows],
            table.classes,
            notes=(*notes, *dropped),
            cells={
                c: table.frame[c].iloc[kept_rows].array for c in table.item_columns if c != pictures.column
            }
            or None,
        )

    features = options.features or "shapes"
    return photo_pool(pictures, names, described, features, options.corrupt, name=name, title=table.raw.name)


def item_ids(table: Examination, rows: Ints) -> Sequence[str]:
    """The ids of the rows that stay: the table's own, else their numbers."""
    if table.ids is not None:
        return [str(text) for text in table.ids[rows]]
    return RowNumbers(len(rows)) if len(rows) == len(table.frame) else [str(row) for row in rows]


def _fingerprints(table: Examination, names: list[str], rows: Ints) -> Array:
    return fingerprint_words(_words(table, names, rows))


def _words(table: Examination, names: list[str], rows: Ints) -> Iterator[Array]:
    """[n] a column's words, one column after the other."""
    for name in names:
        column = table.columns.get(name)
        series = table.frame[name]
        if column is not None:
            yield _cell_words(series, column.cells)[rows]
            continue
        # of ids and of what is left out; some rows at a time, since reading copies every text
        word = np.empty(len(series), dtype=np.uint64)
        for start in range(0, len(series), _AT_ONCE):
            part = series.iloc[start : start + _AT_ONCE]
            cells = read_numbers(part, table.options.decimal or "")
            word[start : start + _AT_ONCE] = _cell_words(part, cells)
        yield word[rows]


def _cell_words(series: Any, cells: Numbers) -> Array:
    """[N] words cell by cell, so that a text appended to a column of numbers leaves the other rows' words."""
    unreadable = cells.unreadable
    if series.dtype.kind != "f":  # their last digits are none of a float's
        unreadable = unreadable | (np.isfinite(cells.values) & (np.abs(cells.values) >= EXACT))
    word = np.where(cells.blank, 0.0, cells.values + 0.0).view(np.uint64)
    word = word ^ np.where(cells.blank, _BLANK_WORD, np.uint64(0))
    if unreadable.any():
        places = np.flatnonzero(unreadable)
        for batch in np.array_split(places, 1 + len(places) // _AT_ONCE):
            word[batch] = fingerprint_values([plain_text(value) for value in series.array[batch]])
    return word
