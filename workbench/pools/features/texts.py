"""Texts on their way to features: their limits, and the terms that count most in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.errors import InputError
from workbench.reading import cut

MAX_CHARACTERS = 50_000_000
MAX_LENGTH = 10_000_000  # of one text


def heaviest(values: Any, lengths: Floats, names: Sequence[str], n: int) -> tuple[tuple[str, float], ...]:
    """The terms of one text by weight x length of their place in the axes.

    Args:
        values: [1, V] sparse weights.
        lengths: of the axes' columns at its entries.
        names: [V].
        n: how many, at most.

    Returns:
        (term, share of the heaviest one), largest first; spaces at the ends of a piece are "_".
    """
    weight = values.data * lengths
    order = np.argsort(-weight, kind="stable")[:n]
    top = float(weight[order[0]]) if len(order) else 1.0
    if not len(order) or top <= 0:
        return ()
    found = []
    for place in order:
        name = str(names[int(values.indices[place])])
        # a piece keeps the space at the word's edge, which would not be seen
        edge = name.replace(" ", "_") if name != name.strip() else name
        found.append((edge, round(float(weight[place]) / top, 3)))
    return tuple(found)


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


def check_texts(texts: Sequence[str], column: str) -> int:
    """Their characters together.

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
    return total
