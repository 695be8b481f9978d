"""Reading the cells of a column: numbers, texts and blanks."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats

BLANKS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None")
"""Texts that stand for an empty cell in a feature column (not in a target, where any text is a class)."""

AMBIGUOUS = "?"
"""Of a column whose commas may be decimal points or stand between groups of three digits."""
_EXPONENT = r"([eE][-+]?\d+)?"
_BY_COMMA = re.compile(rf"\s*[-+]?(\d{{1,3}}(\.\d{{3}})+|\d+)(,\d+)?{_EXPONENT}\s*")
_BY_POINT = re.compile(rf"\s*[-+]?(\d{{1,3}}(,\d{{3}})+|\d+)(\.\d*)?{_EXPONENT}\s*")
_POINTS = rf"[-+]?\d{{1,3}}(?:\.\d{{3}})+(?:,\d*)?{_EXPONENT.replace('(', '(?:', 1)}"
_COMMAS = rf"[-+]?\d{{1,3}}(?:,\d{{3}})+(?:\.\d*)?{_EXPONENT.replace('(', '(?:', 1)}"


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


def read_numbers(column: Any, decimal: str = "") -> Numbers:
    """A column as numbers.

    Args:
        column: a pandas Series of texts or numbers.
        decimal: "," or "." where the column was said or found to have it: points (or commas) between groups
            of three digits are dropped then, and any others make a cell unreadable. "" knows no groups.

    Returns:
        The numbers, which cells were empty and which could not be read.
    """
    if not is_text(column):
        values = column.astype("float64").to_numpy(dtype=np.float64, na_value=np.nan)
        blank = np.isnan(values)
        return Numbers(values, blank, np.zeros(len(values), dtype=bool))
    gone = column.isna().to_numpy(dtype=bool)
    texts = column.astype("str").str.strip()
    blank = gone | texts.isin(BLANKS).to_numpy(dtype=bool)
    if decimal:
        texts = _ungrouped(texts, decimal)
    values = _numbers(texts)
    return Numbers(values, blank, np.isnan(values) & ~blank)


def _numbers(texts: Any) -> Floats:
    """The nearest number of each text, NaN where it is none."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    values: Floats = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if not values.flags.writeable:
        values = values.copy()
    # before 3.1 pandas reads a third of them one bit off, and a file's fingerprint would change with it
    sound = np.isfinite(values)
    told = texts[sound]
    try:
        values[sound] = pc.cast(pa.array(told, pa.large_string()), pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # "+1", which Arrow does not take
        values[sound] = [float(text) for text in told]
    return values


def _ungrouped(texts: Any, decimal: str) -> Any:
    """Texts of numbers with a point for the decimal sign and nothing between groups of digits."""
    between, grouped = (".", _POINTS) if decimal == "," else (",", _COMMAS)
    held = texts.str.contains(between, regex=False).to_numpy(dtype=bool, na_value=False)
    if held.any():
        some = texts[held]
        sound = some.str.fullmatch(grouped).to_numpy(dtype=bool, na_value=False)
        texts = texts.copy()
        texts[held] = some.str.replace(between, "", regex=False).where(sound, "?")
    return texts.str.replace(",", ".", regex=False) if decimal == "," else texts


def decimal_of(column: Any, sample: int = 1000) -> str:
    """The decimal sign of a column of texts that are numbers with commas in them.

    Args:
        column: a pandas Series.
        sample: cells that are looked at first.

    Returns:
        "," or ".", where the filled cells can be read in that one way; `AMBIGUOUS` where both ways read
        them, as 1,234 is; "" for any other column, such as one of numbers without commas.
    """
    if not is_text(column):
        return ""
    found = _decimal_of(column.iloc[:sample])
    # 1,234 says nothing, but a cell further down may
    return _decimal_of(column) if found == AMBIGUOUS and len(column) > sample else found


def _decimal_of(column: Any) -> str:
    texts, blank = read_texts(column)
    filled = [text for text, empty in zip(texts, blank, strict=True) if not empty]
    if not any("," in text or text.count(".") > 1 for text in filled):
        return ""
    by_comma = all(_BY_COMMA.fullmatch(text) for text in filled)
    by_point = all(_BY_POINT.fullmatch(text) for text in filled)
    return AMBIGUOUS if by_comma and by_point else "," if by_comma else "." if by_point else ""


def plain_text(value: Any) -> str:
    """A cell as text: whole numbers without a point, blanks as ""."""
    if isinstance(value, str):
        return value
    if value is None or str(value) in ("nan", "<NA>", "NaT"):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 1e21:
        return str(int(value))
    return str(value)
