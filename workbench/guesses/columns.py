"""Guesses in a table: a class, with or without its confidence; numbers for each class; JSON cells."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.errors import InputError
from workbench.guesses.guess import Guess
from workbench.pools.tables.suggestions import names_predictions
from workbench.reading import letters

FLOOR = 0.001  # of a probability
PREFIXES = ("p_", "prob_", "proba_", "probability_", "score_")
# scales of numbers: shares of one (or of a hundred, normalised in each row), per cent, any other scores
SHARES, PER_CENT, SCORES = "shares", "per cent", "scores"
_SHOWN = 8


def of_classes(
    values: Sequence[Any],
    classes: Sequence[str],
    *,
    confidence: Sequence[Any] | None = None,
    mapping: Mapping[str, str] | None = None,
    source: str = "column",
    scale: str = "",
) -> Guess:
    """A column that names a class.

    Args:
        values: [N] names; empty, None or NaN where there is no guess.
        classes: names of the C classes, by code.
        confidence: [N] how sure it is, 0 to 1 (or per cent, where some exceed 1); without one, a name alone
            counts the same in every row.
        mapping: names of the column -> names of classes, for those that differ; "" leaves a name out.
        source: what the guess is called.
        scale: of the confidences, `SHARES` or `PER_CENT`, as the pool's were read; "" decides by these.

    Raises:
        InputError: no name is one of the classes; the message lists them for a mapping.
    """
    code = {_key(name): number for number, name in enumerate(classes)}
    mapped = {_key(name): _key(value) for name, value in (mapping or {}).items()}
    keys = ["" if is_empty(value) else _key(value) for value in values]
    keys = [mapped.get(key, key) for key in keys]
    codes = np.array([code.get(key, -1) for key in keys], dtype=np.int64)
    names = (str(value).strip() for value, key in zip(values, keys, strict=True) if key and key not in code)
    strange = dict(sorted(Counter(names).items(), key=_most))
    listing = ", ".join(f"{name!r} ({count})" for name, count in list(strange.items())[:_SHOWN])
    more = ", ..." if len(strange) > _SHOWN else ""
    if not (codes >= 0).any():
        why = f"its values are {listing}{more}" if strange else "it is empty"
        raise InputError(
            f"{source} names none of the classes ({', '.join(map(str, classes[:_SHOWN]))}): {why}. "
            "Say which class each value stands for."
        )
    notes = [f"Unknown classes, left out: {listing}{more}."] if strange else []
    has_guess = codes >= 0
    C = len(classes)
    scores = np.zeros((len(values), C))
    if confidence is None:
        scores[has_guess, codes[has_guess]] = 1.0
        if C > 1 and len(np.unique(codes[has_guess])) == 1:
            notes.append("It names the same class in every row.")
    else:
        sure, scale, note = _shares(confidence, len(values), source, scale)
        notes += note
        has_guess &= np.isfinite(sure)
        if not has_guess.any():
            raise InputError(f"{source}: no row has both a class and a confidence.")
        k = np.clip(sure[has_guess], FLOOR, 1.0 - FLOOR)
        scores[has_guess] = np.log((1.0 - k) / max(C - 1, 1))[:, None]
        scores[has_guess, codes[has_guess]] = np.log(k)
    guess = Guess.of_scores(source, scores, has_guess, (*notes, *_missing(has_guess)))
    return replace(guess, unknown=tuple(strange), scale="" if confidence is None else scale)


def unknown_names(values: Iterable[Any], classes: Sequence[str]) -> dict[str, int]:
    """Names that are no class, most frequent first, and how often each occurs.

    Args:
        values: names; empty, None or NaN where there is no guess.
        classes: names of the classes.
    """
    class_keys = {_key(name) for name in classes}
    counts = Counter(str(v).strip() for v in values if not is_empty(v) and _key(v) not in class_keys)
    return dict(sorted(counts.items(), key=_most))


def of_probabilities(
    scores: Any,
    classes: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    source: str = "columns",
    scale: str = "",
) -> Guess:
    """Numbers for each class: probabilities, or scores where some are negative or all are large.

    Args:
        scores: [N, K]; a row with a NaN or empty cell has no guess.
        classes: names of the C classes, by code.
        names: [K] the class of each column; the classes themselves, in order, by default.
        source: what the guess is called.
        scale: of the numbers, `SHARES` or `SCORES`, as the pool's were read; "" decides by these.

    Raises:
        InputError: no column is of a known class, or a cell is no number.
    """
    try:
        table = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        try:
            table = np.array([[_number(cell) for cell in row] for row in scores])
        except ValueError as error:
            raise InputError(f"{source}: {error}.") from error
    names = list(classes) if names is None else list(names)
    if table.ndim != 2 or table.shape[1] != len(names):
        raise InputError(
            f"{source} must have one column a class ({len(names)}); got the shape {list(table.shape)}."
        )
    code = {_key(name): number for number, name in enumerate(classes)}
    place = [code.get(_key(name), -1) for name in names]
    class_columns = [column for column, number in enumerate(place) if number >= 0]
    notes = []
    strange = [str(name) for name, number in zip(names, place, strict=True) if number < 0]
    if not class_columns:
        raise InputError(
            f"{source}: none of its columns ({', '.join(map(str, names[:_SHOWN]))}) is a class. "
            f"Classes: {', '.join(map(str, classes[:_SHOWN]))}."
        )
    if strange:
        notes.append(f"Columns of no class, left out: {', '.join(strange[:_SHOWN])}.")
    table = table[:, class_columns]
    has_guess = np.asarray(np.isfinite(table).all(axis=1))
    if scale == SHARES:
        has_guess[(table < 0).any(axis=1)] = False
    part = table[has_guess]
    sums = part.sum(axis=1)
    scale = scale or _scale_of(part)
    if scale == SCORES:
        notes.append("Taken as scores, not as probabilities: some lie outside 0 to 1.")
        low = part.min(axis=1, keepdims=True)
    else:
        off = np.abs(sums - 1.0) > 0.01
        if off.any() and not strange:
            notes.append(f"{int(off.sum())} rows do not sum to one; they were normalised.")
        empty = sums <= 0
        has_guess[np.flatnonzero(has_guess)[empty]] = False
        part, sums = part[~empty], sums[~empty]
        part = np.log(np.maximum(part / sums[:, None], FLOOR))
        low = np.full((len(part), 1), math.log(FLOOR))
    all_scores = np.zeros((len(table), len(classes)))
    all_scores[has_guess] = low  # a class without a column is the least likely
    columns = np.array([place[column] for column in class_columns])
    all_scores[np.flatnonzero(has_guess)[:, None], columns] = part
    without = [str(name) for number, name in enumerate(classes) if number not in place]
    if without:
        notes.append(f"No column for: {', '.join(without[:_SHOWN])}.")
    return replace(
        Guess.of_scores(source, all_scores, has_guess, (*notes, *_missing(has_guess))), scale=scale
    )


def of_json(
    cells: Sequence[Any], classes: Sequence[str], *, source: str = "column", scale: str = ""
) -> Guess:
    """Cells such as {"cat": 0.8, "dog": 0.2}: a class that a cell does not name has 0.

    Args:
        cells: [N] JSON texts or mappings; empty where there is no guess.
        classes: names of the C classes, by code.
        source: what the guess is called.
        scale: as in `of_probabilities`.

    Raises:
        InputError: a cell is no JSON object of numbers, or no class is named.
    """
    rows: list[Mapping[str, Any] | None] = []
    names: dict[str, None] = {}
    for number, cell in enumerate(cells):
        if is_empty(cell):
            rows.append(None)
            continue
        try:
            content = cell if isinstance(cell, Mapping) else json.loads(str(cell))
            row = {str(name): float(value) for name, value in content.items()}
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f'{source}: row {number + 1} holds {str(cell)[:60]!r}, not an object such as {{"cat": 0.8}}.'
            ) from error
        rows.append(row)
        names.update(dict.fromkeys(row))
    keys = list(names)
    if not keys:
        raise InputError(f"{source} is empty.")
    table = np.full((len(rows), len(keys)), np.nan)
    for number, cells_of_row in enumerate(rows):
        if cells_of_row is not None:
            table[number] = [cells_of_row.get(name, 0.0) for name in keys]
    return of_probabilities(table, classes, names=keys, source=source, scale=scale)


def of_cells(
    values: Sequence[Any],
    classes: Sequence[str],
    *,
    confidence: Sequence[Any] | None = None,
    mapping: Mapping[str, str] | None = None,
    source: str = "column",
    scale: str = "",
) -> Guess:
    """A column of class names, or of JSON objects: by what its first filled cell looks like.

    Args:
        values, classes, confidence, mapping, source: as in `of_classes`.
        scale: as in `of_classes` and `of_probabilities`.
    """
    first = next((value for value in values if not is_empty(value)), None)
    if isinstance(first, Mapping) or str(first).lstrip().startswith("{"):
        return of_json(values, classes, source=source, scale=scale)
    return of_classes(values, classes, confidence=confidence, mapping=mapping, source=source, scale=scale)


def likely_columns(columns: Sequence[str], classes: Sequence[str]) -> list[str]:
    """Columns whose names say that they hold predictions, and confidences that stand beside them.

    Args:
        columns: names, in the order of the table, without that of the classes.
        classes: names of the classes.
    """
    keys = {_key(name) for name in classes}
    names = {name for name in columns if names_predictions(name)}
    for prefix in PREFIXES:
        of_class = [
            name for name in columns if name.lower().startswith(prefix) and _key(name[len(prefix) :]) in keys
        ]
        if len(of_class) > 1:
            names |= columns_like(f"{of_class[0][: len(prefix)]}*", columns).keys()
    for name, after in pairwise(columns):  # the confidence stands beside what it is of
        stem, is_confidence, _ = after.lower().partition("confiden")
        if is_confidence and (name in names or f"{name}_".lower() == stem):
            names |= {name, after}
    return [name for name in columns if name in names]


def columns_like(pattern: str, columns: Sequence[str]) -> dict[str, str]:
    """Columns that a pattern such as "p_*" means, each with the class its name ends in."""
    stem = pattern.partition("*")[0]
    return {name: str(name)[len(stem) :] for name in columns if fnmatchcase(str(name), pattern)}


def is_empty(value: Any) -> bool:
    """True if a cell holds nothing."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or (
            not isinstance(value, Mapping)
            and str(value).strip().lower() in ("", "nan", "none", "null", "<na>")
        )
    )


def _key(name: Any) -> str:
    """Names are compared without regard to case, spaces, and the .0 of whole numbers."""
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    return " ".join(letters(str(name)).replace("_", " ").split()).casefold()


def _most(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _number(cell: Any) -> float:
    if is_empty(cell):
        return math.nan
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"{str(cell)[:60]!r} is not a number") from None


def _shares(values: Sequence[Any], n_rows: int, source: str, scale: str) -> tuple[Floats, str, list[str]]:
    """Confidences as shares, NaN where there is none: (shares [N], their scale, notes)."""
    try:
        confidences = np.array([_number(value) for value in values])
    except ValueError as error:
        raise InputError(f"{source}, its confidence: {error}.") from error
    if len(confidences) != n_rows:
        raise InputError(f"{source} has {n_rows} rows and its confidence {len(confidences)}.")
    finite = confidences[np.isfinite(confidences)]
    if (finite < 0).any() or (finite > 100).any():
        raise InputError(f"{source}: a confidence lies between 0 and 1 (or 0 and 100 per cent).")
    scale = scale or (PER_CENT if (finite > 1).any() else SHARES)
    if scale == PER_CENT:
        return confidences / 100.0, scale, ["Confidences above 1 were taken as per cent."]
    n_above = int((finite > 1).sum())
    notes = [f"{n_above} confidences are above 1 and were left out."] if n_above else []
    return np.where(confidences > 1, np.nan, confidences), scale, notes


def _scale_of(numbers: Floats) -> str:
    """`SCORES` where numbers [N, K] cannot be probabilities or per cent, else `SHARES`."""
    negative = bool((numbers < 0).any())
    return SCORES if negative or bool((numbers > 1.0 + 1e-6).any() and not _per_cent(numbers)) else SHARES


def _per_cent(part: Floats) -> bool:
    return bool(np.abs(part.sum(axis=1) - 100.0).max(initial=0.0) < 1.5)


def _missing(has_guess: Any) -> tuple[str, ...]:
    n = int((~np.asarray(has_guess)).sum())
    return (f"{n} of {len(has_guess)} rows have no guess.",) if n else ()
