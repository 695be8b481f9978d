"""Items by their words, by a column, by their id, or by being like another one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.app.serving import explanations
from workbench.app.serving.caching import kept
from workbench.app.words.text import plain
from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.reading import letters
from workbench.sessions import Session

if TYPE_CHECKING:
    from workbench.pools import Pool

MOST_WORDS = 12
LONGEST = 1_000  # letters; each is compared with the names of all columns
_LARGE = 20_000  # items from which on distances to all take a second, and a copy of all features
_TERM = re.compile(r'"([^"]+)"|(\S+)')


def find(pool: Pool, words: str) -> Ints:
    """[n] items that hold every word, in the pool's order.

    A word may be anywhere in an item's id, text or cells; `"two words"` stand together; `column:value`
    looks in one column only, also where its name has spaces. Capitals do not matter.

    Args:
        pool: to search.
        words: as somebody types them.

    Raises:
        InputError: no words, or too many.
    """
    if len(words) > LONGEST:
        raise InputError(f"At most {LONGEST:,} letters.")
    columns = {letters(name).lower(): cells for name, cells in _columns(pool).items()}
    terms, rest = _of_columns(letters(words).lower(), list(columns))
    terms += [("", a or b) for a, b in _TERM.findall(rest)]
    if not terms:
        raise InputError("Type a word, an id or column:value.")
    if len(terms) > MOST_WORDS:
        raise InputError(f"At most {MOST_WORDS} words.")
    keep = np.ones(len(pool), dtype=bool)
    for name, look in terms:
        texts = columns[name] if name else _everything(pool)
        for i in np.flatnonzero(keep).tolist():
            keep[i] = look in texts[i]
    return np.flatnonzero(keep)


def _of_columns(words: str, names: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """Each `column:value` of the words, and what is left of them; names and values may be quoted."""
    if ":" not in words or not names:
        return [], words
    # of two names that fit the longer one is meant
    alternatives = "|".join(re.escape(name) for name in sorted(filter(None, names), key=len, reverse=True))
    pattern = re.compile(rf'(?:^|(?<=\s))(?:"({alternatives})"|({alternatives})):(?:"([^"]+)"|([^\s"]\S*))')
    terms = [(a or b, c or d) for a, b, c, d in pattern.findall(words)]
    return terms, pattern.sub(" ", words)


def like(session: Session, item: int, k: int) -> Ints:
    """[k] items nearest to one, nearest first, itself left out.

    In the features the model uses; of a large pool that has a graph of neighbours, along that.
    """
    from workbench.sessions import insight

    if not 0 <= item < len(session.pool):
        raise InputError(f"There is no item {item}.")
    graph = session.fits.making.neighbourhood
    if len(session.pool) > _LARGE and session.fits.making.at_hand and item in graph:
        return graph.around(item, k)
    everything = np.arange(len(session.pool))
    return insight.nearest_among(explanations.space(session), everything, item, k)[0]


@kept
def _columns(pool: Pool) -> dict[str, Sequence[str]]:
    """Column -> its cells in small letters; nothing for texts and images."""
    cells = getattr(pool.items, "cells", None)
    if cells is not None:
        return {str(n): [letters(plain(v)).lower() for v in column] for n, column in cells.items()}
    names, values = getattr(pool.items, "names", None), getattr(pool.items, "values", None)
    if names is None or values is None:
        return {}
    return {n: [plain(float(v)) for v in values[:, i]] for i, n in enumerate(names)}


@kept
def _everything(pool: Pool) -> Sequence[str]:
    """All that can be read of each item, in small letters."""
    columns = [*_columns(pool).values(), getattr(pool.items, "texts", None)]
    text_columns = [column for column in columns if column is not None]
    return [
        letters("\n".join([str(name), *(str(column[i]) for column in text_columns)])).lower()
        for i, name in enumerate(pool.items.ids)
    ]
