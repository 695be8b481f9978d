"""Uses of a table's columns where nobody said any: one guess for page, command line and Python."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.pools.cells import is_text, read_numbers, read_texts
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.uses import ID_NAMES, ColumnUse, guessed, name_words, numbers_rows

LIKELY_CLASSES = 200
PREDICTIONS = re.compile(
    r"(prediction|predicted|pred|suggestion|suggested|guess)|\w+_(prediction|pred|suggestion)|model_(label|class)"
    r"|(llm|gpt|predicted|suggested)_(?!conf|score|certain|prob|id|time|cost|model|version|reason|rational"
    r"|expla|respon|output|raw|text|prompt|token|latency|second|comment|note|summary|log)\w+"
)
"""Names of columns that say what somebody or something takes the class for."""
_HEAD, _SAMPLE = 200, 20_000


def names_predictions(column: str) -> bool:
    """Tell whether a column's name says that it holds predictions: a guess, never the truth."""
    return PREDICTIONS.fullmatch(name_words(column).replace(" ", "_")) is not None


def resolved(
    frame: Any, said: Mapping[str, ColumnUse], decimals: Mapping[str, str], options: TableOptions
) -> dict[str, ColumnUse]:
    """A use for every column: what was said, and a guess for the others, seen in the whole table.

    Args:
        frame: pandas DataFrame.
        said: uses by name.
        decimals: the decimal sign of columns that have one of their own.
        options: of the table.

    Returns:
        One use a column, in the table's order; one column of ids and one of classes at most are guessed.
        A column that only numbers the rows is the ids, or left out where there are others.
    """
    known_uses = {use.use for use in said.values()} | ({"id"} if options.numbered else set())
    uses: dict[str, ColumnUse] = {}
    coordinates = _coordinates(frame)
    # what is called "id" goes before what is only called like an id
    for name in sorted(frame.columns, key=lambda name: name.strip().lower() not in ID_NAMES):
        barred_uses = known_uses | ({"class"} if name in coordinates else set())
        use = said.get(name) or guessed(
            name, frame[name], decimals.get(name, ""), options.max_categories, barred_uses
        )
        known_uses.add(use.use)
        uses[name] = use
    uses = {name: uses[name] for name in frame.columns}
    open_names = [name for name in frame.columns if name not in said]
    features = _features(uses)
    for name in open_names:
        if len(features) > 1 and uses[name].use == "number" and numbers_rows(frame, name):
            uses[name] = ColumnUse("leave out" if "id" in known_uses else "id")
            known_uses.add("id")
            features.remove(name)
    uses |= _likelier(frame, uses, open_names, "id" in known_uses)
    for name in open_names:
        use = uses[name]
        if options.texts and use.use in ("category", "text", "shown", "leave out") and is_text(frame[name]):
            use = ColumnUse.of(name, options.texts)
        if options.others and name in _features(uses):
            use = ColumnUse(options.others)
        empty = "drop" if options.empty == "drop" and use.empty else use.empty
        uses[name] = replace(use, empty=empty, guessed=True)
    return uses


def _features(uses: Mapping[str, ColumnUse]) -> list[str]:
    return [name for name, use in uses.items() if use.use not in ("id", "class", "shown", "leave out")]


def _likelier(
    frame: Any, uses: Mapping[str, ColumnUse], open_names: list[str], has_ids: bool
) -> dict[str, ColumnUse]:
    """Uses that are likelier than those guessed column by column.

    Often some of a table's rows have their labels already: a last column of few values, half of its cells
    empty and twice as many as of any other, or a quarter and far more, holds the classes. A first column of
    words that are all different names the rows, but where nothing else could be learnt from: then it holds
    the texts, however short they are, and a second column of few values beside it their classes.
    """
    likely_uses: dict[str, ColumnUse] = {}
    names, n_rows = list(frame.columns), len(frame)
    has_classes = any(use.use == "class" for use in uses.values())
    last = names[-1]
    if last in open_names and not has_classes and len(names) > 1 and uses[last].use == "category":
        n_last = _n_empty(frame[last])
        if n_last >= n_rows / 4 and not names_predictions(last):
            n_empty = max(_n_empty(frame[name]) for name in names[:-1])
            few = 2 <= frame[last].nunique() <= LIKELY_CLASSES
            if few and ((n_last >= n_rows / 2 and n_last > 2 * n_empty) or n_last >= 10 * n_empty):
                likely_uses[last] = ColumnUse("class")
    texts = _texts_alone(frame, uses, open_names)
    if texts:
        likely_uses[texts] = ColumnUse.of(texts, "text")
        partners = [name for name in _features(uses) if name != texts and name in open_names]
        if len(partners) == 1 and not has_classes and not names_predictions(partners[0]):
            likely_uses[partners[0]] = ColumnUse("class")
        return likely_uses
    first = names[0]
    words = first in open_names and uses[first].use in ("shown", "leave out") and is_text(frame[first])
    if words and not has_ids and n_rows > 1 and frame[first].is_unique and not _n_empty(frame[first]):
        likely_uses[first] = ColumnUse("id")
    return likely_uses


def _texts_alone(frame: Any, uses: Mapping[str, ColumnUse], open_names: list[str]) -> str:
    """Of a table of texts and their classes alone the column of texts; "" of another table.

    The only column that could be learnt from is one of texts, too, whatever its words are.
    """
    features = _features(uses)
    if any(uses[name].use not in ("text", "category") for name in features):
        return ""
    spare_names = [name for name in open_names if uses[name].use == "leave out" and _has_words(frame[name])]
    if not features and spare_names:
        return max(spare_names, key=lambda name: int(frame[name].nunique()))
    of_words = [name for name in features if uses[name].use == "text" and name in open_names]
    of_words += [
        name
        for name in spare_names
        if frame[name].nunique() > max(1, len(frame) // 2) and _spaced(frame[name])
    ]
    other_features = [name for name in features if name not in of_words]
    return of_words[0] if len(of_words) == 1 and len(other_features) < 2 else ""


def _spaced(column: Any) -> bool:
    return any(" " in str(cell).strip() for cell in column.iloc[:_HEAD].dropna())


def _n_empty(column: Any) -> int:
    return int(read_texts(column)[1].sum())


def _coordinates(frame: Any) -> set[str]:
    """Columns x and y, where both hold decimals: then y is no class."""
    pair = [name for name in frame.columns if str(name).strip().lower() in ("x", "y")]
    for name in pair:
        values = read_numbers(frame[name].iloc[:_SAMPLE]).values
        values = values[np.isfinite(values)]
        if not len(values) or not (values % 1).any():
            return set()
    return set(pair) if len(pair) == 2 else set()


def _has_words(column: Any) -> bool:
    """Tell whether a column's cells differ and hold letters, or signs beyond ASCII."""
    texts, blank = read_texts(column.iloc[:_HEAD])
    filled = [str(text) for text in texts[~blank]]
    lettered = [any(sign.isalpha() or sign > "\x7f" for sign in text) for text in filled]
    words = read_numbers(column.iloc[:_HEAD]).unreadable.sum() > len(filled) / 2
    return bool(words and is_text(column) and len(set(filled)) > 1 and np.mean(lettered) >= 0.5)
