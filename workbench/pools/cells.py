"""Reading the cells of a column: numbers, dates, texts and blanks."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats
from workbench.numpy_predictor import BLANKS, MARKS, bare, zoneless

__all__ = ["BLANKS", "MARKS", "bare"]  # a model that is taken away reads cells, too
from workbench.errors import InputError
from workbench.reading import cut

AMBIGUOUS = "?"
"""Of a column whose commas or points may be decimal signs or stand between groups of three digits."""
MOST = 0.9
"""Share of a column's filled cells from which on it is a column of numbers."""
EXACT = 2**53
"""From here on a float does not hold every whole number."""
_EXPONENT = r"([eE][-+]?\d+)?"
_PLAIN = r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:inf(?:inity)?))"
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
    import pyarrow as pa
    import pyarrow.compute as pc

    sound = texts.str.fullmatch(_PLAIN).to_numpy(dtype=bool, na_value=False)
    numerals = pa.array(texts[sound].str.lstrip("+"), pa.large_string())
    values = np.full(len(texts), np.nan)
    values[sound] = pc.cast(numerals, pa.float64()).to_numpy()
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


MAX_CHARACTERS = 50_000_000
MAX_LENGTH = 10_000_000  # of one text


def texts_of(rows: Any, column: str) -> list[str]:
    """The texts of a list or of a column of a DataFrame.

    Args:
        rows: [N] texts, or a DataFrame, whose cells are read as a pool's are: an empty one as a text without
            words, a number as its digits.
        column: of the DataFrame.

    Raises:
        InputError: no such column, or what is no text.
    """
    if hasattr(rows, "columns"):
        from pandas.api.types import is_scalar

        if column not in rows.columns:
            raise InputError(f"The rows lack the column {column!r}.")
        rows = [plain_text(cell) if is_scalar(cell) else cell for cell in rows[column].tolist()]
    texts = list(rows)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"Row {i + 1} holds {cut(text)}, which is not a text.")
    return texts


def check_texts(texts: Sequence[str], column: str) -> None:
    """Refuse more characters than there may be.

    Raises:
        InputError: too many, or one text too long.
    """
    total = sum(map(len, texts))
    if total > MAX_CHARACTERS:
        raise InputError(
            f"The texts of column {column!r} have {total:,} characters together; the limit is "
            f"{MAX_CHARACTERS:,}. Take fewer or shorter ones."
        )
    longest = max(map(len, texts), default=0)
    if longest > MAX_LENGTH:
        raise InputError(
            f"Column {column!r} holds a text of {longest:,} characters; the limit is {MAX_LENGTH:,}. "
            "Shorten it, or leave it out."
        )


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
