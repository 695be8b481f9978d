"""Texts on their way to features, and their limits."""

from collections.abc import Sequence
from typing import Any

from workbench.errors import InputError
from workbench.reading import cut

MAX_CHARACTERS = 50_000_000
MAX_LENGTH = 10_000_000  # of one text


def texts_of(rows: Any, column: str) -> list[str]:
    """The texts of a list or of a column of a DataFrame.

    Raises:
        InputError: no such column, or what is no text.
    """
    if hasattr(rows, "columns"):
        if column not in rows.columns:
            raise InputError(f"The rows lack the column {column!r}.")
        rows = rows[column].tolist()
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
