"""Reading the cells of a column: numbers, texts and blanks."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats

BLANKS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None")
"""Texts that stand for an empty cell in a feature column (not in a target, where any text is a class)."""

_COMMA_NUMBER = re.compile(r"\s*[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?\s*")


class Numbers(NamedTuple):
    """A column read as numbers.

    Attributes:
        values: [N] float64; NaN where empty or unreadable, infinities as they stood.
        blank: [N] bool, empty cells.
        unreadable: [N] bool, texts that are no number.
    """

    values: Floats
    blank: Array
    unreadable: Array


def is_text(column: Any) -> bool:
    """Whether a pandas column holds texts (or mixed objects) rather than numbers."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return not (is_numeric_dtype(column.dtype) or is_bool_dtype(column.dtype))


def read_texts(column: Any, blanks: tuple[str, ...] = BLANKS) -> tuple[Array, Array]:
    """A column as texts, verbatim.

    Args:
        column: a pandas Series.
        blanks: texts that count as empty.

    Returns:
        [N] object array of str ("" where empty) and [N] bool, which are empty.
    """
    gone = column.isna().to_numpy(dtype=bool)
    if is_text(column):
        # cell by cell: a table may have ten thousand columns of a few rows each
        texts = np.empty(len(column), dtype=object)
        texts[:] = [cell if isinstance(cell, str) else str(cell) for cell in column.array]
    else:
        texts = np.array([plain_text(value) for value in column.astype(object)], dtype=object)
    empty = frozenset(blanks)
    blank = gone | np.fromiter((text in empty for text in texts), dtype=bool, count=len(texts))
    texts[gone] = ""
    return texts, np.asarray(blank, dtype=bool)


def read_numbers(column: Any, decimal: str = ".") -> Numbers:
    """A column as numbers.

    Args:
        column: a pandas Series of texts or numbers.
        decimal: "." or ","; with a comma, points between groups of three digits are dropped.

    Returns:
        The numbers, which cells were empty and which could not be read.
    """
    import pandas as pd

    if not is_text(column):
        values = column.astype("float64").to_numpy(dtype=np.float64, na_value=np.nan)
        blank = np.isnan(values)
        return Numbers(values, blank, np.zeros(len(values), dtype=bool))
    gone = column.isna().to_numpy(dtype=bool)
    texts = column.astype("str").str.strip()
    blank = gone | texts.isin(BLANKS).to_numpy(dtype=bool)
    if decimal == ",":
        texts = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    values = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return Numbers(values, blank, np.isnan(values) & ~blank)


def looks_comma_decimal(column: Any, sample: int = 1000) -> bool:
    """Whether the filled cells of a text column are numbers written with a decimal comma."""
    texts, blank = read_texts(column.iloc[:sample])
    filled = [text for text, empty in zip(texts, blank, strict=True) if not empty]
    commas = sum(_COMMA_NUMBER.fullmatch(text) is not None for text in filled)
    whole = sum(re.fullmatch(r"\s*[-+]?\d+\s*", text) is not None for text in filled)
    return commas > 0 and commas + whole == len(filled)


def plain_text(value: Any) -> str:
    """A cell as text: whole numbers without a point, blanks as ""."""
    if isinstance(value, str):
        return value
    if value is None or str(value) in ("nan", "<NA>", "NaT"):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return str(value)
