"""Dates as numbers: days since 1 January 1970, read by one format for the whole column."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.pools.cells import Numbers, is_text, read_texts

ISO = "ISO 8601"
FORMATS = (
    ISO,
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%Y%m%d",
)
"""Ways of writing dates that are known; where two read a column, the earlier one is taken."""

_DAY = 86_400.0
_SAMPLE = 2_000
_ENOUGH = 0.95
_FIRST = 8
# a day and a year in figures, and something between them: neither a number nor a sentence
_MAYBE = re.compile(r"(?=.*\d.*[-/., T].*\d)(?=.*\d\d)[\w\-/.,:+ ]{6,40}")


def date_format(column: Any) -> str | None:
    """The format that reads a column's dates, or None where it holds none.

    Args:
        column: a pandas Series.

    Returns:
        The first of `FORMATS` that reads 95 % of the filled cells; "" for a column of dates as such.
    """
    if is_date(column):
        return ""
    if not is_text(column):
        return None
    step = max(1, len(column) // _SAMPLE)
    texts, blank = read_texts(column.iloc[::step])
    filled = [text.strip() for text, empty in zip(texts, blank, strict=True) if not empty]
    if not filled:
        return None
    if sum(_MAYBE.fullmatch(text) is not None for text in filled[:_FIRST]) * 2 < len(filled[:_FIRST]):
        return None
    for form in FORMATS[:-1]:
        # a look at the first few spares most columns the whole of it
        if np.mean(np.isfinite(_seconds(filled[:_FIRST], form))) >= 0.5 and (
            np.mean(np.isfinite(_seconds(filled, form))) >= _ENOUGH
        ):
            return form
    return None


def other_reading(column: Any, form: str) -> tuple[str, str]:
    """Another format that reads a column's dates as well, to other days: month first where it is day first.

    Args:
        column: a pandas Series.
        form: that it is read by.

    Returns:
        The format and a cell whose day differs; "" and "" where there is none.
    """
    day_first = {name: name.replace("%d/%m", "%m/%d") for name in FORMATS if name.startswith("%d/%m")}
    other = day_first.get(form, "")
    if not other or is_date(column):
        return "", ""
    texts, blank = read_texts(column)
    filled = [str(text).strip() for text, empty in zip(texts, blank, strict=True) if not empty]
    one, two = _seconds(filled, form), _seconds(filled, other)
    if np.mean(np.isfinite(two)) < np.mean(np.isfinite(one)):
        return "", ""
    differ = np.flatnonzero(np.isfinite(one) & np.isfinite(two) & (one != two))
    return (other, filled[int(differ[0])]) if differ.size else ("", "")


def is_date(column: Any) -> bool:
    """Whether a pandas column holds dates rather than texts or numbers."""
    from pandas.api.types import is_datetime64_any_dtype

    return bool(is_datetime64_any_dtype(column.dtype))


def read_dates(column: Any, form: str) -> Numbers:
    """A column as days since 1 January 1970.

    Args:
        column: a pandas Series of texts or dates.
        form: one of `FORMATS`; "" finds it.

    Returns:
        The days (times of day as fractions, zones brought to UTC), which cells were empty and which are
        no date of that form.
    """
    if is_date(column):
        dates = column.dt.tz_convert(None) if column.dt.tz is not None else column
        values = dates.astype("datetime64[us]").astype("int64").to_numpy() / (_DAY * 1e6)
        blank = dates.isna().to_numpy(dtype=bool)
        return Numbers(np.where(blank, np.nan, values), blank, np.zeros(len(column), dtype=bool))
    texts, blank = read_texts(column)
    values = np.full(len(texts), np.nan)
    filled = np.flatnonzero(~blank)
    form = form or date_format(column) or ISO
    values[filled] = _seconds([str(texts[i]).strip() for i in filled], form) / _DAY
    return Numbers(values, blank, np.isnan(values) & ~blank)


def _seconds(texts: list[str], form: str) -> Array:
    import pandas as pd

    if not texts:
        return np.empty(0)
    form = "ISO8601" if form == ISO else form
    found = pd.to_datetime(pd.Series(texts, dtype="str"), format=form, errors="coerce", utc=True)
    values = found.dt.tz_convert(None).astype("datetime64[us]")
    return np.where(values.isna(), np.nan, values.astype("int64").to_numpy() / 1e6)
