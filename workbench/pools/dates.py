"""Dates as numbers: days since 1 January 1970, read by one format for the whole column."""

import re
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.numpy_predictor import MARKS, zoneless
from workbench.pools.cells import Numbers, filled_texts, is_text

ISO = "ISO 8601"
_DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
    *("%m-%d-%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y"),
    *("%d. %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %y", "%d/%b/%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    *("%B %d %Y", "%Y-%b-%d", "%a, %d %b %Y", "%a %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
    *("%a, %b %d, %Y", "%a %b %d %Y"),
)
_TIMES = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
FORMATS = (
    ISO,
    *_DAYS,
    *(f"{day}{mark}{time}" for day, time in product(_DAYS, _TIMES) for mark in (" ", ", ", "T", " at ")),
    *("%d/%b/%Y:%H:%M:%S", "%a %b %d %H:%M:%S %Y", "%d.%m.%Y %H.%M", "%b %Y", "%B %Y", "%m/%Y", "%m.%Y"),
    *("%b-%y", "%b-%Y", *_TIMES, "%Y%m%d"),
)
"""Ways of writing dates that are known; where two read a column as well, the earlier one is taken."""
_DAYLESS = frozenset(_TIMES)

_DAY = 86_400.0
_BEFORE = 25_567 * _DAY  # from 1 January 1900, the day of a time without one, to 1970
_SAMPLE = 2_000
_ENOUGH = 0.95
_FIRST = 8
# what a number begins with, or a name of a month or a weekday, and a digit further on
_MAYBE = re.compile(r"(?=.*\d.*[-/., :T].*\d|[^\W\d_]{3,9}[-. ]+\d)(?=.*\d\d).{4,70}")
_PATTERNS = {
    **{"%Y": r"\d{4}", "%m": r"\d{1,2}", "%d": r"\d{1,2}", "%y": r"\d{2}", "%H": r"\d{1,2}"},
    **{"%I": r"\d{1,2}", "%M": r"\d{2}", "%S": r"\d{2}", "%f": r"\d{1,6}", "%p": "A{2}"},
    **{"%b": "A{3}", "%a": "A{3}", "%B": "A{3,9}", "%A": "A{6,9}"},
}


def date_format(column: Any) -> str | None:
    """The format that reads a column's dates, or None where it holds none.

    Args:
        column: a pandas Series.

    Returns:
        Of `FORMATS` the one that reads most of the filled cells, and 95 % of them; "" for a column of dates
        as such.
    """
    if is_date(column):
        return ""
    if not is_text(column):
        return None
    step = max(1, len(column) // _SAMPLE)
    filled = filled_texts(column.iloc[::step])
    first = filled[:_FIRST]
    if not filled or sum(_MAYBE.fullmatch(text) is not None for text in first) * 2 < len(first):
        return None
    cleaned = [zoneless(text)[0] for text in first]
    shapes = [_shape(text) for text in cleaned]
    forms = [ISO] if any(re.match("0000-00|0{8}T", shape) for shape in shapes) else []
    forms += [form for shape in shapes for form in _candidates(shape)]
    shares = {form: float(np.mean(np.isfinite(_seconds(filled, form)))) for form in dict.fromkeys(forms)}
    best = max(shares, key=shares.__getitem__, default="")
    swapped = _swapped(best)
    if step > 1 and swapped in shares:
        # a few cells tell which of day and month stands first, and the sample may have missed them
        filled = filled_texts(column)
        best = max((best, swapped), key=lambda form: np.isfinite(_seconds(filled, form)).sum())
    return best if shares.get(best, 0.0) >= _ENOUGH else None


def _shape(text: str) -> str:
    """A text with 0 for each digit and A for each letter."""
    return re.sub(r"[^\W\d_]", "A", re.sub(r"\d", "0", text))


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Format -> what the shapes of its dates match; "%Y%m%d" is a number until somebody says so."""
    patterns = {}
    for form in FORMATS[1:-1]:
        parts = re.split(r"(%\w)", form)
        pattern = "".join(_PATTERNS.get(part, re.escape(re.sub("[a-zA-Z]", "A", part))) for part in parts)
        patterns[form] = re.compile(pattern.replace(r"\d", "0"))
    return patterns


@cache
def _candidates(shape: str) -> tuple[str, ...]:
    """Formats that could read dates of a shape."""
    return tuple(form for form, pattern in _patterns().items() if pattern.fullmatch(shape))


def _swapped(form: str) -> str:
    """The same format with day and month in the other order; "" for one that has no other."""
    for mark in "/-.":
        for order, reverse in ((f"%d{mark}%m", f"%m{mark}%d"), (f"%m{mark}%d", f"%d{mark}%m")):
            if form.startswith(order):
                swapped = form.replace(order, reverse)
                return swapped if swapped in FORMATS else ""
    return ""


def other_reading(column: Any, form: str) -> tuple[str, str]:
    """Another format that reads a column's dates as well, to other days: month first where it is day first.

    Args:
        column: a pandas Series.
        form: that it is read by.

    Returns:
        The format and a cell whose day differs; "" and "" where there is none.
    """
    alternative = _swapped(form) if form.startswith("%d") else ""
    if not alternative or is_date(column):
        return "", ""
    filled = filled_texts(column)
    times, other_times = _seconds(filled, form), _seconds(filled, alternative)
    if np.isfinite(other_times).sum() < np.isfinite(times).sum():
        return "", ""
    differ = np.flatnonzero(np.isfinite(times) & np.isfinite(other_times) & (times != other_times))
    return (alternative, filled[int(differ[0])]) if differ.size else ("", "")


def is_date(column: Any) -> bool:
    """True if a pandas column holds dates rather than texts or numbers."""
    from pandas.api.types import is_datetime64_any_dtype

    return bool(is_datetime64_any_dtype(column.dtype))


def read_dates(column: Any, form: str) -> Numbers:
    """A column as days since 1 January 1970.

    Args:
        column: a pandas Series of texts or dates.
        form: one of `FORMATS`; "" finds it.

    Returns:
        The days (times of day as fractions, zones brought to UTC, a time without a day as its fraction of
        one), which cells were empty and which are no date of that form.
    """
    if is_date(column):
        dates = column.dt.tz_convert(None) if column.dt.tz is not None else column
        values = dates.astype("datetime64[us]").astype("int64").to_numpy() / (_DAY * 1e6)
        blank = dates.isna().to_numpy(dtype=bool)
        return Numbers(np.where(blank, np.nan, values), blank, np.zeros(len(column), dtype=bool))
    texts = ["" if gap else str(cell).strip() for cell, gap in zip(column, column.isna(), strict=True)]
    blank = np.fromiter((text.lower() in MARKS for text in texts), dtype=bool, count=len(texts))
    values = np.full(len(texts), np.nan)
    filled = np.flatnonzero(~blank)
    form = form or date_format(column) or ISO
    values[filled] = _seconds([texts[i] for i in filled], form) / _DAY
    return Numbers(values, blank, np.isnan(values) & ~blank)


def _seconds(texts: list[str], form: str) -> Array:
    import pandas as pd

    if not texts:
        return np.empty(0)
    pairs = [zoneless(text) for text in texts]
    plain = pd.Series([text for text, _ in pairs], dtype="str")
    times = pd.to_datetime(plain, format="ISO8601" if form == ISO else form, errors="coerce", utc=True)
    values = times.dt.tz_convert(None).astype("datetime64[us]")
    east = np.array([minutes for _, minutes in pairs]) * 60.0
    seconds = np.where(values.isna(), np.nan, values.astype("int64").to_numpy() / 1e6) - east
    return seconds + _BEFORE if form in _DAYLESS else seconds
