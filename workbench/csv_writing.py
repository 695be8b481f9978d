"""CSV as it leaves the program: one writer, whose cells stay whole and are no formulas.

A cell is quoted wherever a reader could take a sign of it for an end of a cell or of a line, a carriage
return by itself included, and a text that a spreadsheet would run begins with a quote. A number is none.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

from workbench.reading import valid_text

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet would run."""
NUMBER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A text that is wholly a number, which no spreadsheet runs: sign, digits, one point or comma, exponent."""
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


def csv_lines(rows: Iterable[Sequence[Any]], numbers: Collection[int] = ()) -> Iterator[str]:
    """Lines of a CSV table.

    Args:
        rows: their cells, as `csv_text` takes them.
        numbers: places of the columns whose texts are all numbers, however they are written: "-1,234.5".

    Yields:
        Each line with its newline.
    """
    for row in rows:
        cells = [_cell(value, place in numbers) for place, value in enumerate(row)]
        # a line of one empty cell would be none at all
        yield ",".join(cells if cells != [""] else ['""']) + "\n"


def safe_cell(text: str) -> str:
    """Text that a spreadsheet does not run: a quote before = + - @, a tab and CR, but not before numbers."""
    return f"'{text}" if _runs(text) else text


def plain_cell(text: str) -> str:
    """The text that `safe_cell` was given."""
    return text[1:] if text.startswith("'") and _runs(text) else text


def _runs(text: str) -> bool:
    # Text that has quotes of its own before the sign gets one more, so that taking one away is exact.
    bare = text.lstrip("'")
    return bare.startswith(FORMULA) and not NUMBER.fullmatch(bare)


def _cell(value: Any, is_number: bool = False) -> str:
    if value is None or (isinstance(value, Real) and value != value):
        return ""
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Real):
        return str(value)
    text = valid_text(str(value))
    text = text if is_number else safe_cell(text)
    if _QUOTED.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
