"""CSV as it leaves the program: one writer, whose cells stay whole and are no formulas.

A cell is quoted wherever a reader could take a sign of it for an end of a cell or of a line, a carriage
return by itself included, and a text that a spreadsheet would run begins with a quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

from workbench.reading import valid_text

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet would run."""
# of lines: what Python's splitlines, and so other readers, end a line at
_QUOTED = frozenset('",;\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029\ufeff')


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV table.

    Args:
        columns: names in its first line.
        rows: their cells; None and NaN are empty, floats keep every digit, texts are made safe.

    Returns:
        The text, with a newline after each row.
    """
    return "".join(csv_lines([columns, *rows]))


def csv_lines(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Lines of a CSV table, each with its newline; the cells are those of `csv_text`."""
    for row in rows:
        cells = [_cell(value) for value in row]
        # a line of one empty cell would be none at all
        yield ",".join(cells if cells != [""] else ['""']) + "\n"


def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows instead of running it: a quote before = + - @, a tab and CR."""
    return f"'{text}" if _runs(text) else text


def plain_cell(text: str) -> str:
    """The text that `safe_cell` was given."""
    return text[1:] if text.startswith("'") and _runs(text) else text


def _runs(text: str) -> bool:
    # Text that has quotes of its own before the sign gets one more, so that taking one away is exact.
    return text.lstrip("'").startswith(FORMULA)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, Real) and value != value):
        return ""
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Real):
        return str(value)
    text = safe_cell(valid_text(str(value)))
    if _QUOTED.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
