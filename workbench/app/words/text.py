"""Words of pages: what people wrote as they wrote it, numbers, errors, and terms that are explained."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.shares import in_percent

# Every character Streamlit's Markdown gives a meaning to, directives (:red[..]), maths and emoji
# codes (:name:) included.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=@&\"'])")


_SPACE = re.compile(r"[^\S\u00a0]+")
"""All but a no-break space, which a page wrote on purpose."""
PER_CENT = "\u00a0%"
"""No line ends before it."""


def verbatim(text: object, limit: int | None = None) -> str:
    """Markdown that renders as exactly this text, on one line.

    Args:
        text: anything; a class called `<script>` or `**x**` is shown as such.
        limit: cut to this many characters, ending in an ellipsis.

    Returns:
        Escaped text, in which no line ends between a number and its sign of per cent.
    """
    return _SPECIAL.sub(r"\\\1", one_line(text, limit)).replace(" %", PER_CENT)


def one_line(text: object, limit: int | None = None) -> str:
    """A text on one line, for the choices of a select box, which show Markdown as it is written.

    Args:
        text: anything; its no-break spaces stay.
        limit: cut to this many characters, ending in an ellipsis.
    """
    plain = _SPACE.sub(" ", str(text)).strip() or " "
    return plain[: limit - 1].rstrip() + "…" if limit is not None and len(plain) > limit else plain


_CHOICES = {"drop": "“leave rows out”", "impute": "“fill in”", "error": "“ask me”"}


def for_people(message: object) -> str:
    """A message of the package in the words of the pages: no arguments of Python."""
    text = re.sub(r", or name a pool: [^.]*", "", str(message))
    without = re.sub(r' \(missing="\w+"\)', "", text)
    return re.sub(r'missing="(drop|impute|error)"', lambda match: _CHOICES[match[1]], without)


def show_error(problem: object) -> None:
    """Show what went wrong on the page, in its words."""
    import streamlit as st

    st.error(verbatim(for_people(problem)), icon=":material/error:")


def show_kept_error(key: str) -> None:
    """Show, once, what went wrong in a block of `refused(key)`."""
    import streamlit as st

    if key in st.session_state:
        show_error(st.session_state.pop(key))


@contextmanager
def refused(key: str = "") -> Iterator[None]:
    """Within the block what a person can mend is shown; with a key by the next `show_kept_error`."""
    import streamlit as st

    try:
        yield
    except InputError as error:
        if key:
            st.session_state[key] = str(error)
        else:
            show_error(error)


NOTHING = "empty"
"""In the place of an empty cell."""


def plain(value: object, digits: int = 6) -> str:
    """A cell of a table as people write it; "" for an empty one.

    Args:
        value: of the cell.
        digits: significant ones of a number; all those before the point are written.
    """
    if not isinstance(value, float):
        return "" if value is None else str(value).strip()
    short = f"{value:.{digits}g}"
    # a sum of money is no power of ten
    return f"{value:.0f}" if "e+" in short and abs(value) < 1e15 else short


def plural(n: int, noun: str, many: str | None = None) -> str:
    """A count with its noun: "1 label", "1,200 labels"."""
    return f"{n:,} {noun if n == 1 else (many or noun + 's')}"


def with_minus(words: str) -> str:
    """Numbers with the minus sign, in the place of the hyphen that Python writes."""
    return words.replace("-", "\u2212")


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage (`in_percent`), in which no line ends; an en dash when there is none."""
    return "–" if value is None or value != value else in_percent(value, digits).replace(" %", PER_CENT)


@cache
def words_of(name: str) -> dict[str, Any]:
    """Words that stand in a file beside this one.

    Args:
        name: of the file, without its ending.
    """
    with (Path(__file__).resolve().parent / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


def terms() -> dict[str, str]:
    """Term -> one sentence."""
    return words_of("glossary")


def role_words(role: object, use: str) -> str:
    """Why an item is shown, by the role of its question; of a role that is not known its name.

    Args:
        role: of the question.
        use: "badge" or "log", as in roles.toml.
    """
    return str(words_of("roles").get(str(role), {}).get(use, role))


def explain(*names: str) -> str:
    """Help text that explains some terms, for the `help` of a widget or heading.

    Args:
        names: of terms.

    Returns:
        Markdown, a paragraph a term.

    Raises:
        KeyError: no such term.
    """
    return "\n\n".join(f"**{verbatim(name)}** · {verbatim(terms()[name])}" for name in names)


def used_in(*texts: str) -> tuple[str, ...]:
    """The terms that stand in some texts, in the glossary's order."""
    text = " ".join(texts)
    return tuple(
        term
        for term in terms()
        if re.search(rf"\b{re.escape(term)}s?\b", text, 0 if term.isupper() else re.IGNORECASE)
    )
