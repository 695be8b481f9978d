"""Reading the cells of a column: numbers, texts and blanks."""

import re
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats
from workbench.numpy_predictor import BLANKS, MARKS, bare

__all__ = ["BLANKS", "MARKS", "bare"]  # a model that is taken away reads cells, too


AMBIGUOUS = "?"
"""Of a column whose commas or points may be decimal signs or stand between groups of three digits."""
MOST = 0.9
"""Share of a column's filled cells from which on it is a column of numbers."""
EXACT = 2**53
"""From here on a float does not hold every whole number."""
_EXPONENT = r"([eE][-+]?\d+)?"
_BY_COMMA = re.compile(rf"[-+]?([1-9]\d{{0,2}}(\.\d{{3}})+|\d+)(,\d+)?{_EXPONENT}")
_BY_POINT = re.compile(rf"[-+]?([1-9]\d{{0,2}}(,\d{{3}})+|\d+)(\.\d*)?{_EXPONENT}")
_POINTS = rf"[-+]?[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d*)?{_EXPONENT.replace('(', '(?:', 1)}"
_COMMAS = rf"[-+]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?{_EXPONENT.replace('(', '(?:', 1)}"


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
    """True if a pandas column holds texts (or mixed objects) rather than numbers."""
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
    missing = column.isna().to_numpy(dtype=bool)
    texts = np.array(column.to_numpy(dtype=object), dtype=object)
    if not is_text(column):
        texts[:] = [plain_text(value) for value in texts]
    elif column.dtype == object:
        texts[:] = [cell if isinstance(cell, str) else str(cell) for cell in texts]
    elif column.dtype != "str":
        texts[:] = list(map(str, texts))
    texts[missing] = ""
    empty = frozenset(blanks)
    return texts, missing | np.array([text in empty for text in texts.tolist()], dtype=bool)


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
    if decimal != "," and (plain := _plain_numbers(column)) is not None:
        missing = np.isnan(plain)
        return Numbers(plain, missing, np.zeros(len(plain), dtype=bool))
    blank = column.isna().to_numpy(dtype=bool).copy()
    texts = column.astype("str").str.strip()
    values = np.full(len(texts), np.nan) if decimal == "," else _numbers(texts)
    rows = np.flatnonzero(np.isnan(values) & ~blank)
    if len(rows):
        blank[rows] = texts.iloc[rows].str.lower().isin(MARKS).to_numpy(dtype=bool)
        rows = rows[~blank[rows]]
    if len(rows):
        cells = texts.iloc[rows].map(bare).astype("str")
        values[rows] = _numbers(_ungrouped(cells, decimal) if decimal else cells)
    return Numbers(values, blank, np.isnan(values) & ~blank)


def _plain_numbers(column: Any) -> Floats | None:
    """A column of texts of which each is a plain number or empty; None for any other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        texts = pa.array(column, pa.large_string(), from_pandas=True)
        numbers = pc.cast(pc.if_else(pc.equal(texts, ""), None, texts), pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


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
    numerals = texts[sound]
    try:
        values[sound] = pc.cast(pa.array(numerals, pa.large_string()), pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # "+1", which Arrow does not take
        values[sound] = [float(text) for text in numerals]
    return values


def _ungrouped(texts: Any, decimal: str) -> Any:
    """Texts of numbers with a point for the decimal sign and nothing between groups of digits."""
    between, grouped = (".", _POINTS) if decimal == "," else (",", _COMMAS)
    has_groups = texts.str.contains(between, regex=False).to_numpy(dtype=bool, na_value=False)
    if has_groups.any():
        amounts = texts[has_groups]
        sound = amounts.str.fullmatch(grouped).to_numpy(dtype=bool, na_value=False)
        texts = texts.copy()
        texts[has_groups] = amounts.str.replace(between, "", regex=False).where(sound, "?")
    return texts.str.replace(",", ".", regex=False) if decimal == "," else texts


def decimal_of(column: Any, sample: int = 1000) -> tuple[str, str]:
    """The decimal sign of a column of texts that are numbers.

    Args:
        column: a pandas Series.
        sample: cells that are looked at first.

    Returns:
        "," or ".", where more filled cells can be read in that way than in the other; `AMBIGUOUS` where both
        ways read them, as 1,234 and 1.234 are; "" for any other column, such as one of whole numbers. And a
        cell with a comma where there is one, else with a point.
    """
    if not is_text(column):
        return "", ""
    sign, cell = _decimal_of(column.iloc[:sample])
    # 1,234 says nothing, but a cell further down may
    return _decimal_of(column) if sign == AMBIGUOUS and len(column) > sample else (sign, cell)


def _decimal_of(column: Any) -> tuple[str, str]:
    head = filled_texts(column.iloc[:40])
    if head and not any(_is_either(bare(text)) for text in head):
        return "", ""
    filled = filled_texts(column)
    first = [bare(text) for text in filled[:20]]
    plain = [i for i, text in enumerate(first) if _BY_POINT.fullmatch(text) and not _BY_COMMA.fullmatch(text)]
    if plain and not any("," in text for text in filled):
        return ".", filled[plain[0]]  # spares most columns the rest
    texts = [bare(text) for text in filled]
    marked = [i for i, text in enumerate(texts) if "," in text or "." in text]
    by_comma = sum(_BY_COMMA.fullmatch(text) is not None for text in texts)
    by_point = sum(_BY_POINT.fullmatch(text) is not None for text in texts)
    if not marked or max(by_comma, by_point) < MOST * len(texts):
        return "", ""
    at = next((i for i in marked if "," in texts[i]), marked[0])
    return AMBIGUOUS if by_comma == by_point else "," if by_comma > by_point else ".", filled[at]


def filled_texts(column: Any) -> list[str]:
    """The cells of a pandas column that hold something, as texts without spaces around."""
    texts = [str(cell).strip() for cell in column.to_numpy(dtype=object).tolist()]
    return [text for text in texts if text.lower() not in MARKS]


def _is_either(text: str) -> bool:
    return _BY_COMMA.fullmatch(text) is not None or _BY_POINT.fullmatch(text) is not None


def plain_text(value: Any) -> str:
    """A cell as text: whole numbers without a point, blanks as ""."""
    if isinstance(value, str):
        return value
    if value is None or str(value) in ("nan", "<NA>", "NaT"):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 1e21:
        return str(int(value))
    return str(value)
