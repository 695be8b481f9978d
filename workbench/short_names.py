"""Names cut to a length so that they can still be told apart."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

CUT = "…"
_LEAST = 4
"""Characters of what names have in common that are kept, so that groups of names can be told apart too."""


def short_names(names: Sequence[object], limit: int) -> list[str]:
    """Names of at most so many characters; those that differ stay different where that can be.

    A long name is cut at its end. Where that leaves two alike, what they begin with in common is cut instead:
    "Savings customers of the north" and "... of the south" become "Savin…north" and "Savin…south".

    Args:
        names: classes or columns, each on one line afterwards.
        limit: characters, the sign of the cut included; 8 or more.

    Returns:
        As many names, in their order.
    """
    return list(_short(tuple(" ".join(str(name).split()) for name in names), max(limit, 8)))


@lru_cache(maxsize=64)
def _short(names: tuple[str, ...], limit: int) -> tuple[str, ...]:
    cut = [_end(name, limit) for name in names]
    alike: dict[str, list[int]] = {}
    for place, short in enumerate(cut):
        alike.setdefault(short, []).append(place)
    labels = list(cut)
    for places in alike.values():
        group = {names[place] for place in places}
        if len(group) > 1:
            common = _begun(sorted(group))
            for place in places:
                labels[place] = _middle(names[place], common, limit)
    # whatever is alike still says no less when it is cut at its end
    return tuple(labels if len(set(labels)) >= len(set(cut)) else cut)


def _end(name: str, limit: int) -> str:
    return name if len(name) <= limit else name[: limit - 1].rstrip() + CUT


def _begun(names: Sequence[str]) -> int:
    """Number of characters with which all names begin, up to the end of a word."""
    first, last = min(names), max(names)
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    common = "".join(character for character, _ in pairs)
    words = [match.end() for match in re.finditer(r"[\s_./:-]+", common)]
    return words[-1] if words else len(common)


def _middle(name: str, common: int, limit: int) -> str:
    """A name whose beginning, which others share, is cut: as much of the rest as there is room for."""
    rest = name[common:]
    head = name[: max(limit - len(rest) - 1, min(_LEAST, limit // 3))].rstrip()
    return _end(f"{head}{CUT}{rest}", limit)
