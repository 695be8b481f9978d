"""The pool an examined table makes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import Numbers, plain_text, read_numbers, read_texts
from workbench.pools.features.cache import cached_features
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.table import CategoryColumn, NumberColumn, TableFeatureMap
from workbench.pools.features.texts import TextFeatureMap
from workbench.pools.features.vectors import without_features
from workbench.pools.fingerprints import fingerprint_values, fingerprint_words
from workbench.pools.items import RowItems, RowNumbers, TextItems
from workbench.pools.pool import FeatureMap, Pool
from workbench.pools.tables.columns import typical
from workbench.pools.tables.examination import Examination
from workbench.pools.tables.report import counted

_BLANK_WORD = np.uint64(0xB1A9)


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
    if table.found.in_the_way:
        first, *more = table.found.in_the_way
        further = f" ({counted(len(more), 'further problem')} of this kind or another.)" if more else ""
        raise InputError(f"{first.message}{further}")
    rows = np.flatnonzero(table.keep)
    name = table.options.name or stem
    if table.texts is not None:
        return _text_pool(table, rows, name)
    recipe: list[NumberColumn | CategoryColumn] = []
    features = []
    for column in table.columns.values():
        if not column.used:
            continue
        series = column.series if len(rows) == len(table.frame) else column.series.iloc[rows]
        if column.as_text:
            texts, _ = read_texts(column.series)
            categories = tuple(sorted(set(map(str, texts[table.keep & ~column.gone]))))
            entry = CategoryColumn(column.name, categories, bool(column.gone[rows].any()))
            recipe.append(entry)
            features.append(entry.read(series, "."))
            continue
        fill = None
        if table.options.missing == "impute" and column.gone.any():
            fill = typical(column.cells.values[~column.gone])
        number = NumberColumn(column.name, fill, table.options.numeric_text == "missing")
        recipe.append(number)
        features.append(number.encode(series, Numbers(*(part[rows] for part in column.cells))))
    feature_map = TableFeatureMap(tuple(recipe), table.options.decimal or ".")
    frame = table.frame if len(rows) == len(table.frame) else table.frame.iloc[rows]
    shown = [name for name in table.names if name != table.options.target]
    return Pool(
        name=name,
        kind="table",
        features=np.column_stack(features),
        classes=table.classes,
        truth=None if table.truth is None else table.truth[rows],
        items=RowItems(_ids(table, rows), {column: frame[column].array for column in shown}),
        feature_map=feature_map,
        fingerprints=_fingerprints(table, shown, rows),
        title=table.raw.name,
        description=f"{len(rows):,} items from {table.raw.name}.",
        plane=len(feature_map.columns) == 2 and all(isinstance(column, NumberColumn) for column in recipe),
        notes=table.found.notes,
    )


def _text_pool(table: Examination, rows: Ints, name: str) -> Pool:
    assert table.texts is not None
    column = str(table.options.text_column)
    texts = [str(text) for text in table.texts[rows]]
    words = fingerprint_words([fingerprint_values(texts)])
    feature_map: FeatureMap
    if table.options.features is not None:  # vectors take their place
        feature_map, features = without_features(table.options.features, len(texts))
        what = ""
    elif table.options.text_features == "pieces":
        n_classes, what = len(table.classes), "directions of words and pieces of words"

        def learn() -> tuple[FeatureMap, Array]:
            made = PiecesFeatureMap.of(texts, column, n_classes)
            return made, made.transform(texts)

        feature_map, features = cached_features("pieces", words, (column, n_classes), learn)
    else:
        feature_map, what = TextFeatureMap.of(texts, column), "topics"
        features = feature_map.transform(texts)
    made = f"Features are {len(feature_map.columns)} {what} of {column!r}."
    return Pool(
        name=name,
        kind="text",
        features=features,
        classes=table.classes,
        truth=None if table.truth is None else table.truth[rows],
        items=TextItems(_ids(table, rows), texts),
        feature_map=feature_map,
        fingerprints=words,
        title=table.raw.name,
        description=f"{len(rows):,} texts from {table.raw.name}.",
        common_scale=True,
        notes=(*table.found.notes, *((made,) if what else ())),
    )


def _ids(table: Examination, rows: Ints) -> Sequence[str]:
    if table.ids is not None:
        return [str(text) for text in table.ids[rows]]
    return RowNumbers(len(rows)) if len(rows) == len(table.frame) else [str(row) for row in rows]


def _fingerprints(table: Examination, shown: list[str], rows: Ints) -> Array:
    words = []
    for name in shown:
        column = table.columns.get(name)
        series = table.frame[name]
        cells = column.cells if column else read_numbers(series, table.options.decimal or ".")
        # cell by cell, so that a text appended to a column of numbers leaves the other rows as they were
        word = np.where(cells.blank, 0.0, cells.values + 0.0).view(np.uint64)
        word = word ^ np.where(cells.blank, _BLANK_WORD, np.uint64(0))
        if cells.unreadable.any():
            texts = [plain_text(value) for value in series.array[cells.unreadable]]
            word[cells.unreadable] = fingerprint_values(texts)
        words.append(word[rows])
    return fingerprint_words(words)
