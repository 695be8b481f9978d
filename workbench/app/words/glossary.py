"""Terms that pages explain on hover; one file for all pages, glossary.toml."""

import re
import tomllib
from functools import cache
from pathlib import Path

from workbench.app.words.text import verbatim


@cache
def terms() -> dict[str, str]:
    """Term -> one sentence."""
    with (Path(__file__).resolve().parent / "glossary.toml").open("rb") as file:
        return tomllib.load(file)


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
